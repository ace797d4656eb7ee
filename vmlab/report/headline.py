"""A comparison in one line, and in a paragraph: what is proven, where nothing is, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.report.bound_text import limit_words
from vmlab.report.comparison_text import row_name
from vmlab.report.heading import behind_words
from vmlab.report.verdicts import (
    interval_text,
    long_text,
    percent_text,
    readings_words,
    to_find_words,
    unit_of,
    untested_words,
)
from vmlab.report.words import capital, plural

_MOST_NAMED = 4
_TIMES = ("s", "ms", "us")
_VERDICTS = {"time": ("FASTER", "SLOWER", "DIFFERENT"), "": ("BETTER", "WORSE", "DIFFERENT")}


def headline(comparison: Comparison, metrics: Sequence[str] = ()) -> str:
    """The answer in a line, on the rows of `metrics` or on all, with what the figures were read under at its end."""
    rows = [row for row in comparison.told(metrics) if row.differences]
    parts = [_of_side(rows, place, label) for place, label in enumerate(comparison.labels[1:])]
    told = "; ".join(part for part in parts if part)
    if not told:
        return "NOTHING IS COMPARED: no metric passed on both sides"
    return ", ".join([told, *behind_words(comparison.accelerators, comparison.ordered)])


def repeats_to_tell(comparison: Comparison, metrics: Sequence[str] = ()) -> int | None:
    """How many repeats a run needs where these are too few for any proof; None where they are not."""
    found = [one for row in comparison.told(metrics) for one in row.differences]
    needed = [one.needed or 0 for one in found if one.obstacle and one.paired]
    return max(needed, default=0) or None if not any(one.proven for one in found) else None


def _of_side(rows: Sequence[Row], place: int, label: str) -> str:
    every = [(row, row.differences[place]) for row in rows]
    found = [(row, one) for row, one in every if one.percent is not None and one.verdict != Verdict.SAME]
    if not found:
        reasons = dict.fromkeys(one.because for _, one in every if one.verdict == Verdict.NOT_DELIVERED)
        if reasons:
            return f"{label}: NOT DELIVERED: {'; '.join(reasons)}"
        return f"{label}: THE SAME" if any(one.verdict == Verdict.SAME for _, one in every) else ""
    lacking = [row_name(row) for row, one in every if one.verdict == Verdict.NOT_DELIVERED]
    undelivered = f" (not delivered: {_some(lacking)})" if lacking else ""
    proven = [(row, one) for row, one in found if one.proven]
    if not proven:
        return _unproven(found, label) + undelivered
    words = _VERDICTS["time" if all(row.unit in _TIMES for row, _ in proven) else ""]
    parts = [
        f"{word}: {_named([(row, one) for row, one in proven if one.better is better])}"
        for word, better in zip(words, (True, False, None), strict=True)
        if any(one.better is better for _, one in proven)
    ]
    rest = [row_name(row) for row, one in found if not one.proven]
    more = f" (not proven for {rest[0] if len(rest) == 1 else plural(len(rest), 'other metric')})" if rest else ""
    return f"{label.upper()} IS {', and '.join(parts)}{more}{undelivered}"


def _unproven(found: Sequence[tuple[Row, Difference]], label: str) -> str:
    untested = [one for _, one in found if one.obstacle]
    if untested:
        most = max(untested, key=lambda one: one.family)
        has = f"{readings_words(most)}, needs {most.needed}" if most.needed else most.obstacle
        return f"{label}: CANNOT TELL YET: {has}"
    named = [f"{row_name(row)} {interval_text(one)[1:-1]} %" for row, one in found if one.interval]
    return f"{label}: NO DIFFERENCE PROVEN ({_some(named)})" if named else f"{label}: NO DIFFERENCE PROVEN"


def _named(proven: Sequence[tuple[Row, Difference]]) -> str:
    return _some([f"{row_name(row)} {percent_text(one)}" for row, one in proven])


def explanation(comparison: Comparison) -> list[str]:
    """A paragraph for each candidate, about what the scenario asks for.

    It says what differs, of what that is not proven, how many readings it would take, and which of the host's resources
    were at their limit.
    """
    rows = [row for row in comparison.told(comparison.asked) if row.differences]
    several = len({str(row.axes) for row in rows}) > 1
    baseline, *candidates = comparison.labels
    paragraphs = []
    for place, label in enumerate(candidates):
        named = [(_at(row, several=several), row.differences[place]) for row in rows]
        others = [row.differences_at_best[place] for row in rows]
        sentences = [
            *_differing(named),
            *_not_proven(named),
            *_untested(named),
            *_same(named),
            *_at_best_speed(named, others),
            *_limits(comparison, place),
            *_no_overall(comparison, place),
        ]
        behind = ", ".join(behind_words(comparison.accelerators, comparison.ordered))
        under = f", {behind}" if behind else ""
        paragraphs.append(f"{label} against {baseline}{under}: {' '.join(sentences)}")
    return paragraphs


_Named = Sequence[tuple[str, Difference]]


def _no_overall(comparison: Comparison, place: int) -> Iterator[str]:
    """Why several workloads have no overall figure."""
    for one in comparison.overall:
        if one.because and one.differences[place].percent is None:
            at = f" at {axes_words(one.axes)}" if one.axes else ""
            yield f"No overall value{at}: {one.because}."


def _at(row: Row, *, several: bool) -> str:
    return f"{row_name(row)} at {axes_words(row.axes)}" if several and row.axes else row_name(row)


def _differing(named: _Named) -> Iterator[str]:
    """What is proven to be better, worse or other."""
    proven = [(name, one) for name, one in named if one.proven]
    if not proven:
        yield "no difference is proven."
        return
    parts = [
        f"{word} for {_some([f'{name} ({long_text(one)})' for name, one in proven if one.better is better])}"
        for word, better in (("better", True), ("worse", False), ("different", None))
        if any(one.better is better for _, one in proven)
    ]
    yield f"proven to be {' and '.join(parts)}."


def _not_proven(named: _Named) -> Iterator[str]:
    """What was tested and not proven, what these readings would find there, and what more of them."""
    those = [(name, one) for name, one in named if one.verdict == Verdict.NOT_PROVEN]
    if not those:
        return
    found = [one.detectable for _, one in those if one.detectable]
    enough = f"; a difference of {max(found):.1f} % would have been found in four of five cases" if found else ""
    yield f"No difference is proven for {_some([f'{name} ({long_text(one)})' for name, one in those])}{enough}."
    takes = [f"{to_find_words(one)} for {name}" for name, one in those if one.percent]
    if takes:
        yield f"{capital(unit_of(those[0][1]))} that would prove a difference as large as seen: {_some(takes)}."


def _untested(named: _Named) -> Iterator[str]:
    """What has too few readings, what is not compared, and what was not delivered."""
    for those in grouped((one.obstacle, (name, one)) for name, one in named if one.obstacle).values():
        why = untested_words(max((one for _, one in those), key=lambda one: one.family))
        yield f"No verdict on {_some([f'{name} ({percent_text(one)})' for name, one in those])}: {why}."
    missing = [name for name, one in named if one.verdict == Verdict.NOT_COMPARED]
    if missing:
        yield f"Not compared, as a side has no value that passed: {_some(missing)}."
    reasons = grouped((one.because, name) for name, one in named if one.verdict == Verdict.NOT_DELIVERED)
    for because, names in reasons.items():
        yield f"No verdict on {_some(names)}, as what was set was not delivered: {because}."


def _same(named: _Named) -> Iterator[str]:
    """Amounts of work that are equal on both sides."""
    those = [name for name, one in named if one.verdict == Verdict.SAME]
    if those:
        yield f"The same on both sides: {_some(those)}."


def _at_best_speed(named: _Named, others: Sequence[Difference | None]) -> Iterator[str]:
    """Where the verdict differs at the CPUs' best speed."""
    moved = [
        f"{name} ({other.verdict.words}, {long_text(other)})"
        for (name, one), other in zip(named, others, strict=True)
        if other is not None and other.verdict != one.verdict
    ]
    if moved:
        yield f"At the CPUs' best speed the verdict differs for {_some(moved)}."


def _limits(comparison: Comparison, place: int) -> Iterator[str]:
    """Which resources were at their limit on both sides, by their cells."""
    before, after = comparison.bound[0], comparison.bound[place + 1]
    if not before or not after:
        yield "Which resource was at its limit is not known, as the host was not recorded."
    else:
        sides = {comparison.labels[0]: Counter(before), comparison.labels[place + 1]: Counter(after)}
        yield f"{capital(limit_words(sides))}."


def _some(words: Sequence[str]) -> str:
    """The first words, and how many more there are."""
    rest = len(words) - _MOST_NAMED
    return ", ".join([*words[:_MOST_NAMED], *([f"{rest} more"] if rest > 0 else [])])
