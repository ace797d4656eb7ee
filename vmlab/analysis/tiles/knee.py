"""The knee of throughput over tiles, after which a further tile adds little; `tiles_carried` answers how many fit.

The knee is the load beyond which throughput gains little: Jain, The Art of Computer Systems Performance Analysis
(1991), 3.3. How much is little is a convention, here a share of what one tile does alone. The steps are tested from the
smallest number of tiles on, each at 5 %, until the first that does not gain enough for certain. In such a fixed order
no correction for their number is needed: Maurer, Hothorn and Lehmacher (Biometrie in der chemisch-pharmazeutischen
Industrie 6, 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vmlab.analysis.statistics.descriptive import compared
from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.statistics.sample_size import ALPHA, readings_needed
from vmlab.model.jsonable import INNER, key

SHARE_PERCENT = 10.0
"""What a further tile adds at least before the knee, in percent of one tile's throughput."""
ONE_REPEAT = "one repeat, no spread known"
NO_REPEAT = "there is no repeat in which all of these passed"
TOO_FEW = "too few repeats"
UNDECIDED = "the interval has the limit in it"


class KneeVerdict(StrEnum):
    """What is known of a knee."""

    REACHED = "reached"
    NOT_REACHED = "not reached"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Step:
    """From `before` to `after` tiles.

    `gains` has for each repeat what each of these further tiles added, in percent of what one tile does alone.
    `obstacle` says why they decide nothing, however many there are. `level_divisor` divides the level.
    """

    before: int
    after: int
    gains: tuple[float, ...]
    obstacle: str = ""
    level_divisor: int = 1


@dataclass(frozen=True, slots=True)
class Tested:
    """A step with the estimate of its gain and the 95 % interval, in percent of one tile's throughput.

    `enough` says whether the gain is above the limit, None where that is not proven and `because` says why. The
    estimate is None without a repeat, the interval with fewer than the `needed` ones. In a run to which
    repeats were added the interval is wider.
    """

    before: int = field(metadata=key("from_tiles"))
    after: int = field(metadata=key("to_tiles"))
    gain: float | None = field(metadata=key("gain_percent"))
    interval: tuple[float, float] | None = field(metadata=key("interval_percent"))
    repeats: int = field(metadata=key("readings"))
    enough: bool | None
    because: str = ""
    needed: int = field(default=readings_needed(), metadata=INNER)


@dataclass(frozen=True, slots=True)
class Knee:
    """Where the knee is, as far as that is known.

    `tiles` are the most tiles of which each is known to add enough: the knee is after them, or, where `up_to` is
    larger because the step skips numbers of tiles, after one of the numbers up to that. Both are None unless the knee
    is reached. `seen` is where the estimates alone put it, None where they do nowhere. `decided` is the step
    that ended the search; None for a knee that is not reached.
    """

    verdict: KneeVerdict
    share_percent: float
    steps: tuple[Tested, ...]
    tiles: int | None = None
    up_to: int | None = None
    seen: int | None = None
    decided: Tested | None = None

    def json_fields(self) -> dict[str, Any]:
        """The knee as it stands in ``vmlab.run/1``."""
        return {
            "verdict": self.verdict,
            "share_percent": self.share_percent,
            "after_tiles": self.tiles,
            "up_to_tiles": self.up_to,
            "seen_after_tiles": self.seen,
            "because": self.decided.because if self.decided else "",
            "readings_needed": max(step.needed for step in self.steps),
            "steps": self.steps,
        }


def knee_of(steps: Sequence[Step], share_percent: float = SHARE_PERCENT) -> Knee:
    """The first of `steps`, in the order of their tiles, of which a tile adds less than `share_percent`.

    Raises ValueError for no steps.
    """
    if not steps:
        raise ValueError("a knee needs two numbers of tiles")
    tested = tuple(_tested(step, share_percent) for step in steps)
    seen = next((step.before for step in tested if _against(step.gain, share_percent) < 0), None)
    decided = next((step for step in tested if step.enough is not True), None)
    if decided is None:
        return Knee(KneeVerdict.NOT_REACHED, share_percent, tested, seen=seen)
    if decided.enough is None:
        return Knee(KneeVerdict.CANNOT_TELL, share_percent, tested, seen=seen, decided=decided)
    ends = decided.before, decided.after - 1
    return Knee(KneeVerdict.REACHED, share_percent, tested, *ends, seen=seen, decided=decided)


def _tested(step: Step, share: float) -> Tested:
    """A step against the limit, by Wilcoxon's signed-rank test and its interval."""
    count, needed = len(step.gains), readings_needed(step.level_divisor)
    if not count:
        return Tested(step.before, step.after, None, None, 0, None, step.obstacle or NO_REPEAT, needed)
    test = signed_rank(step.gains, size=100)
    interval = test.interval(ALPHA / step.level_divisor)
    enough = None
    because = step.obstacle or (ONE_REPEAT if count == 1 else TOO_FEW)
    if interval is not None and not step.obstacle:
        low, high = (_against(end, share) for end in interval)
        enough = True if low > 0 else False if high < 0 else None
        because = UNDECIDED if enough is None else ""
    return Tested(step.before, step.after, test.estimate, interval, count, enough, because, needed)


def _against(gain: float | None, share: float) -> int:
    """1 above the limit, -1 below it, 0 at it or without a gain; both are in percent of one tile."""
    return 0 if gain is None else compared(gain, share, 100)
