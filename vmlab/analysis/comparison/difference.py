"""What one figure is against another: how much it differs, whether that is established, which side is better.

Every table, document and screen that shows figures side by side has the differences of this module. What is tested,
and what the verdicts mean, is in docs/explanation/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from vmlab.analysis.figures.figure import Figure
from vmlab.analysis.figures.pairing import NO_COMMON_REPEAT, Pairing, pairing_of
from vmlab.analysis.figures.undelivered import undelivered_words
from vmlab.analysis.statistics.rank_test import ShiftTest
from vmlab.analysis.statistics.sample_size import ALPHA, detectable, readings_needed, readings_to_find
from vmlab.model.jsonable import INNER, fields_of, key

if TYPE_CHECKING:
    # It brings pydantic, which would delay the console's first picture.
    from vmlab.model.scenarios.table_words import Relative


class Verdict(StrEnum):
    """What is known of a difference."""

    PROVEN = "difference proven"
    NOT_PROVEN = "no difference proven"
    TOO_FEW = "too few readings"
    ONE_EACH = "one reading each"
    ONE_A_SIDE = "one a side"
    SAME = "same amount"
    NOT_COMPARED = "not compared"
    NOT_DELIVERED = "not delivered"

    @property
    def words(self) -> str:
        """How it is shown; documents have the value, which programs compare."""
        return self.replace("reading", "measurement")


@dataclass(frozen=True, slots=True)
class Difference:
    """A candidate against its baseline, in percent of the baseline: positive where the candidate is larger.

    `interval` has its ends in percent at a confidence of `confidence` percent, and excludes 0 exactly where the verdict
    is ``PROVEN``; None where there are too few readings for one. `p` is the test's own, `p_adjusted` after Holm's
    correction over `family` figures, for a run to which repeats were added also by `level_divisor`. `effect` is the
    rank-biserial correlation, from -1 to 1. `readings` are the pairs that were compared, or the runs of the smaller
    side where nothing is `paired`. `needed` is how many it takes to prove anything, `to_find` how many to prove a
    difference as large as this one in four of five cases, None for more than are counted, and `detectable` the
    percentage that `readings` prove in four of five. `better` tells whether the candidate is the better one, None
    unless that is proven. `noise` is the percentage up to which a difference counts as none, if one was given; the
    interval of what is proven excludes it, too. `because` says why a verdict could not be had: of what is
    ``NOT_DELIVERED``, which has no figure, what was set and what was got. Of the ``SAME`` amount
    `tested` is the verdict by its readings alone, which documents have.
    """

    verdict: Verdict = Verdict.NOT_COMPARED
    tested: Verdict | None = field(default=None, metadata=key("same_amount"))
    because: str = ""
    percent: float | None = None
    interval: tuple[float, float] | None = field(default=None, metadata=key("interval_percent"))
    confidence: float | None = field(default=None, metadata=key("confidence_percent"))
    ratio: float | None = None
    better: bool | None = None
    test: str | None = None
    paired: bool = True
    readings: int = 0
    p: float | None = None
    p_adjusted: float | None = None
    family: int = 1
    effect: float | None = field(default=None, metadata=key("effect_size"))
    needed: int | None = field(default=None, metadata=key("readings_needed"))
    to_find: int | None = field(default=None, metadata=key("readings_to_find"))
    detectable: float | None = field(default=None, metadata=key("detectable_percent"))
    noise: float | None = field(default=None, metadata=key("noise_percent"))
    more_is_better: bool | None = field(default=None, metadata=INNER)
    level_divisor: int = field(default=1, metadata=INNER)

    @property
    def proven(self) -> bool:
        """Whether there is a difference for certain, as far as its `confidence` goes."""
        return self.verdict == Verdict.PROVEN

    @property
    def is_compared(self) -> bool:
        """Whether there is anything to compare on both sides, and what was set was delivered."""
        return self.verdict not in (Verdict.NOT_COMPARED, Verdict.NOT_DELIVERED)

    @property
    def obstacle(self) -> str:
        """Why the readings allow no verdict, in words; empty where they do, or nothing can be compared."""
        match self.verdict:
            case Verdict.ONE_EACH:
                return f"{self.verdict.words}, no spread known"
            case Verdict.ONE_A_SIDE:
                return self.because
            case Verdict.TOO_FEW:
                return f"{self.verdict.words}: {self.because}" if self.because else self.verdict.words
            case _:
                return ""

    def as_asked(self, relative: Relative) -> float | None:
        """The difference in one of the forms that a table may ask for; difference, percent and overhead in percent."""
        return in_form(self.percent, self.more_is_better, relative)

    def interval_as_asked(self, relative: Relative) -> tuple[float, float] | None:
        """The interval in the form of `as_asked`, the lower end first; None where an end has no such form."""
        ends = [in_form(end, self.more_is_better, relative) for end in self.interval or ()]
        known = sorted(end for end in ends if end is not None)
        return (known[0], known[1]) if len(known) == 2 else None

    def json_fields(self) -> dict[str, Any]:
        """As all documents have it: with the verdict by its readings alone."""
        same = self.verdict == Verdict.SAME
        return {**fields_of(self), "verdict": self.tested or self.verdict, "same_amount": same}


NO_DIFFERENCE = Difference()
"""Of two figures that cannot be compared."""


@dataclass(frozen=True, slots=True)
class Sides:
    """A figure of the baseline and the candidate's, in one unit. `more_is_better` is None where neither is.

    Differences of up to `noise` percent count as none; None is for no noise. An `amount` describes the work, as the
    bytes that were asked for do, and no chance is in it: where all readings of both sides are equal it is the same,
    however few they are. Where they are not, it is tested as any other figure.
    """

    baseline: Figure
    candidate: Figure
    more_is_better: bool | None
    noise: float | None = None
    amount: bool = False

    @property
    def undelivered(self) -> str:
        """What was set and not delivered on either side, in words; empty where neither has a figure of such cells."""
        return undelivered_words([*self.baseline.undelivered, *self.candidate.undelivered])

    @property
    def same(self) -> bool:
        """Whether it is an amount with one value on both sides."""
        values = {one.value for side in (self.baseline, self.candidate) for one in side.readings}
        values |= {side.spread.mean for side in (self.baseline, self.candidate) if side.spread}
        return self.amount and len(values) == 1


def in_form(percent: float | None, more_is_better: bool | None, relative: Relative) -> float | None:
    """A difference in percent in another form; None where it would divide by 0.

    All forms but the difference are of how many times as good the candidate is: the baseline over the candidate where
    less is better, such as of times, and the candidate over the baseline otherwise.
    """
    if percent is None or relative == "difference":
        return percent
    larger = 1 + percent / 100
    if more_is_better is not False:
        return _in_form(larger, relative)
    return _in_form(1 / larger, relative) if larger != 0 else None


def _in_form(ratio: float, relative: Relative) -> float | None:
    match relative:
        case "percent":
            return 100 * ratio
        case "overhead":
            return 100 * (1 - ratio)
        case "slowdown":
            return 1 / ratio if ratio != 0 else None
        case _:
            return ratio


def difference(baseline: Figure, candidate: Figure, more_is_better: bool | None) -> Difference:
    """What `candidate` is against `baseline`, if nothing else is asked; both are in one unit."""
    return differences([Sides(baseline, candidate, more_is_better)])[0]


def differences(family: Sequence[Sides]) -> list[Difference]:
    """What each candidate is against its baseline, corrected for how many are asked about together.

    Holm's correction (Scandinavian Journal of Statistics 6, 1979) goes from the smallest p to the largest: the first is
    proven if it is at most 5 % over the number of figures, the next one over one figure less, and so on until one is
    not. The interval of each is at the level at which that was decided, so that it excludes 0 where it is proven. Sides
    of which one did not pass, or did not get what was set, count for nothing. In a run to which repeats were added, all
    these levels are lower (`sample_size.level_divisor`).
    """
    pairings = [pairing_of(sides.baseline, sides.candidate) for sides in family]
    size = sum(pairing is not None for pairing in pairings)
    tests = [pairing.test if pairing else None for pairing in pairings]
    chances = [
        _p_beyond(test, pairing.shifts_of(sides.noise or 0.0)) if test and pairing else 1.0
        for sides, pairing, test in zip(family, pairings, tests, strict=True)
    ]
    divisor = max((pairing.level_divisor for pairing in pairings if pairing), default=1)
    decisions = _holm(chances, size, divisor)
    found = [
        _not_compared(sides) if pairing is None else _difference(pairing, test, decision, sides)
        for sides, pairing, test, decision in zip(family, pairings, tests, decisions, strict=True)
    ]
    return [
        replace(one, verdict=Verdict.SAME, tested=one.verdict) if sides.same and one.is_compared else one
        for sides, one in zip(family, found, strict=True)
    ]


def _not_compared(sides: Sides) -> Difference:
    because = sides.undelivered
    return Difference(Verdict.NOT_DELIVERED, because=because) if because else NO_DIFFERENCE


def _p_beyond(test: ShiftTest, nothing: tuple[float, float]) -> float:
    """The p of the likeliest shift between two that count as nothing."""
    low, high = nothing
    return 1.0 if low <= test.estimate <= high else test.p_of(high if test.estimate > high else low)


@dataclass(frozen=True, slots=True)
class _Decision:
    """Whether one difference of a family of `size` is proven, at which level, its p and its corrected p."""

    proven: bool
    alpha: float
    p: float
    p_adjusted: float
    size: int
    divisor: int


def _holm(chances: Sequence[float], size: int, divisor: int) -> list[_Decision]:
    """Holm's decisions; what cannot be tested has a p of 1, and `size` may be less than there are."""
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    decisions: dict[int, _Decision] = {}
    adjusted, proven = 0.0, 0
    for step, place in enumerate(order):
        left = divisor * max(1, size - step)
        adjusted = max(adjusted, min(1.0, left * chances[place]))
        is_proven = proven == step and chances[place] <= ALPHA / left
        proven += is_proven
        alpha = ALPHA / (left if is_proven else divisor * max(1, size - proven))
        decisions[place] = _Decision(is_proven, alpha, chances[place], adjusted, size, divisor)
    return [decisions[place] for place in range(len(chances))]


def _difference(pairing: Pairing, test: ShiftTest | None, decision: _Decision, sides: Sides) -> Difference:
    more = sides.more_is_better
    percent = pairing.percent_of_means if test is None else pairing.percent(test.estimate)
    untested = Difference(
        verdict=_untested(pairing),
        because=pairing.obstacle,
        percent=percent,
        ratio=None if percent is None else 1 + percent / 100,
        paired=pairing.paired,
        readings=pairing.count,
        family=decision.size,
        needed=readings_needed(decision.divisor * decision.size, paired=pairing.paired),
        noise=sides.noise,
        more_is_better=more,
        level_divisor=decision.divisor,
    )
    if test is None:
        return untested
    possible = test.interval(decision.alpha) is not None
    return replace(
        untested,
        verdict=_tested(test, decision),
        interval=pairing.interval(test, decision.alpha),
        confidence=100 * (1 - decision.alpha) if possible else None,
        better=(test.estimate > 0) == more if decision.proven and more is not None else None,
        test=test.name,
        p=decision.p,
        p_adjusted=decision.p_adjusted,
        effect=test.effect,
        to_find=None if decision.proven else _to_find(pairing, test, decision, sides.noise),
        detectable=_detectable(pairing, test, decision, sides.noise),
    )


def _untested(pairing: Pairing) -> Verdict:
    if pairing.single:
        return Verdict.ONE_EACH
    return Verdict.TOO_FEW if pairing.obstacle == NO_COMMON_REPEAT else Verdict.ONE_A_SIDE


def _tested(test: ShiftTest, decision: _Decision) -> Verdict:
    if decision.proven:
        return Verdict.PROVEN
    return Verdict.TOO_FEW if test.smallest_p > decision.alpha else Verdict.NOT_PROVEN


def corrected_for(figures: int, baseline: Figure, candidate: Figure, found: Difference) -> Difference:
    """The difference `found` of two figures, with the interval that it has where so many are asked about at once.

    Each interval is then at 1 - 5 % / `figures` (Bonferroni), so that in 95 % of cases all of them together have the
    true differences in them, whatever these are. That of Holm's procedure promises so much only about 0. Where
    the readings are too few for such an interval, it is None, and so is the verdict's proof. In a run to which repeats
    were added the level is that much lower.
    """
    pairing = pairing_of(baseline, candidate)
    test = pairing.test if pairing else None
    needed = readings_needed(found.level_divisor * figures, paired=found.paired)
    if pairing is None or test is None:
        return replace(found, family=figures, needed=None if found.needed is None else needed)
    alpha = ALPHA / (found.level_divisor * figures)
    reached = test.interval(alpha) is not None
    return replace(
        found,
        verdict=found.verdict if reached else Verdict.TOO_FEW,
        interval=pairing.interval(test, alpha),
        confidence=100 * (1 - alpha) if reached else None,
        family=figures,
        needed=needed,
    )


def readings_to_decide(figures: int, baseline: Figure, candidate: Figure, bound: float, noise: float) -> int | None:
    """How many readings a side tell in four of five cases whether a difference is beyond `bound`, in percent.

    It is taken to be as large as seen, and the interval to be that of `corrected_for`. None where more than are counted
    would be needed, or nothing is known.
    """
    pairing = pairing_of(baseline, candidate)
    test = pairing.test if pairing else None
    if pairing is None or test is None or not pairing.deviation or bound <= -100:
        return None
    near, far = pairing.shifts_of(bound)[1], pairing.shifts_of(noise)[1]
    size = max(0.0, abs(test.estimate - near) - far) / pairing.deviation
    found = readings_to_find(size, pairing.level_divisor * figures, paired=pairing.paired)
    return None if found is None else max(found, pairing.count + 1)


def _detectable(pairing: Pairing, test: ShiftTest, decision: _Decision, noise: float | None) -> float | None:
    """The percentage that these readings prove in four of five cases, by their own deviation."""
    reach, deviation = detectable(test.sizes, decision.alpha), pairing.deviation
    if reach is None or deviation is None:
        return None
    return pairing.percent(pairing.shifts_of(noise or 0.0)[1] + reach * deviation)


def _to_find(pairing: Pairing, test: ShiftTest, decision: _Decision, noise: float | None) -> int | None:
    """How many readings a side prove a difference as large as the one seen; None where there is none or too many."""
    deviation = pairing.deviation
    if not deviation:
        return None
    low, high = pairing.shifts_of(noise or 0.0)
    beyond = max(test.estimate - high, low - test.estimate)
    found = readings_to_find(beyond / deviation, decision.divisor * decision.size, paired=pairing.paired)
    return None if found is None else max(found, pairing.count + 1)
