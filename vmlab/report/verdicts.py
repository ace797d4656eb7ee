"""Differences in words: in a column, as a sentence, and as the notes below a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.comparison.overall import Overall
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.shape import RunPart, UntilDocument
from vmlab.analysis.statistics.sample_size import ALPHA, MOST, STATED, level_divisor
from vmlab.model.grouping import grouped
from vmlab.model.run import RUN_TIME
from vmlab.report.figures import value_words
from vmlab.report.words import NOT_MEASURED, in_brackets, listed, plural, relative_number

if TYPE_CHECKING:
    # It brings pydantic, which would delay the console's first picture.
    from vmlab.model.scenarios.table_words import Relative

UNPROVEN = "~"
"""Marks a difference that the test found no proof of."""
UNTESTED = "?"
"""Marks a difference of readings that are too few for any proof."""
SAME = "same"
"""Stands in place of a difference between amounts of work that are equal on both sides."""
_MARKS = {
    Verdict.NOT_PROVEN: UNPROVEN,
    Verdict.TOO_FEW: UNTESTED,
    Verdict.ONE_EACH: UNTESTED,
    Verdict.ONE_A_SIDE: UNTESTED,
}
_NAMED = 8
"""So many figures are named in a note, and the others counted."""


def percent_text(found: Difference) -> str:
    """``-61.4 %`` where that is proven; ``~ -1.2 %`` or ``? -1.2 %`` where it is not; a dash for nothing to compare."""
    return relative_text(found, "difference")


def relative_text(found: Difference, relative: Relative) -> str:
    """``0.750``, ``126 %`` or as asked, behind a mark unless it is proven; a dash for nothing to compare.

    ``same`` for an amount of work that is the same.
    """
    if found.verdict == Verdict.SAME:
        return SAME
    if found.verdict == Verdict.NOT_DELIVERED:
        return found.verdict.words
    value = found.as_asked(relative)
    if value is None:
        return NOT_MEASURED
    text, mark = relative_number(value, relative), _MARKS.get(found.verdict)
    return f"{mark} {text}" if mark else text


def interval_text(found: Difference, relative: Relative = "difference") -> str:
    """``(-63.0 to -59.9)``, the interval of a difference; empty where it has none."""
    return in_brackets(None if found.verdict == Verdict.SAME else found.interval_as_asked(relative), relative)


def difference_parts(found: Difference) -> tuple[str, str]:
    """A difference, and its interval, empty where it has none."""
    return percent_text(found), interval_text(found)


def long_text(found: Difference, relative: Relative = "difference") -> str:
    """A difference with its interval, as far as it has one."""
    return f"{relative_text(found, relative)} {interval_text(found, relative)}".rstrip()


def verdict_words(found: Difference) -> str:
    """The verdict, with what is better or worse where that is proven."""
    if found.better is None:
        return found.verdict.words
    return f"{'better' if found.better else 'worse'}, {found.verdict.words}"


def difference_words(found: Difference) -> str:
    """``+21.3 % (one reading each)``: the difference with its interval, and what is known of it."""
    if found.percent is None or found.verdict == Verdict.SAME:
        return found.verdict.words
    return f"{_unmarked(found)}, {verdict_words(found)}"


def sentence(found: Difference) -> str:
    """The verdict with everything that it rests on."""
    if found.verdict == Verdict.NOT_COMPARED:
        return "not compared: a side has no value that passed"
    if found.verdict == Verdict.NOT_DELIVERED:
        return f"{found.verdict.words}, {found.because}"
    if found.verdict == Verdict.SAME:
        return _same_words(found)
    tested = found.verdict in (Verdict.PROVEN, Verdict.NOT_PROVEN)
    parts = [_tested(found) if tested else untested_words(found)]
    if found.verdict == Verdict.NOT_PROVEN and found.detectable:
        parts.append(f"{readings_words(found)} find {found.detectable:.1f} % or more in four of five cases")
        parts.append(f"one as large as seen takes {to_find_words(found)}")
    return "; ".join([*parts, *_noise(found)])


def _tested(found: Difference) -> str:
    """An estimate with the interval and p of its test."""
    p = f"p {found.p_adjusted:.2g}{_corrected(found)}"
    return f"{found.verdict.words}: {_interval_words(found)}, {p}, {readings_words(found)}"


def estimate_words(found: Difference) -> str:
    """A difference that has an interval, with that and the readings that it rests on, and without a verdict."""
    if found.verdict == Verdict.SAME:
        return _same_words(found)
    parts = [_interval_words(found), _corrected(found).strip(), readings_words(found)]
    return "; ".join([", ".join(filter(None, parts)), *_noise(found)])


def _same_words(found: Difference) -> str:
    return f"{found.verdict.words} on both sides, {readings_words(found)}"


def _corrected(found: Difference) -> str:
    over = [plural(found.family, "metric")] if found.family > 1 else []
    over += ["several analyses"] if found.level_divisor > 1 else []
    return f" corrected for {' and '.join(over)}" if over else ""


def _noise(found: Difference) -> list[str]:
    return [] if found.noise is None else [f"up to {found.noise:.1f} % is this host's noise"]


def _interval_words(found: Difference) -> str:
    size = f"{_unmarked(found)} " if found.percent is not None else ""
    return f"{size}at {found.confidence:.4g} % confidence"


def _unmarked(found: Difference, relative: Relative = "difference") -> str:
    """A difference with its interval in a sentence, which has its verdict in words."""
    return long_text(found, relative).removeprefix(_MARKS.get(found.verdict, "")).lstrip()


def overall_words(found: Overall, baseline: str, candidates: Sequence[str]) -> Iterator[str]:
    """A line for each candidate: how many times as fast, or as good, it is as the baseline over all workloads."""
    names = [name if metric == RUN_TIME else f"{name} {metric}" for name, metric in found.metrics.items()]
    of = listed(names) if len(names) <= _NAMED else f"{len(names)} metrics"
    for candidate, one in zip(candidates, found.differences, strict=True):
        if one.percent is not None:
            size = f"{_unmarked(one, 'ratio')} times as {'fast' if found.speed else 'good'} as {baseline}"
            words = "; ".join([f"{candidate} is {size}, {verdict_words(one)}", *_noise(one)])
            yield f"overall, the geometric mean of {of}: {words}"


def untested_words(found: Difference) -> str:
    """Why there is no verdict, and what it takes to have one."""
    why = _why_untested(found)
    if found.verdict == Verdict.ONE_A_SIDE and found.paired:
        return why
    of = f" in one of {found.family} metrics" if found.family > 1 else ""
    return f"{why}; to prove a difference{of} takes {found.needed} {unit_of(found)} at least"


def _why_untested(found: Difference) -> str:
    too_few = found.verdict == Verdict.TOO_FEW and not found.because
    return f"{found.obstacle}: {readings_words(found)}" if too_few else found.obstacle


def readings_words(found: Difference) -> str:
    """``3 repeats``, or ``3 runs a side``."""
    return plural(found.readings, "repeat") if found.paired else f"{plural(found.readings, 'run')} a side"


def unit_of(found: Difference) -> str:
    """What its readings are, where there are several: repeats of one run, or runs."""
    return "repeats" if found.paired else "runs a side"


def to_find_words(found: Difference) -> str:
    """How many readings prove a difference as large as this one: ``about 40``."""
    return f"more than {MOST}" if found.to_find is None else f"about {found.to_find}"


def difference_notes(named: Iterable[tuple[str, Difference]], *, intervals: bool = True) -> Iterator[str]:
    """A line for each mark that differences under these names have in a table, and one for their `intervals`."""
    named = list(named)
    yield from _undelivered_notes(named)
    shown = [(name, found) for name, found in named if found.percent is not None]
    tested = [found for _, found in shown if found.interval and found.verdict != Verdict.SAME]
    if tested and intervals:
        yield _interval_note(tested)
    unproven = [(name, found) for name, found in shown if found.verdict == Verdict.NOT_PROVEN and found.percent != 0]
    if unproven:
        words = _joined([f"{name} {to_find_words(found)}" for name, found in unproven])
        yield f"{UNPROVEN}: no difference proven; {unit_of(unproven[0][1])} that one as large as seen takes: {words}"
    yield from _untested_notes([(name, found) for name, found in shown if _MARKS.get(found.verdict) == UNTESTED])


def _undelivered_notes(named: Sequence[tuple[str, Difference]]) -> Iterator[str]:
    """A line for each reason why differences have no verdict, as something that was set was not delivered."""
    reasons = grouped((found.because, name) for name, found in named if found.verdict == Verdict.NOT_DELIVERED)
    for because, names in reasons.items():
        yield f"{Verdict.NOT_DELIVERED}, so without a verdict: {_joined(names)}: {because}"


def look_notes(run: RunPart) -> Iterator[str]:
    """What it means for the tests of a run that its tables were looked at several times; nothing of any other run."""
    if run.until is not None and run.until.table_looks > 1:
        yield planned_words(run.until)
    if run.extended:
        yield extended_words(level_divisor(len(run.extended)))


def planned_words(until: UntilDocument) -> str:
    """After how many repeats the tables of a run are looked at, at which level, and why it ended."""
    *early, last = map(str, until.looks or ())
    why = ", as more would prove no further difference" if until.reached else ""
    ended = f", ended after {until.repeats}{why}" if until.repeats is not None else ""
    return (
        f"planned interim analyses after {', '.join(early)} and {last} repeats{ended}: each judged at "
        f"{100 * ALPHA / until.table_looks:.4g} %; "
        f"over all {until.table_looks} analyses a false positive has a chance of at most {100 * ALPHA:g} %"
    )


def extended_words(divisor: int) -> str:
    """At which level the tests of a run are made to which repeats were added, and at which all that were made."""
    times = divisor.bit_length() - 1
    often = {1: "once", 2: "twice"}.get(times, f"{times} times")
    return (
        f"repeats were added {often} after the run had ended: judged at {100 * ALPHA / divisor:.4g} %; "
        f"over all {times + 1} analyses a false positive has a chance of at most {100 * STATED:g} %"
    )


def _untested_notes(untested: Sequence[tuple[str, Difference]]) -> Iterator[str]:
    """A line for each reason and number of readings needed, which names its figures where there are several."""
    reasons = grouped(((_why_untested(found), found.needed), (name, found)) for name, found in untested)
    for those in reasons.values():
        text = untested_words(max((found for _, found in those), key=lambda found: found.family))
        yield (
            f"{UNTESTED} {_joined([name for name, _ in those])}: {text}" if len(reasons) > 1 else f"{UNTESTED}: {text}"
        )


def outlier_notes(named: Iterable[tuple[str, Figure, str]]) -> Iterator[str]:
    """A line with the readings that lie far from the others of their figure; each comes with its name and unit."""
    found = [
        f"{name}, {_which(figure, one)}: {value_words(one.value, unit)}"
        for name, figure, unit in named
        for one in figure.outliers
    ]
    if found:
        yield f"far from the other values, but counted: {_joined(found)}"


def _which(figure: Figure, one: OneReading) -> str:
    """Which repeat a reading is of, and of several runs also which run."""
    if len({reading.run for reading in figure.readings}) < 2:
        return f"repeat {one.repeat}"
    several = sum(reading.run == one.run for reading in figure.readings) > 1
    return f"run {one.run}, repeat {one.repeat}" if several else f"run {one.run}"


def _interval_note(tested: Sequence[Difference]) -> str:
    tests = " or ".join(dict.fromkeys(str(found.test) for found in tested))
    families = {found.family for found in tested}
    corrected = f", corrected for {max(families)} metrics by Holm" if max(families) > 1 else ""
    least = 100 * (1 - ALPHA / max(found.level_divisor for found in tested))
    return f"in brackets: interval of the difference, at {least:.4g} % confidence at least, by {tests}{corrected}"


def _joined(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    between = "; " if any("," in name for name in names) else ", "
    return between.join([*names[:_NAMED], *more])
