"""Which readings of two figures may be set against each other, and which test that makes.

Repeats of one run are paired: a repeat of all cells is a block, whose cells have run close together, so that what the
host does meanwhile meets both sides. Runs are not paired, and each counts as one reading, since its repeats share all
that differs from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.statistics.descriptive import mean, standard_deviation
from vmlab.analysis.statistics.rank_test import ShiftTest, rank_sum, signed_rank

_Key = TypeVar("_Key", int, str)
NO_COMMON_REPEAT = "there is no repeat in which both sides passed"
ONE_RUN = "one run a side, whose repeats share all that differs from run to run"
ONE_RUN_OF_A_SIDE = "a side has only one run that counts, whose repeats share all that differs from run to run"
ONE_SNAPSHOT = "one snapshot a side, which all of its repeats begin from"


@dataclass(frozen=True, slots=True)
class Pairing:
    """The readings of a baseline and a candidate as they may be compared.

    `before` and `after` belong together one by one if `paired`: each two are of one repeat. Otherwise each is the mean
    of one run. `obstacle` says why they cannot be tested, however many there are. `single` is true for one reading on
    each side. `means` are those of both figures, over all their readings.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    means: tuple[float, float]
    paired: bool = True
    single: bool = False
    obstacle: str = ""

    @property
    def count(self) -> int:
        """Pairs, or readings of the smaller side."""
        return min(len(self.before), len(self.after))

    @property
    def test(self) -> ShiftTest | None:
        """The test of the difference; None where the readings allow none."""
        if self.single or self.obstacle or not self.count:
            return None
        before, after = self._scaled(self.before), self._scaled(self.after)
        return signed_rank(_differences(before, after)) if self.paired else rank_sum(before, after)

    @property
    def deviation(self) -> float | None:
        """The standard deviation, of the pairs' differences or of the readings of a side; None for too few of them.

        It is in the unit of the test's shifts.
        """
        before, after = self._scaled(self.before), self._scaled(self.after)
        if self.paired:
            return standard_deviation(_differences(before, after)) if self.count > 1 else None
        return math.sqrt(mean([standard_deviation(side) ** 2 for side in (before, after)])) if self.count > 1 else None

    @property
    def percent_of_means(self) -> float | None:
        """How much larger the candidate's mean is, in percent of the baseline's; None for a baseline of 0."""
        before, after = self.means
        return 100 * (after - before) / before if before != 0 else None

    def percent(self, shift: float) -> float | None:
        """A shift of the test in percent of the baseline; None for a baseline of 0."""
        if self._by_ratio:
            return 100 * math.expm1(shift)
        return 100 * shift / abs(self.means[0]) if self.means[0] != 0 else None

    def interval(self, test: ShiftTest, alpha: float) -> tuple[float, float] | None:
        """The interval of 1 - `alpha` of this pairing's test, in percent of the baseline; None for too few readings."""
        shifts = test.interval(alpha)
        low, high = map(self.percent, shifts) if shifts else (None, None)
        return None if low is None or high is None else (low, high)

    def shifts_of(self, percent: float) -> tuple[float, float]:
        """The shifts of that much less and that much more than the baseline; a ratio and its inverse."""
        shift = math.log1p(percent / 100) if self._by_ratio else percent / 100 * abs(self.means[0])
        return -shift, shift

    @property
    def _by_ratio(self) -> bool:
        """Whether ratios are compared, by their logarithms; differences are, where a reading is 0 or below."""
        return min(*self.before, *self.after) > 0

    def _scaled(self, readings: Sequence[float]) -> list[float]:
        return list(map(math.log, readings)) if self._by_ratio else list(readings)


def _differences(before: Sequence[float], after: Sequence[float]) -> list[float]:
    return [other - one for one, other in zip(before, after, strict=True)]


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
        return _by_repeat(before, after, means, obstacle)
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
    found: dict[_Key, list[float]] = {}
    for key, value in values:
        found.setdefault(key, []).append(value)
    return {key: mean(those) for key, those in found.items()}


def _other_snapshots(before: Sequence[OneReading], after: Sequence[OneReading]) -> bool:
    """Whether a guest that both sides have began from other snapshots, and on one side always from the same one."""
    one, other = _snapshots(before), _snapshots(after)
    return any(one[guest] != other[guest] and 1 in map(len, (one[guest], other[guest])) for guest in one.keys() & other)


def _snapshots(readings: Sequence[OneReading]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for reading in readings:
        for guest, digest in reading.snapshots.items():
            found.setdefault(guest, set()).add(digest)
    return found
