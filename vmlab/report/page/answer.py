"""What a run answers to its scenario's question, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.comparison.result_table import Head, ResultTable
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.run import RUN_TIME, AxisValue, Outcome
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.report.comparison_text import row_name
from vmlab.report.figures import figure_text, form_of
from vmlab.report.run.run_screen import answer_lines, why_sentences
from vmlab.report.run.run_verdict import NO_VALID, NONE_PASSED, ONE_CONFIGURATION, uncompared_words
from vmlab.report.run.shown_tables import head_words, metric_words, value_words
from vmlab.report.run.target_text import missed_sentence
from vmlab.report.verdicts import sentence, verdict_words
from vmlab.report.words import capital, plural, relative_number

_KNOWN = (Verdict.PROVEN, Verdict.NOT_PROVEN, Verdict.SAME)
_UNCOMPARED = {
    NO_VALID: "NO CELL IS VALID, so nothing counts.",
    NONE_PASSED: "NO CELL PASSED, so nothing counts.",
    ONE_CONFIGURATION: "ONE CONFIGURATION was measured, so nothing is compared.",
}
_MOST = 6
"""Sentences about differences; a run with more has its tables below."""
_MOST_PLACES = 3
"""Places of the axes that have a sentence each."""


def answers(document: RunDocument) -> list[str]:
    """The answer: the verdicts, how large the differences are, what bound the cells, and what makes it doubtful."""
    headlines = sorted(_headlines(document.tables), key=lambda one: not one[1].difference.proven)
    sizes = [_sentence(one) for _, one in headlines] if len(headlines) <= _MOST else list(_by_places(headlines))
    shown = [*answer_lines(document), *_first(sizes)]
    if not shown:
        shown = [
            _UNCOMPARED.get(uncompared_words(document), "Nothing is compared here; the tables are under All metrics.")
        ]
    return [*shown, *map(capital, why_sentences(document)), *_sure(document)]


def missed_words(document: RunDocument) -> str:
    """The sentence on missed targets; empty where none was missed."""
    missed = missed_sentence(document.cells)
    return f"{capital(missed)}." if missed else ""


class _Contrast(NamedTuple):
    """A figure beside another one, `who` against whom at the place of `axes`; the other is None where it is unknown."""

    who: str
    axes: Mapping[str, AxisValue]
    what: str
    unit: str
    figure: Figure
    other: Figure | None
    difference: Difference


def _sentence(one: _Contrast) -> str:
    place = f" at {axes_words(one.axes)}" if one.axes else ""
    figures = [one.figure] if one.other is None else [one.figure, one.other]
    form = form_of(one.unit, figures)
    words = " against ".join(figure_text(figure, one.unit, form, named=True) for figure in figures)
    return f"{one.who}{place}: {one.what} {words}; {_explained(one.difference)}."


def _over_places(those: Sequence[_Contrast]) -> str:
    """The same figure at several places in one sentence."""
    one, known = those[0], [each.difference for each in those]
    return f"{one.who} in {len(those)} configurations: {one.what} {_summed_up(known)}."


def _first(said: Sequence[str]) -> list[str]:
    """The first sentences, and how many more differences there are."""
    more = len(said) - _MOST
    return [*said[:_MOST], *([f"{more} more differences are in the tables."] if more > 0 else [])]


_Headline = tuple[tuple[Head, Head], _Contrast]


def _headlines(tables: Sequence[ResultTable]) -> Iterator[_Headline]:
    """Each figure that stands for a whole column, and is compared with that of the baseline, by its row and column."""
    several = len({str(table.axes) for table in tables}) > 1
    for table in tables:
        for row, column, entry in table.each():
            if _is_headline(table, row) and entry.difference is not None and entry.figure.spread is not None:
                who, what = _who(table, row, column), _what(table, row, column)
                axes, other = table.axes if several else {}, baseline_of(table, row, column)
                unit = entry.reading.unit
                yield (row, column), _Contrast(who, axes, what, unit, entry.figure, other, entry.difference)


def _by_places(headlines: Sequence[_Headline]) -> Iterator[str]:
    """A sentence for each figure, over all places of the other axes where it stands at several."""
    alike = grouped(headlines).values()
    return (_sentence(those[0]) if len(those) == 1 else _over_places(those) for those in alike)


def _is_headline(table: ResultTable, row: Head) -> bool:
    """Every row, or of run times alone the wall clock.

    Beside the throughput of a workload of fixed duration it says little, and is left out.
    """
    of_cells = [head for head in table.rows if WALL_SECONDS in dict(head).values()]
    others = [head for head in table.rows if METRICS in dict(head) and head not in of_cells]
    return not of_cells or (row not in of_cells if others else row in of_cells)


def _who(table: ResultTable, row: Head, column: Head) -> str:
    """``writeback against none``: what is compared with what."""
    against = ", ".join(value_words(*one) for one in table.baseline.items())
    fixed = [(WORKLOADS, table.fixed[WORKLOADS])] if WORKLOADS in table.fixed else []
    return f"{head_words(tuple(one for one in (*fixed, *row, *column) if one[0] != METRICS))} against {against}"


def _what(table: ResultTable, row: Head, column: Head) -> str:
    """The metric that is compared."""
    return metric_words(str({**table.fixed, **dict(row), **dict(column)}.get(METRICS, "")))


def baseline_of(table: ResultTable, row: Head, column: Head) -> Figure | None:
    """The figure that an entry is compared with; None where it is not in this table."""
    wanted = {
        name: tuple((part, table.baseline.get(part, value)) for part, value in head)
        for name, head in (("row", row), ("column", column))
    }
    if wanted["row"] in table.rows and wanted["column"] in table.columns:
        return table.entries[table.rows.index(wanted["row"])][table.columns.index(wanted["column"])].figure
    return None


def _explained(found: Difference) -> str:
    """A difference with everything that it rests on; of one that was not tested the verdict says what it lacks."""
    if found.verdict in _KNOWN or found.percent is None:
        better = {True: "better, ", False: "worse, ", None: ""}[found.better]
        return f"{better}{sentence(found)}"
    return relative_number(found.percent, "difference")


def comparison_answers(found: Comparison) -> list[str]:
    """What the scenario asks for, of each candidate: a sentence for each place, or one for all where these are many.

    What is proven comes first. Of run times alone it is the total wall clock.
    """
    told = found.told(answered_metrics(found))
    several = len({str(row.axes) for row in told}) > 1
    figures = grouped((row_name(row), row) for row in told)
    said: list[str] = []
    for rows in sorted(figures.values(), key=lambda rows: not any(d.proven for row in rows for d in row.differences)):
        places = [list(_contrasts(found.labels, row, several=several)) for row in rows]
        if len(rows) <= _MOST_PLACES:
            said += [_sentence(one) for those in places for one in those]
        else:
            said += map(_over_places, zip(*places, strict=True))
    return _first(said)


def _contrasts(labels: Sequence[str], row: Row, *, several: bool) -> Iterator[_Contrast]:
    """Each candidate beside the baseline."""
    for label, figure, difference in zip(labels[1:], row.figures[1:], row.differences, strict=True):
        who = f"{label} against {labels[0]}"
        yield _Contrast(who, row.axes if several else {}, row_name(row), row.unit, figure, row.figures[0], difference)


def answered_metrics(found: Comparison) -> tuple[str, ...]:
    """The metrics that the answer is about: of run times alone the total wall clock, which is else left out."""
    if set(found.asked) <= {RUN_TIME, WALL_SECONDS}:
        return (WALL_SECONDS,) if WALL_SECONDS in found.asked else found.asked
    return tuple(metric for metric in found.asked if metric != WALL_SECONDS)


def _summed_up(known: Sequence[Difference]) -> str:
    """``-40.4 % to +2.0 %; better, difference proven at 3 of 4, no difference proven at 1 of 4``."""
    percents = [one.percent for one in known if one.percent is not None]
    ends = [relative_number(end, "difference") for end in (min(percents), max(percents))] if percents else []
    tested = any(one.verdict in _KNOWN for one in known)
    if len(percents) == len(known) and not tested:
        return " to ".join(dict.fromkeys(ends))
    counts = Counter(verdict_words(one) for one in known)
    words = ", ".join(f"{words} at {count} of {len(known)}" for words, count in counts.items())
    return "; ".join([*([" to ".join(dict.fromkeys(ends))] if ends else []), words])


def _sure(document: RunDocument) -> Iterator[str]:
    """How many cells the answer rests on, and what became of the others."""
    planned, every = document.run.cells_planned, document.cells
    cells = [cell for cell in every if cell.replaced_by is None]
    passed = sum(cell.outcome == Outcome.PASSED for cell in cells)
    repeats = max((cell.repeat for cell in cells), default=1)
    again, missing = len(every) - len(cells), planned - len(cells)
    many = f", {repeats} repeats of each" if repeats > 1 and passed == planned else ""
    yield f"{passed} of {plural(planned, 'cell')} passed{many}."
    if again:
        yield f"{plural(again, 'more cell')} did not pass, and {'was' if again == 1 else 'were'} measured again."
    if missing > 0:
        yield f"{plural(missing, 'cell')} {'was' if missing == 1 else 'were'} never begun."
