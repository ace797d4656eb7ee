"""The tables of a run's results as they are shown: their heads, and where the units of their figures stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.result_table import Entry, Head, ResultTable
from vmlab.analysis.figures.counted_cells import as_of
from vmlab.analysis.figures.figure import HOST, WALL_CLOCK, WALL_SECONDS, Figure, figure_of, over_tiles, workloads_of
from vmlab.analysis.figures.table_layout import Block, TableLayout, axis_title, axis_values
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words, axis_word
from vmlab.model.quantities import Written, written
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.model.scenarios.table_words import METRICS, STATISTICS, WORKLOADS
from vmlab.report.blocks import Block as ShownBlock
from vmlab.report.blocks import Column, Notes, Section, Table
from vmlab.report.figures import figure_text, with_unit
from vmlab.report.verdicts import difference_words, long_text, overall_words, relative_text, verdict_words
from vmlab.report.words import APART, MARK, NOT_MEASURED
from vmlab.telemetry.host.host_figures import host_figures

_METRIC_WORDS = {RUN_TIME: "run time", WALL_SECONDS: WALL_CLOCK}
_PLAIN = ("", "1", "%")
"""Units of what statistics make of figures in another unit, which gives the heading its unit."""
_ABSENT = "absent"
_CONFIGURED = "cpu_share_configured"
_GOT = "cpu_share_got"


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


def block_section(document: RunDocument, layout: TableLayout, block: Block) -> Section:
    """A block's tables, under the values of its axes where these are varied."""
    varied = {name: value for name, value in block.axes.items() if len(axis_values(document, name)) > 1}
    own = (table for table in document.tables if table.axes == block.axes)
    shown: list[ShownBlock] = []
    for table in own:
        shown += (_Shown(document, layout, block, table).table(), Notes(_overall(table)))
    return Section(axes_words(varied) if varied else "", shown)


def _overall(table: ResultTable) -> list[str]:
    """The figure over all workloads of each place that is compared."""
    lines: list[str] = []
    for one in table.overall:
        own = {part: value for part, value in one.axes.items() if part in table.baseline}
        rest = {part: value for part, value in one.axes.items() if part not in own}
        candidate, baseline = (
            ", ".join(value_words(part, values[part]) for part in own) for values in (own, table.baseline)
        )
        place = f"{axes_words(rest)}: " if rest else ""
        lines += [f"{place}{line}" for line in overall_words(one, baseline, [candidate])]
    return lines


def compares_below(layout: TableLayout) -> bool:
    """Whether what figures are to the baseline stands below them: the baseline is a row, and not a column."""
    return bool(layout.baseline) and not any(part in layout.baseline for part in layout.columns)


def intervals_shown(layout: TableLayout) -> bool:
    """Whether intervals of differences stand in the tables."""
    return layout.relative == "difference" or not compares_below(layout)


class _Shown:
    """One table as it is shown."""

    def __init__(self, document: RunDocument, layout: TableLayout, block: Block, table: ResultTable) -> None:
        self._document = document
        self._layout = layout
        self._block = block
        self._table = table
        self._heads = TableHeads(table)
        self._below = compares_below(layout)
        self._by_workload = layout.simple and layout.rows == (WORKLOADS,)
        self._by_rows = bool(self._titles(layout.rows))

    def table(self) -> Table:
        """Labels, figures, and beside or below them what they are to the baseline."""
        caption = self._caption()
        titles = self._titles(self._layout.rows) or self._titles(self._layout.columns)
        columns = [*self._columns(), *self._shares()]
        if self._by_workload:
            return Table(caption, self._row_labels(), columns)
        return Table(titles, self._row_labels(), columns, caption)

    def _caption(self) -> str:
        """What all figures of the table are: its workload, and its metric with the unit."""
        fixed = self._table.fixed
        parts = [str(fixed[WORKLOADS])] if WORKLOADS in fixed else []
        if METRICS in fixed:
            parts.append(self._heads.metric())
        if not self._layout.simple and self._layout.over == "repeats":
            parts.append("over the repeats")
        return ", ".join(parts)

    def _titles(self, parts: Sequence[str]) -> str:
        return " / ".join(filter(None, map(self._title, parts)))

    def _title(self, part: str) -> str:
        words = {WORKLOADS: "workload", METRICS: "metric", STATISTICS: ""}
        return words[part] if part in words else axis_title(self._document, part)

    def _row_labels(self) -> list[str]:
        labels = [self._label(place) for place in range(len(self._table.rows))]
        if not self._below:
            return labels
        return [text for place, label in enumerate(labels) for text in ((label, "") if self._two(place) else (label,))]

    def _two(self, row: int) -> bool:
        """Whether a row has a second line of comparisons."""
        return row not in self._table.absent and any(entry.difference for entry in self._table.entries[row])

    def _label(self, place: int) -> str:
        words = self._heads.row_words(place)
        if self._layout.simple and self._table.rows[place][-1][0] == STATISTICS:
            tiles = max(over.tiles for cell in self._block.cells for over in cell.over_tiles)
            words[-1] = f"{words[-1]} of {tiles}"
        return ", ".join(words)

    def _columns(self) -> list[Column]:
        """A column for each head, the baseline's first, and beside each other one what it is to the baseline."""
        table, layout = self._table, self._layout
        places = sorted(range(len(table.columns)), key=lambda place: self._order(table.columns[place]))
        columns: list[Column] = []
        for place in places:
            column = [line[place] for line in table.entries]
            *above, heading = self._heads.column_words(place, named=self._by_workload or self._by_rows) or ["all cells"]
            absent = place in table.absent_columns
            texts, notes = self._texts(place, absent=absent)
            columns.append(Column(heading, texts, above=tuple(above), notes=notes))
            relative = None if self._below or absent else layout.relative
            if relative and any(entry.difference is not None for entry in column):
                texts = [_to_baseline(entry, layout, interval=True) for entry in column]
                notes = [_note(entry, layout) for entry in column]
                columns.append(Column(relative, texts, beside=True, above=tuple(above), notes=notes))
        return columns

    def _order(self, head: Head) -> bool:
        """The baseline of a simple table comes first; others keep the order of the scenario."""
        return self._layout.simple and any(self._layout.baseline.get(part, value) != value for part, value in head)

    def _texts(self, column: int, *, absent: bool) -> tuple[list[str], list[str]]:
        """The figures of a column, what they are to the baseline below each of them, and the notes on these."""
        texts, notes = list[str](), list[str]()
        for row, line in enumerate(self._table.entries):
            entry = line[column]
            apart = f" {APART}" if entry.reading.apart and entry.figure.spread else ""
            texts.append(_ABSENT if absent or row in self._table.absent else f"{self._heads.text(row, column)}{apart}")
            notes.append("")
            if self._below and self._two(row):
                texts.append(_below(entry, self._layout))
                notes.append(_note(entry, self._layout))
        return texts, notes

    def _shares(self) -> list[Column]:
        """CPU shares, where workloads are the columns of a simple table and shares were measured."""
        if not (self._layout.simple and self._layout.columns == (WORKLOADS,)):
            return []
        return _share_columns(workloads_of(self._block.cells), list(self._layout.groups(self._block).values()))


def _below(entry: Entry, layout: TableLayout) -> str:
    """What stands below a figure: the form that its scenario asks for, or the difference with its interval."""
    if layout.relative == "difference":
        return _to_baseline(entry, layout, interval=True)
    text = _to_baseline(entry, layout)
    return f"({text})" if text else ""


def _to_baseline(entry: Entry, layout: TableLayout, *, interval: bool = False) -> str:
    if entry.difference is None or layout.relative is None:
        return ""
    return (long_text if interval else relative_text)(entry.difference, layout.relative)


def _note(entry: Entry, layout: TableLayout) -> str:
    """What is known of a difference, and the difference itself where another form of it is shown."""
    if entry.difference is None or entry.figure.spread is None:
        return ""
    return verdict_words(entry.difference) if layout.relative == "difference" else difference_words(entry.difference)


def _share_columns(workloads: Sequence[str], groups: Sequence[Sequence[CellDocument]]) -> list[Column]:
    """Shares configured and got in percent, workload by workload, for each group; none where nothing was measured."""
    found: list[Column] = []
    for heading, metric in (("share set", _CONFIGURED), ("share got", _GOT)):
        figures = [[figure_of(as_of(name, cells), over_tiles(name, metric)) for name in workloads] for cells in groups]
        if any(figure.spread for row in figures for figure in row):
            found.append(Column(heading, [_shares(row) for row in figures], beside=bool(found)))
    return found


def _shares(figures: Sequence[Figure]) -> str:
    text = " / ".join(f"{100 * f.spread.mean:.0f}" if f.spread else NOT_MEASURED for f in figures)
    if all(figure.spread is None for figure in figures):
        return NOT_MEASURED
    return f"{text} %" if all(figure.measured for figure in figures) else f"{text} % {MARK}"


def named_differences(tables: Sequence[ResultTable]) -> Iterator[tuple[str, Difference]]:
    """Each difference with its place; the column is left out where only one is compared."""
    for table in tables:
        compared = [(row, column, found) for row, column, entry in table.each() if (found := entry.difference)]
        several = len({column for _, column, _ in compared}) > 1
        for row, column, found in compared:
            yield _name(tables, table, row, column if several else ()), found


def named_figures(tables: Sequence[ResultTable]) -> Iterator[tuple[str, Figure, str]]:
    """Each figure with its place and its unit."""
    for table in tables:
        for row, column, entry in table.each():
            yield _name(tables, table, row, column), entry.figure, entry.reading.unit


def _name(tables: Sequence[ResultTable], table: ResultTable, row: Head, column: Head) -> str:
    several = len({str(one.axes) for one in tables}) > 1
    block = [axes_words(table.axes)] if several and table.axes else []
    fixed = [str(value) for part, value in table.fixed.items() if part != METRICS]
    return ", ".join([*block, *fixed, *_words(row), *_words(column)]) or "all cells"


def _words(head: Head) -> list[str]:
    return [metric_words(str(value)) if part == METRICS else axis_word(value) for part, value in head]
