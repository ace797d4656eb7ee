"""What the heads of a table of results are called, and where the units of its figures stand."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.analysis.comparison.result_table import Entry, Head, ResultTable
from vmlab.analysis.figures.figure import HOST, WALL_CLOCK, WALL_SECONDS
from vmlab.model.axes import axes_words, axis_word
from vmlab.model.quantities import Written, written
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.report.figures import figure_text, with_unit
from vmlab.telemetry.host.host_figures import host_figures

_METRIC_WORDS = {RUN_TIME: "run time", WALL_SECONDS: WALL_CLOCK}
_PLAIN = ("", "1", "%")
"""Units of what statistics make of figures in another unit, which gives the heading its unit."""


def metric_words(metric: str) -> str:
    """A metric's name for people; a figure of the host has the name that it has everywhere."""
    name = metric.removeprefix(HOST)
    label = next((figure.label for figure in host_figures() if figure.name == name), None) if name != metric else None
    return label or _METRIC_WORDS.get(metric) or name.replace("_", " ")


def head_words(head: Head) -> str:
    """The head of a row or column for people: ``writeback``, ``depth 8``, ``web, mean``."""
    words = [metric_words(str(value)) if part == METRICS else value_words(part, value) for part, value in head]
    return ", ".join(words) or "all cells"


def value_words(axis: str, value: AxisValue) -> str:
    """The value of an axis; a number or a truth does not say what it is, and has the name of its axis."""
    return axis_word(value) if isinstance(value, str) else f"{axis} {axis_word(value)}"


def place_words(table: ResultTable) -> list[str]:
    """The workload and the axes that all figures of a table share."""
    fixed = [str(table.fixed[WORKLOADS])] if WORKLOADS in table.fixed else []
    return [*fixed, axes_words(table.axes)] if table.axes else fixed


def metric_of(table: ResultTable, row: Head, column: Head) -> str:
    """The metric of an entry; the total wall clock below run times counts as one of them."""
    return str(table.fixed.get(METRICS) or {**dict(row), **dict(column)}.get(METRICS, ""))


class TableHeads:
    """The names and units of a table.

    Figures of one metric are written in one form. Its unit stands in the caption or in the head that names the metric,
    and behind each figure where there is another one or none.
    """

    def __init__(self, table: ResultTable) -> None:
        self._table = table
        sizes: dict[tuple[str, str], list[float]] = {}
        for row, column, entry in table.each():
            if entry.figure.spread:
                key = (metric_of(table, row, column), entry.reading.unit)
                sizes.setdefault(key, []).append(entry.figure.spread.mean)
        self._forms = {key: written(key[1], known) for key, known in sizes.items()}

    def form(self, row: int, column: int) -> Written:
        """How the figure in this row and column is written."""
        unit = self._entry(row, column).reading.unit
        metric = metric_of(self._table, self._table.rows[row], self._table.columns[column])
        return self._forms.get((metric, unit)) or written(unit)

    def text(self, row: int, column: int) -> str:
        """The figure in this row and column, with its unit where no head has it."""
        entry, form = self._entry(row, column), self.form(row, column)
        return figure_text(
            entry.figure, entry.reading.unit, form, named=form.unit not in self._heads_units(row, column)
        )

    def metric(self) -> str:
        """The metric of all figures with its unit; empty where heads have the metrics."""
        fixed = self._table.fixed
        return with_unit(metric_words(str(fixed[METRICS])), "", self._fixed_form()) if METRICS in fixed else ""

    def row_words(self, place: int) -> list[str]:
        """The head of a row, each part by itself, below the names of its axes."""
        return self._words(self._table.rows[place], self._row_form(place), named=False)

    def column_words(self, place: int, *, named: bool) -> list[str]:
        """The head of a column, each part by itself; numbers `named` by their axes, where nothing else does that."""
        return self._words(self._table.columns[place], self._column_form(place), named=named)

    def _words(self, head: Head, form: Written | None, *, named: bool) -> list[str]:
        return [
            (value_words(part, value) if named else axis_word(value))
            if part != METRICS
            else metric_words(str(value))
            if form is None or form == self._fixed_form()
            else with_unit(metric_words(str(value)), "", form)
            for part, value in head
        ]

    def _entry(self, row: int, column: int) -> Entry:
        return self._table.entries[row][column]

    def _heads_units(self, row: int, column: int) -> set[str]:
        """The units that stand in the heads of an entry; one without any needs none."""
        found = [self._fixed_form(), self._row_form(row), self._column_form(column)]
        return {"", *(form.unit for form in found if form)}

    def _fixed_form(self) -> Written | None:
        if METRICS not in self._table.fixed:
            return None
        places = ((row, column) for row in range(len(self._table.rows)) for column in range(len(self._table.columns)))
        usual = written("s") if self._table.fixed[METRICS] in _METRIC_WORDS else None
        return self._common(places) or usual

    def _row_form(self, place: int) -> Written | None:
        named = METRICS in dict(self._table.rows[place])
        return self._common((place, column) for column in range(len(self._table.columns))) if named else None

    def _column_form(self, place: int) -> Written | None:
        named = METRICS in dict(self._table.columns[place])
        return self._common((row, place) for row in range(len(self._table.rows))) if named else None

    def _common(self, places: Iterable[tuple[int, int]]) -> Written | None:
        """The form that figures share, apart from indices and percentages; None where they share none."""
        measured = [(row, column) for row, column in places if self._entry(row, column).figure.spread]
        units = {self._entry(row, column).reading.unit for row, column in measured}
        units = units - set(_PLAIN) or units
        forms = {self.form(*place) for place in measured if self._entry(*place).reading.unit in units}
        return forms.pop() if len(forms) == 1 else None
