"""Which readings of two figures may be set against each other, and which test that makes.

Repeats of one run are paired: a repeat of all cells is a block, whose cells have run close together, so that what the
host does meanwhile meets both sides. Runs are not paired, and each counts as one reading, since its repeats share all
that differs from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import sub
from typing import TypeVar

from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.statistics.descriptive import (
    compared,
    enlarged,
    finite,
    mean,
    reduced,
    standard_deviation,
)
from vmlab.analysis.statistics.rank_test import ShiftTest, rank_sum, signed_rank
from vmlab.model.grouping import grouped

_Key = TypeVar("_Key", int, str)
_LARGEST_SHIFT = 709.0
"""e to the power of more is beyond all floats."""
NO_COMMON_REPEAT = "there is no repeat in which both sides passed"
ONE_RUN = "one run a side, whose repeats share all that differs from run to run"
ONE_RUN_OF_A_SIDE = "a side has only one run that counts, whose repeats share all that differs from run to run"
ONE_SNAPSHOT = "one snapshot a side, which all of its repeats begin from"


@dataclass(frozen=True, slots=True)
class Pairing:
    """The readings of a baseline and a candidate as they may be compared.

    `before` and `after` belong together one by one if `paired`: each two are of one repeat. Otherwise each is the mean
    of one run. `obstacle` says why they cannot be tested, however many there are. `single` is true for one reading on
    each side. `means` are those of both figures, over all their readings. `level_divisor` divides the level of a test
    of pairs, where repeats were added to their run.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    means: tuple[float, float]
    paired: bool = True
    single: bool = False
    obstacle: str = ""
    level_divisor: int = 1

    @property
    def count(self) -> int:
        """Pairs, or readings of the smaller side."""
        return min(len(self.before), len(self.after))

    @property
    def test(self) -> ShiftTest | None:
        """The test of the difference; None where the readings allow none."""
        if self.single or self.obstacle or not self.count:
            return None
        if self.paired:
            return signed_rank(self._excesses, size=self._rounded)
        return rank_sum(*self._sides, size=self._rounded, excess=self._excess)

    @property
    def deviation(self) -> float | None:
        """The standard deviation, of the pairs' differences or of the readings of a side; None for too few of them.

        It is in the unit of the test's shifts.
        """
        if self.count < 2:
            return None
        if self.paired:
            found = standard_deviation(self._excesses)
        else:
            excess, (before, after) = self._excess, self._sides
            apart = [[excess(one, before[0]) for one in side] for side in (before, after)]
            found = math.sqrt(mean([standard_deviation(side) ** 2 for side in apart]))
        return found if compared(found, 0.0, self._rounded) else 0.0

    @property
    def percent_of_means(self) -> float | None:
        """How much larger the candidate's mean is, in percent of the baseline's; None where no float is that."""
        (before, after), _ = reduced(self.means)
        return finite(100 * (after - before) / before) if before != 0 else None

    def percent(self, shift: float) -> float | None:
        """A shift of the test in percent of the baseline; None where no float is that, as for a baseline of 0."""
        if self._by_ratio:
            return finite(100 * math.expm1(shift)) if shift < _LARGEST_SHIFT else None
        return finite(100 * shift / self._size) if self._size != 0 else None

    def interval(self, test: ShiftTest, alpha: float) -> tuple[float, float] | None:
        """The interval of 1 - `alpha` of this pairing's test, in percent of the baseline; None for too few readings."""
        shifts = test.interval(alpha)
        low, high = map(self.percent, shifts) if shifts else (None, None)
        return None if low is None or high is None else (low, high)

    def shifts_of(self, percent: float) -> tuple[float, float]:
        """The shifts of that much less and that much more than the baseline; a ratio and its inverse."""
        shift = math.log1p(percent / 100) if self._by_ratio else percent / 100 * self._size
        return -shift, shift

    @property
    def _by_ratio(self) -> bool:
        """Whether ratios are compared, by their logarithms; differences are, where a value is 0 or below."""
        return min(*self.before, *self.after) > 0

    @property
    def _sides(self) -> tuple[list[float], list[float]]:
        """The readings, those of differences over the power of two by which none is above 1.

        So no difference is beyond all floats, and what is rounding beside 1 is so of ratios and of differences.
        """
        every = [*self.before, *self.after]
        scaled = every if self._by_ratio else reduced(every)[0]
        return scaled[: len(self.before)], scaled[len(self.before) :]

    @property
    def _size(self) -> float:
        """The baseline's mean without its sign, over the same power of two; only of differences."""
        _, power = reduced((*self.before, *self.after))
        return abs(enlarged(self.means[0], -power))

    @property
    def _rounded(self) -> float:
        """The size of the figures whose differences the shifts are: of logarithms the largest, and 1 at least."""
        logarithms = map(math.log, (*self.before, *self.after)) if self._by_ratio else ()
        return max([1.0, *map(abs, logarithms)])

    @property
    def _excesses(self) -> list[float]:
        """By how much each reading of the candidate is above the baseline's."""
        before, after = self._sides
        return list(map(self._excess, after, before))

    @property
    def _excess(self) -> Callable[[float, float], float]:
        """By how much one reading is above another: the logarithm of their ratio, or their difference."""
        return _log_ratio if self._by_ratio else sub


def _log_ratio(one: float, other: float) -> float:
    """Of two readings that are equally many times as large it is the same, but for the last bits."""
    return math.log(one) - math.log(other)


def pairing_of(baseline: Figure, candidate: Figure) -> Pairing | None:
    """How the readings of two figures are set against each other; None unless both figures may be compared."""
    one, other = baseline.comparable, candidate.comparable
    if one is None or other is None:
        return None
    means = one.mean, other.mean
    before, after = baseline.readings, candidate.readings
    if len(before) <= 1 and len(after) <= 1:
        return Pairing(means[:1], means[1:], means, _runs(before) == _runs(after), single=True)
    obstacle = ONE_SNAPSHOT if _other_snapshots(before, after) else ""
    if _runs(before) == _runs(after) and len(_runs(before)) == 1:
        divisor = max(baseline.level_divisor, candidate.level_divisor)
        return replace(_by_repeat(before, after, means, obstacle), level_divisor=divisor)
    return _by_run(before, after, means, obstacle)


def _by_repeat(
    before: Sequence[OneReading], after: Sequence[OneReading], means: tuple[float, float], obstacle: str
) -> Pairing:
    one, other = (_means_by((reading.repeat, reading.value) for reading in side) for side in (before, after))
    common = sorted(one.keys() & other.keys())
    pairs = tuple(one[repeat] for repeat in common), tuple(other[repeat] for repeat in common)
    return Pairing(*pairs, means, obstacle=obstacle if common else NO_COMMON_REPEAT)


def _by_run(
    before: Sequence[OneReading], after: Sequence[OneReading], means: tuple[float, float], obstacle: str
) -> Pairing:
    one, other = (_means_by((reading.run, reading.value) for reading in side) for side in (before, after))
    fewest, most = sorted((len(one), len(other)))
    alone = "" if fewest > 1 else ONE_RUN if most == 1 else ONE_RUN_OF_A_SIDE
    return Pairing(tuple(one.values()), tuple(other.values()), means, paired=False, obstacle=alone or obstacle)


def _runs(readings: Sequence[OneReading]) -> set[str]:
    return {reading.run for reading in readings}


def _means_by(values: Iterable[tuple[_Key, float]]) -> dict[_Key, float]:
    return {key: mean(those) for key, those in grouped(values).items()}


def _other_snapshots(before: Sequence[OneReading], after: Sequence[OneReading]) -> bool:
    """Whether a guest that both sides have began from other snapshots, and on one side always from the same one."""
    one, other = _snapshots(before), _snapshots(after)
    return any(one[guest] != other[guest] and 1 in map(len, (one[guest], other[guest])) for guest in one.keys() & other)


def _snapshots(readings: Sequence[OneReading]) -> dict[str, set[str]]:
    every = (pair for reading in readings for pair in reading.snapshots.items())
    return {guest: set(digests) for guest, digests in grouped(every).items()}
