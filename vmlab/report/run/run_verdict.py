"""What a run's tables prove, in a line for each candidate: the first that is said of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.comparison.result_table import Head, ResultTable
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.run import AxisValue, Outcome
from vmlab.model.scenarios.table_words import METRICS
from vmlab.report.run.shown_tables import head_words, value_words
from vmlab.report.verdicts import readings_words
from vmlab.report.words import listed, plural

_TIMES = ("s", "ms", "us")
_MOST_NAMED = 4
_MOST_LINES = 4
NO_VALID, NONE_PASSED, ONE_CONFIGURATION = "no cell is valid", "no cell passed", "one configuration"


class Found(NamedTuple):
    """A difference by the name of its figure, and the figure's unit."""

    name: str
    unit: str
    difference: Difference


def run_verdicts(tables: Sequence[ResultTable]) -> list[str]:
    """A sentence for each candidate, of what is proven, or what that takes; [] where nothing is compared."""
    sides = grouped(
        (_sides_of(table, row, column), Found(_name(tables, table, row, column), entry.reading.unit, entry.difference))
        for table in tables
        for row, column, entry in table.each()
        if entry.difference is not None
    )
    said = [text for sides_, found in sides.items() if (text := verdict_sentence(*sides_, found))]
    rest = len(said) - _MOST_LINES
    return said if rest <= 1 else [*said[:_MOST_LINES], f"{rest} more are in the tables."]


def brief_verdict(tables: Sequence[ResultTable]) -> str:
    """The same of the first candidate in a few words, such as ``writeback better in 3 of 3``; "" without one."""
    sides = grouped(
        (_sides_of(table, row, column)[0], entry.difference)
        for table in tables
        for row, column, entry in table.each()
        if entry.difference is not None and entry.difference.is_compared and entry.difference.percent is not None
    )
    if not sides:
        return ""
    told = {candidate: _brief(found) for candidate, found in sides.items()}
    # What is proven comes first.
    candidate = next((one for one, text in told.items() if " in " in text), next(iter(told)))
    more = f", {len(told) - 1} more" if len(told) > 1 else ""
    return f"{told[candidate] if told[candidate][0].isupper() else f'{candidate} {told[candidate]}'}{more}"


def uncompared_words(document: RunDocument) -> str:
    """Why a run has no verdict, such as `NO_VALID`; "" for one without cells, and for a recording."""
    cells = [cell for cell in document.cells if cell.replaced_by is None]
    if cells and not any(cell.outcome == Outcome.PASSED for cell in cells):
        return NO_VALID if all(cell.outcome == Outcome.INVALID for cell in cells) else NONE_PASSED
    if document.recording is not None or not cells:
        return ""
    return ONE_CONFIGURATION if len({axes_words(cell.axes) for cell in cells}) == 1 else "nothing is compared"


def _brief(found: Sequence[Difference]) -> str:
    proven = [one for one in found if one.proven]
    if proven:
        ways = {True: "better", False: "worse", None: "different"}
        words = dict.fromkeys(ways[one.better] for one in proven)
        return f"{' and '.join(words)} in {len(proven)} of {len(found)}"
    return "Cannot tell yet" if any(one.obstacle for one in found) else "No difference proven"


def _sides_of(table: ResultTable, row: Head, column: Head) -> tuple[str, str]:
    """The candidate and the baseline, by the values of the axes in which they differ."""
    own = {**table.axes, **table.fixed, **dict(row), **dict(column)}
    return _values({part: own[part] for part in table.baseline if part in own}), _values(table.baseline)


def _values(parts: Mapping[str, AxisValue]) -> str:
    return ", ".join(value_words(part, value) for part, value in parts.items())


def _name(tables: Sequence[ResultTable], table: ResultTable, row: Head, column: Head) -> str:
    """What is compared, and at which place where there are several."""
    parts = tuple((part, value) for part, value in (*row, *column) if part not in table.baseline)
    fixed = tuple((part, value) for part, value in table.fixed.items() if part != METRICS)
    place = [axes_words(table.axes)] if table.axes and len({str(one.axes) for one in tables}) > 1 else []
    words = head_words((*fixed, *parts)) if fixed or parts else ""
    return ", ".join(filter(None, [words, *place])) or "all cells"


def verdict_sentence(candidate: str, baseline: str, found: Sequence[Found]) -> str:
    """What is known of a candidate against its baseline; empty where nothing of it is compared."""
    known = [one for one in found if one.difference.is_compared and one.difference.percent is not None]
    known = [one for one in known if one.difference.verdict != Verdict.SAME]
    lacking = sum(one.difference.verdict == Verdict.NOT_DELIVERED for one in found)
    undelivered = f" No verdict on {plural(lacking, 'metric')}, as what was set was not delivered." if lacking else ""
    if not known:
        return f"{candidate} against {baseline}:{undelivered}" if lacking else ""
    if any(one.difference.proven for one in known):
        return _proven_words(candidate, baseline, known) + undelivered
    if any(one.difference.obstacle for one in known):
        return _pointing_words(candidate, baseline, known) + undelivered
    return _unproven_words(candidate, baseline, known) + undelivered


def _proven_words(candidate: str, baseline: str, known: Sequence[Found]) -> str:
    proven = [one for one in known if one.difference.proven]
    words = ("FASTER", "SLOWER") if all(one.unit in _TIMES for one in proven) else ("BETTER", "WORSE")
    by_word = {
        word: [one for one in proven if one.difference.better is better]
        for word, better in ((words[0], True), (words[1], False), ("DIFFERENT", None))
    }
    by_word = {word: those for word, those in by_word.items() if those}
    rest = [one for one in known if not one.difference.proven]
    not_proven = f"; not proven for {_named(rest)}" if rest else ""
    if len(by_word) == 1:
        ((word, those),) = by_word.items()
        than = "FROM" if word == "DIFFERENT" else "THAN"
        of = f"all {plural(len(those), 'metric')}" if not rest and len(those) > 1 else _named(those)
        return f"{candidate.upper()} IS {word} {than} {baseline.upper()}: proven for {of}{not_proven}."
    parts = [f"{word} for {_named(those)}" for word, those in by_word.items()]
    return f"{candidate.upper()} AGAINST {baseline.upper()} IS {' AND '.join(parts)}: proven{not_proven}."


def _pointing_words(candidate: str, baseline: str, known: Sequence[Found]) -> str:
    """Where there are too few readings: what they point to, and what would prove it."""
    most = max((one.difference for one in known if one.difference.obstacle), key=lambda one: one.needed or 0)
    words = ("faster", "slower") if all(one.unit in _TIMES for one in known) else ("better", "worse")
    counts = {
        word: sum(_is_better(one.difference) is better for one in known)
        for word, better in zip(words, (True, False), strict=True)
    }
    counts = {word: count for word, count in counts.items() if count}
    points = "point" if most.readings > 1 else "points"
    if len(counts) == 1:
        ((word, count),) = counts.items()
        of = f"all {count}" if count == len(known) else f"{count} of {len(known)}"
        where = f"in {of} metrics" if len(known) > 1 else f"for {_named(known)}"
        said = f"{points} to {candidate} being {word} than {baseline}, {where}"
    elif counts:
        (better, some), (worse, others) = counts.items()
        both = f"{better} than {baseline} in {some} and {worse} in {others}"
        said = f"{points} both ways, as {candidate} is {both} of {len(known)} metrics"
    else:
        said = f"{points} to no difference between {candidate} and {baseline}"
    needs = f"; a proof takes {most.needed} {'repeats' if most.paired else 'runs a side'}" if most.needed else ""
    return f"CANNOT TELL YET: {readings_words(most)} {said}{needs}."


def _is_better(found: Difference) -> bool | None:
    if not found.percent or found.more_is_better is None:
        return None
    return (found.percent > 0) == found.more_is_better


def _unproven_words(candidate: str, baseline: str, known: Sequence[Found]) -> str:
    seen = [one.difference.detectable for one in known if one.difference.detectable]
    enough = f"; one of {max(seen):.1f} % would have been found in four of five cases" if seen else ""
    readings = readings_words(max((one.difference for one in known), key=lambda one: one.readings))
    of = plural(len(known), "metric")
    return f"NO DIFFERENCE PROVEN between {candidate} and {baseline}, in {of}: {readings}{enough}."


def _named(found: Sequence[Found]) -> str:
    names = list(dict.fromkeys(one.name for one in found))
    if len(names) > _MOST_NAMED:
        return plural(len(found), "metric")
    return listed(names)


def needed_repeats(tables: Sequence[ResultTable]) -> int | None:
    """How many repeats of each cell prove anything, where these are too few; None where they are not."""
    found = (entry.difference for table in tables for *_, entry in table.each())
    needed = (one.needed for one in found if one is not None and one.obstacle and one.paired and one.needed)
    return max(needed, default=None)
