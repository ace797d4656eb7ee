"""What a run answers to its scenario's question, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.comparison.result_table import Entry, Head, ResultTable
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure
from vmlab.analysis.record.bound import idle_disk_words
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words
from vmlab.model.run import RUN_TIME, WARM_UP, Outcome
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.report.bound_text import resource_word
from vmlab.report.comparison_text import row_name
from vmlab.report.figures import figure_text, form_of
from vmlab.report.run.table_heads import head_words, metric_words, value_words
from vmlab.report.run.target_text import missed_sentence
from vmlab.report.verdicts import sentence, untested_words, verdict_words
from vmlab.report.words import capital, plural, relative_number

_KNOWN = (Verdict.PROVEN, Verdict.NOT_PROVEN, Verdict.SAME)
_MOST = 6
"""Sentences about differences; a run with more has its tables below."""
_MOST_PLACES = 3
"""Places of the axes that have a sentence each."""


def answers(document: RunDocument) -> list[str]:
    """The answer, the most important first: differences, what bound the cells, and what makes it doubtful."""
    headlines = sorted(
        _headlines(document.tables), key=lambda one: not (one[3].difference and one[3].difference.proven)
    )
    found = [_sentence(*one) for one in headlines] if len(headlines) <= _MOST else list(_by_places(headlines))
    shown = found[:_MOST]
    if len(found) > _MOST:
        shown.append(f"{len(found) - _MOST} more differences stand in the tables.")
    if not shown:
        shown = ["Nothing is compared here: the figures stand in the tables below."]
    missed = missed_words(document)
    shown[1:1] = [missed] if missed else []
    return [*shown, *_limits(document), *_doubts(document)]


def missed_words(document: RunDocument) -> str:
    """The sentence on missed targets; empty where none was missed."""
    missed = missed_sentence(document.cells)
    return f"{capital(missed)}." if missed else ""


_Headline = tuple[ResultTable, Head, Head, Entry]


def _headlines(tables: Sequence[ResultTable]) -> Iterator[_Headline]:
    """Each figure that stands for a whole column, and is compared with that of the baseline."""
    for table in tables:
        for row, column, entry in table.each():
            if _is_headline(table, row) and entry.difference is not None and entry.figure.spread is not None:
                yield table, row, column, entry


def _by_places(headlines: Sequence[_Headline]) -> Iterator[str]:
    """A sentence for each figure, over all places of the other axes where it stands at several."""
    alike: dict[tuple[Head, Head], list[_Headline]] = {}
    for one in headlines:
        alike.setdefault((one[1], one[2]), []).append(one)
    for those in alike.values():
        table, row, column, _ = those[0]
        if len(those) == 1:
            yield _sentence(*those[0])
        else:
            known = [entry.difference for *_, entry in those if entry.difference is not None]
            who, what = _who(table, row, column), _what(table, row, column)
            yield f"{who} at {len(those)} places: {what} {_over_places(known)}."


def _is_headline(table: ResultTable, row: Head) -> bool:
    """Every row, or of run times alone the wall clock.

    Beside the throughput of a workload of fixed duration it says little, and is left out.
    """
    of_cells = [head for head in table.rows if WALL_SECONDS in dict(head).values()]
    others = [head for head in table.rows if METRICS in dict(head) and head not in of_cells]
    return not of_cells or (row not in of_cells if others else row in of_cells)


def _sentence(table: ResultTable, row: Head, column: Head, entry: Entry) -> str:
    base = baseline_of(table, row, column)
    place = f" at {axes_words(table.axes)}" if table.axes else ""
    unit = entry.reading.unit
    form = form_of(unit, (entry.figure, base) if base else (entry.figure,))
    figure = figure_text(entry.figure, unit, form, named=True)
    text = f"{_who(table, row, column)}{place}: {_what(table, row, column)} {figure}"
    if base is not None:
        text += f" against {figure_text(base, unit, form, named=True)}"
    assert entry.difference is not None
    return f"{text}; {_explained(entry.difference)}."


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
    """A difference with everything that it rests on."""
    if found.verdict in _KNOWN or found.percent is None:
        better = {True: "better, ", False: "worse, ", None: ""}[found.better]
        return f"{better}{sentence(found)}"
    return f"{relative_number(found.percent, 'difference')}, {sentence(found)}"


def comparison_answers(found: Comparison) -> Iterator[str]:
    """What the scenario asks for, of each candidate: a sentence for each place, or one for all where these are many.

    What is proven comes first.

    Of run times alone it is the total wall clock.
    """
    figures: dict[str, list[Row]] = {}
    for row in found.told(answered_metrics(found)):
        figures.setdefault(row_name(row), []).append(row)
    proven_first = sorted(figures.items(), key=lambda one: not any(d.proven for row in one[1] for d in row.differences))
    said = [sentence for name, rows in proven_first for sentence in _of_figure(found.labels, name, rows)]
    yield from said[:_MOST]
    if len(said) > _MOST:
        yield f"{len(said) - _MOST} more differences stand in the tables."


def answered_metrics(found: Comparison) -> tuple[str, ...]:
    """The metrics that the answer is about: of run times alone the total wall clock, which is else left out."""
    if set(found.asked) <= {RUN_TIME, WALL_SECONDS}:
        return (WALL_SECONDS,) if WALL_SECONDS in found.asked else found.asked
    return tuple(metric for metric in found.asked if metric != WALL_SECONDS)


def _of_figure(labels: Sequence[str], name: str, rows: Sequence[Row]) -> Iterator[str]:
    if len(rows) <= _MOST_PLACES:
        for row in rows:
            yield from _at_place(labels, row)
        return
    for number, label in enumerate(labels[1:]):
        known = [row.differences[number] for row in rows]
        yield f"{label} against {labels[0]} at {len(rows)} places: {name} {_over_places(known)}."


def _at_place(labels: Sequence[str], row: Row) -> Iterator[str]:
    place = f" at {axes_words(row.axes)}" if row.axes else ""
    for label, figure, difference in zip(labels[1:], row.figures[1:], row.differences, strict=True):
        form = form_of(row.unit, (figure, row.figures[0]))
        mine, theirs = (figure_text(one, row.unit, form, named=True) for one in (figure, row.figures[0]))
        yield f"{label} against {labels[0]}{place}: {row_name(row)} {mine} against {theirs}; {_explained(difference)}."


def _over_places(known: Sequence[Difference]) -> str:
    """``-40.4 % to +2.0 %; better, difference proven at 3 of 4, no difference proven at 1 of 4``."""
    percents = [one.percent for one in known if one.percent is not None]
    ends = [relative_number(end, "difference") for end in (min(percents), max(percents))] if percents else []
    tested = any(one.verdict in _KNOWN for one in known)
    if len(percents) == len(known) and not tested and len(why := {untested_words(one) for one in known}) == 1:
        return f"{' to '.join(dict.fromkeys(ends))}, {why.pop()}"
    counts = Counter(verdict_words(one) for one in known)
    words = ", ".join(f"{words} at {count} of {len(known)}" for words, count in counts.items())
    return "; ".join([*([" to ".join(dict.fromkeys(ends))] if ends else []), words])


def _limits(document: RunDocument) -> Iterator[str]:
    counted = [cell.bound_by for cell in document.cells if cell.repeat != WARM_UP]
    bound = [one.resource for one in counted if one is not None]
    if bound:
        for name in dict.fromkeys(bound):
            word = "none of the host's resources" if name == "none" else resource_word(name)
            cells = f"{bound.count(name)} of {plural(len(bound), 'cell')}"
            yield f"{capital(word)} was at its limit in {cells}."
    note = idle_disk_words(document.cells)
    if note is not None:
        yield f"{capital(note)}."


def _doubts(document: RunDocument) -> Iterator[str]:
    run = document.run
    bad = [cell for cell in document.cells if cell.outcome != Outcome.PASSED]
    if bad:
        yield f"{len(bad)} of {plural(len(document.cells), 'cell')} did not pass and are not counted."
    missing = run.cells_planned - len(document.cells)
    if missing > 0:
        yield f"{plural(missing, 'cell')} of {run.cells_planned} {'was' if missing == 1 else 'were'} never begun."
