"""Checks a publication's claims against a run: reproduced, not reproduced, cannot be decided, or not answerable here.

A claim says within which bounds a difference lies: below or beyond one for `less` and `greater`, between two for
`equal_within` and `ratio`. The interval of the run's own difference (`difference`) decides; for `at_least` and
`at_most` it is the figure itself that lies beyond a bound, and its own interval (`level_of`). Reproduced is what lies
wholly within the bounds, not reproduced what lies wholly outside. For `equal_within` and `ratio` that is a test of
equivalence: two one-sided tests (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987), each at 2.5 %.

A claim of several comparisons, such as for each of three values, is corrected by Bonferroni (`corrected_for`). Its
bounds are seldom at no difference, on which Holm's steps decide, and the same interval may be read in three ways;
Bonferroni's intervals hold all at once, however they are read. All comparisons that the claim names are counted, also
those that were not run, and each once for every time at which the run's claims are looked at (`looks` of `until`).

What the run's host and size cannot answer at all (`plan.claim_needs`) has no other answer, whatever was measured.

A sum of rates of tiles that did not all run at the same time is known between two bounds (`Reading.least`). The
interval is then from the one that the least possible difference has to the one that the greatest has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from vmlab.analysis.comparison.difference import NO_DIFFERENCE, Difference, Sides, Verdict, corrected_for, differences
from vmlab.analysis.comparison.gate import Level
from vmlab.analysis.comparison.judging import level_of
from vmlab.analysis.figures.reading import NOT_TOGETHER, Reading, find
from vmlab.analysis.figures.undelivered import undelivered_words
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import Spread, compared
from vmlab.analysis.statistics.sample_size import readings_needed
from vmlab.model.axes import axes_words
from vmlab.model.jsonable import fields_of, picked
from vmlab.model.quantities import written
from vmlab.model.scenarios.reference import TILE, Claim, Place, place_axes, printed_number, unit_factor
from vmlab.model.scenarios.table_words import Statistic
from vmlab.plan.claim_needs import ClaimCell, ClaimHost, unanswerable
from vmlab.plan.terms import AbsentPoint, Unanswerable

Known = Literal["reproduced", "not"]
Answer = Literal["reproduced", "not", "cannot tell", "not delivered", "not answerable here"]
NOT_HERE: Answer = "not answerable here"
_GRAVITY: tuple[Answer, ...] = ("reproduced", "cannot tell", "not", "not delivered")
_ANSWERABLE = Unanswerable()
_BARELY = math.ulp(0.0)
"""What is less or greater by no given percentage is so by more than nothing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two places of a claim, and the run's answer for them.

    `points_to` is what the estimate alone would answer, where the readings are too few for an interval; it is no
    answer. None where nothing can be compared, and where there is an interval. `level` is in place of the `difference`
    where one figure is held against a bound. Where a figure is known between two bounds alone, `difference` is the
    greatest that there may be, and `least` the least.
    """

    answer: Answer
    points_to: Known | None
    because: str
    difference: Difference = NO_DIFFERENCE
    least: Difference | None = None
    level: Level | None = None

    @property
    def has_figures(self) -> bool:
        """Whether there is anything to compare."""
        return self.level is not None or self.difference.percent is not None

    @property
    def too_few(self) -> bool:
        """Whether more repeats may give an answer where there is none."""
        if self.level is not None:
            return self.level.interval is None
        few = self.difference.verdict in (Verdict.ONE_EACH, Verdict.TOO_FEW)
        return few and self.difference.percent is not None

    def json_fields(self) -> dict[str, Any]:
        """The comparison as it stands in ``vmlab.reference/1``."""
        return {name: one for name, one in fields_of(self).items() if one is not None or name != "least"}


@dataclass(frozen=True, slots=True)
class AnsweredClaim:
    """A claim with the answers of its comparisons, and the figures behind them. It holds where it holds for all."""

    claim: Claim
    comparisons: tuple[Comparison, ...]
    evidence: tuple[Reading, ...]
    looks: int = 1
    """How often the run may be looked at, over which the error is divided."""
    unanswerable: Unanswerable = _ANSWERABLE
    """Why this host and this size cannot answer it; without a reason where they can."""

    @property
    def answer(self) -> Answer:
        """One comparison of cells that did not get what was set decides, then one that is not reproduced; without
        either, each must be.
        """
        if self.unanswerable.because:
            return NOT_HERE
        return max((one.answer for one in self.comparisons), key=_GRAVITY.index)

    @property
    def points_to(self) -> Known | None:
        """What the readings would answer if no chance were in them; None where there is an answer, or they do not."""
        if self.answer != "cannot tell":
            return None
        pointing = [one.points_to if one.answer == "cannot tell" else one.answer for one in self.comparisons]
        if "not" in pointing:
            return "not"
        return None if None in pointing else "reproduced"

    @property
    def because(self) -> tuple[str, ...]:
        """A sentence for each comparison that gives the reason, or the reasons why there is no answer here."""
        return self.unanswerable.because or tuple(one.because for one in self.comparisons)

    @property
    def of_emulation(self) -> tuple[str, ...]:
        """What the comparisons are, where emulation alone decides them: a sentence each, and no answer."""
        if not self.unanswerable.of_emulation:
            return ()
        return tuple(one.because for one in self.comparisons if one.has_figures)

    @property
    def readings_needed(self) -> int:
        """How many repeats an answer takes at least."""
        divisor = max((one.figure.level_divisor for one in self.evidence), default=1)
        return readings_needed(divisor * self.looks * self.claim.comparisons)

    @property
    def too_few(self) -> bool:
        """Whether there is no answer, and there may be one with more repeats."""
        return self.answer == "cannot tell" and any(one.too_few for one in self.comparisons)

    @property
    def open(self) -> bool:
        """Whether more repeats may answer it: it has figures to compare that do not decide it yet."""
        undecided = (one for one in self.comparisons if one.answer == "cannot tell")
        return self.answer == "cannot tell" and any(one.has_figures for one in undecided)

    def json_fields(self) -> dict[str, Any]:
        """The claim as it stands in ``vmlab.reference/1``."""
        said = ("say", "source", "where", "there", "contradicted", "bound")
        answered = ("answer", "points_to", "because", "of_emulation", "readings_needed", "comparisons", "evidence")
        of_claim = picked(self.claim, *said)
        of_claim["restates"] = self.claim.restates and self.claim.restates.model_dump()
        return of_claim | picked(self, *answered)


def answer_claim(document: RunDocument, claim: Claim) -> AnsweredClaim:
    """The answer of a run. A claim for each of several values holds where it holds for all of them.

    Where the run is looked at several times while it goes on, each look has its share of the error.
    """
    until = document.run.until
    # Looks at a table are in the level of each reading already.
    looks = len(until.looks) if until and until.looks and until.table_looks == 1 else 1
    combinations = [dict(zip(claim.each, chosen, strict=True)) for chosen in itertools.product(*claim.each.values())]
    found = answered(
        claim,
        [[_evidence(document, claim, {**each, **place}) for place in claim.places] for each in combinations],
        looks,
    )
    why = _unanswerable(document, claim)
    if not why.because:
        return found
    nothing = tuple(replace(one, answer=NOT_HERE, points_to=None) for one in found.comparisons)
    return replace(found, comparisons=nothing, unanswerable=why)


def _unanswerable(document: RunDocument, claim: Claim) -> Unanswerable:
    """Why the host and the size of a run cannot answer a claim, by what is recorded of them."""
    run = document.run
    ordered = run.host.get("ordered") or {}
    cpus, memory = (ordered.get(name) or run.host.get(name) for name in ("cpus", "memory_bytes"))
    once = {axes_words(cell.axes): cell for cell in document.cells}.values()
    cells = [ClaimCell(cell.axes, cell.settings, bool(cell.provision.guests)) for cell in once]
    absent = [AbsentPoint(axis, value, one.reason) for one in run.absent for axis, value in one.axes.items()]
    return unanswerable(claim, cells, absent, ClaimHost(run.accelerator, cpus, memory))


def answered(claim: Claim, evidence: Sequence[Sequence[Reading]], looks: int = 1) -> AnsweredClaim:
    """The answer by the figures of all its places, which stand together for each combination of values."""
    every, asked = tuple(itertools.chain.from_iterable(evidence)), looks * claim.comparisons
    if claim.is_of_levels:
        return AnsweredClaim(claim, tuple(_answered_level(claim, one, asked) for one in every), every, looks)
    pairs = [pair for found in evidence for pair in _pairs(claim, found)]
    doubts = [_undelivered(*pair) or _doubt(*pair) for pair in pairs]
    certain = [pair for pair, doubt in zip(pairs, doubts, strict=True) if doubt is None]
    least = _corrected(asked, [Sides(other.figure, one.lowest, None) for one, other in certain])
    most = least
    if any(map(_bounded, itertools.chain.from_iterable(certain))):
        most = _corrected(asked, [Sides(other.lowest, one.figure, None) for one, other in certain])
    found = zip(least, most, strict=True)
    comparisons = tuple(
        _answered(claim, one, other, *next(found)) if doubt is None else _doubtful(doubt, one, other)
        for (one, other), doubt in zip(pairs, doubts, strict=True)
    )
    return AnsweredClaim(claim, comparisons, every, looks)


def _corrected(asked: int, sides: Sequence[Sides]) -> list[Difference]:
    """The difference of each pair, one of so many that are asked about."""
    found = zip(sides, differences(sides), strict=True)
    return [corrected_for(asked, one.baseline, one.candidate, difference) for one, difference in found]


def _bounded(side: Reading) -> bool:
    """Whether the figure is known between two bounds alone."""
    return side.least is not None


def _evidence(document: RunDocument, claim: Claim, place: Place) -> Reading:
    metric = str(place.get("metric", claim.metric))
    statistic = cast(Statistic, place.get("statistic", claim.statistic))
    tile = cast(int | None, place.get(TILE))
    return replace(find(document, place_axes(place), metric, statistic, tile=tile), place=place)


def _pairs(claim: Claim, found: Sequence[Reading]) -> Iterator[tuple[Reading, Reading]]:
    """The pairs to compare: neighbours in a chain, or each with the first where all should be equal.

    The claim's percentages are of the second of a pair.
    """
    if claim.equal_within is not None:
        return ((found[0], other) for other in found[1:])
    return itertools.pairwise(found)


def _answered_level(claim: Claim, one: Reading, asked: int) -> Comparison:
    """The answer for a figure by itself, one of so many that are asked about."""
    if (doubt := _undelivered(one) or _doubt_of(one, bounded=False)) is not None:
        return _doubtful(doubt, one)
    unit = one.unit
    factor = unit_factor(claim.unit or unit, unit)
    if factor is None:
        return Comparison("cannot tell", None, f"{_told(one)}, which cannot be converted to {claim.unit}")
    bound = printed_number(cast(str, claim.value)).value * factor
    level = level_of(one.figure, bound, unit, asked)
    bounds = (bound, math.inf) if claim.at_least is not None else (-math.inf, bound)
    words = f"{_told(one)}, against {claim.kind.replace('_', ' ')} {_written(bound, unit)}"
    if level.interval is None:
        few = "one measurement, no spread known" if level.readings == 1 else "too few measurements"
        pointed = _lying(level.estimate, level.estimate, bounds)
        return Comparison("cannot tell", pointed, f"{words}, {few}", level=level)
    ends = " to ".join(_written(end, unit) for end in level.interval)
    words = f"{words} ({ends} at {level.confidence:.4g} % confidence)"
    return Comparison(_lying(*level.interval, bounds) or "cannot tell", None, words, level=level)


def bounds_of(claim: Claim) -> tuple[float, float]:
    """Between which differences of the first place, in percent of the second, the claim is true; not of levels."""
    if claim.less is not None:
        return -math.inf, -(claim.by or _BARELY)
    if claim.greater is not None:
        return claim.by or _BARELY, math.inf
    wanted = printed_number(claim.value).value if claim.value is not None else 1.0
    return 100 * wanted * (1 - claim.tolerance / 100) - 100, 100 * wanted * (1 + claim.tolerance / 100) - 100


def _lying(low: float, high: float, bounds: tuple[float, float], size: float = 0.0) -> Known | None:
    """Where figures from `low` to `high` lie: wholly within `bounds`, wholly outside, or neither.

    One at a bound, but for rounding, is within; `size` is as of `compared`.
    """
    # No difference is 0 to the last bit.
    size = 0.0 if _BARELY in map(abs, bounds) else size
    ends = [(compared(low, bound, size), compared(high, bound, size)) for bound in bounds]
    if ends[0][0] >= 0 >= ends[1][1]:
        return "reproduced"
    return "not" if ends[0][1] < 0 or ends[1][0] > 0 else None


def _answered(claim: Claim, one: Reading, other: Reading, least: Difference, most: Difference) -> Comparison:
    """The answer by the least and the greatest difference that there may be, which are the same one mostly."""
    if least.percent is None or most.percent is None:
        return Comparison("cannot tell", None, f"{_told(other)}, of which there is no percentage", most)
    bounds = bounds_of(claim)
    ordered = claim.less is not None or claim.greater is not None
    between = "against" if ordered else "over"
    words = f"{_told(one)} {between} {_told(other)}{_differing(least, most, ordered=ordered)}"
    bounded = least if _bounded(one) or _bounded(other) else None
    pointed = _lying(least.percent, most.percent, bounds, 100)
    if bounded is not None and pointed is None:
        # However many repeats there were, the interval would lie across a bound.
        return Comparison("cannot tell", None, f"{words}: {NOT_TOGETHER}")
    if least.interval is None or most.interval is None:
        return Comparison("cannot tell", pointed, f"{words}, {most.obstacle}", most, bounded)
    answer = _lying(least.interval[0], most.interval[1], bounds, 100)
    return Comparison(answer or "cannot tell", None, words, most, bounded)


def _differing(least: Difference, most: Difference, *, ordered: bool) -> str:
    """The difference, as a percentage or as a ratio, with its interval as far as there is one."""
    ends = [least.percent, most.percent, *(least.interval or ())[:1], *(most.interval or ())[1:]]
    low, high, *interval = (f"{end:+.1f}" if ordered else f"{1 + end / 100:.3f}" for end in ends if end is not None)
    estimate = low if low == high else f"{low} to {high}"
    text = f", {estimate} %" if ordered else f" is {estimate}"
    return f"{text} ({' to '.join(interval)} at {most.confidence:.4g} % confidence)" if interval else text


def _undelivered(*sides: Reading) -> str | None:
    """What was set and not delivered in cells of the places; None where there is nothing of the kind."""
    return undelivered_words(lever for side in sides for lever in side.figure.undelivered) or None


def _doubtful(doubt: str, *sides: Reading) -> Comparison:
    return Comparison("not delivered" if _undelivered(*sides) else "cannot tell", None, doubt)


def _doubt(one: Reading, other: Reading) -> str | None:
    """Why two places cannot be compared; None where they can."""
    doubts = [doubt for side in (one, other) if (doubt := _doubt_of(side)) is not None]
    if not doubts and one.unit != other.unit:
        return f"{axes_words(one.place)} and {axes_words(other.place)}: the metrics have different units"
    return doubts[0] if doubts else None


def _doubt_of(side: Reading, *, bounded: bool = True) -> str | None:
    """Why a figure says nothing. `bounded`: a sum between two bounds says something."""
    if side.reason:
        return side.reason
    if side.figure.comparable is None:
        return f"{axes_words(side.place)}: the metric is {side.figure.state}"
    if side.apart and not (bounded and _bounded(side)):
        return f"{axes_words(side.place)}: {NOT_TOGETHER}"
    return None


def _told(side: Reading) -> str:
    spread = cast(Spread, side.figure.spread)
    cells = ", ".join(map(str, side.cells))
    figure = _written(spread.mean, side.unit)
    if side.least is not None and side.least.spread is not None:
        figure = f"{_written(side.least.spread.mean, side.unit)} to {figure}"
    return f"{axes_words(side.place)}: {figure} (n {spread.count}, cell{'s' if len(side.cells) > 1 else ''} {cells})"


def _written(value: float, unit: str) -> str:
    """A figure with its unit, with four digits or all before the point."""
    form = written(unit, [value])
    value *= form.factor
    digits = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{digits} {form.unit}".rstrip()
