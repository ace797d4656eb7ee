"""The words of a run: values of its axes, its phases, and how a workload, a cell or a run ended.

The bounds of what it counts are here too. They are the same for a scenario, a record and an archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeVar, get_args

AxisValue = str | int | float | bool
CacheMode = Literal["none", "writeback", "writethrough", "directsync", "unsafe"]
Accelerator = Literal["kvm", "tcg"]
EMULATED: Final = "tcg"
"""The accelerator of guests whose processors are emulated; the word behind each of their figures."""
CACHE_MODES: tuple[CacheMode, ...] = get_args(CacheMode)
SWITCHABLE: tuple[CacheMode, ...] = ("none", "writeback")
"""The modes between which a running guest's disk may be switched: they differ in nothing that the guest was promised.
"""

RUN_TIME: Final = "run_time"
"""The metric that every workload has, in seconds."""
MOST_LOOKS = 10
"""How often a run's claims, or its table, may be looked at while it goes on."""
MOST_EXTENSIONS = 60
"""How often repeats may be added to a run; a record from elsewhere that says more is judged as if it were so many."""
MOST_TILES = 64
MOST_OF_EACH = 64
"""Guests, and workloads, of one tile."""
MOST_AXES = 8
MOST_VALUES = 100
"""Values of one axis."""
MOST_POINTS = 500
"""Cells of one repeat."""
MOST_REPEATS = 1000
MOST_CELLS = 2000
MOST_NUMBERED = 10 * MOST_CELLS
"""The highest number of a cell: cells that are put back as planned are numbered after those that have begun."""
HIGHEST_SEED = 2**32 - 1
OF_HOST: Final = "host"
"""In place of a size, for a recording of the host and its own guests, which has no workloads."""
RUNNING = "running"
"""In place of an outcome, for a run, a cell or a workload that is still under way."""
DAMAGED = "damaged"
"""In place of an outcome, for a run that is over and whose store cannot tell how it ended."""
AS_WRITTEN = "as written"
RANDOM = "random"
"""The order of cells that is not random."""
WARM_UP = 0
"""In place of the number of a repeat: a cell that is measured and shown, and never counted."""
SETTLING = "settling"
"""The stage of a workload whose client has ended while the system still finishes the work."""
DONE = "done"
"""The last stage of a workload; its figures are verified when all workloads have reached it."""


def other_mode(mode: object) -> CacheMode:
    """What one key press makes of `mode`: the first of `SWITCHABLE`, or the second where it is that already."""
    return SWITCHABLE[mode == SWITCHABLE[0]]


class Outcome(StrEnum):
    """How a workload, a cell or a run ended, in the order of severity; `worst` gives the most severe of several."""

    PASSED = "passed"
    INCOMPLETE = "incomplete"
    """Of a run alone: some comparison has figures, and lacks valid repeats that were planned."""
    INVALID = "invalid"
    FAILED = "failed"
    ABORTED = "aborted"


_Word = TypeVar("_Word", bound=str)


def worst(outcomes: Iterable[_Word]) -> _Word | Outcome:
    """The most severe of many outcomes; passed where there is none. A word that is none of `Outcome` is beyond all."""
    return max(outcomes, key=lambda outcome: [*Outcome, outcome].index(outcome), default=Outcome.PASSED)


class Phase(StrEnum):
    """The parts of a cell, in order."""

    PROVISION = "provision"
    PREPARE = "prepare"
    EXECUTE = "execute"
    COLLECT = "collect"
    CLEAN_UP = "clean up"


class Part(StrEnum):
    """What the whole time of a cell falls into, in order: its phases, and what lies between them."""

    BEFORE = "before"
    """Until its guests start: looking for snapshots, or making them."""
    PROVISION = "provision"
    PREPARE = "prepare"
    START = "start"
    """From everything ready to the common start: clocks are measured, and the start is announced."""
    EXECUTE = "execute"
    CLOCKS = "clocks"
    """Clocks are measured again."""
    COLLECT = "collect"
    CLEAN_UP = "clean up"
    AFTER = "after"
    """After the clean-up."""
    OTHER = "other"
    """Between other phases, as where a cell breaks off."""


class CacheFlags(NamedTuple):
    """QMP's flags: `writeback` is the guest-visible write cache, `direct` O_DIRECT, `no_flush` ignored flushes."""

    writeback: bool
    direct: bool
    no_flush: bool


CACHE_FLAGS: Mapping[CacheMode, CacheFlags] = {
    "none": CacheFlags(writeback=True, direct=True, no_flush=False),
    "writeback": CacheFlags(writeback=True, direct=False, no_flush=False),
    "writethrough": CacheFlags(writeback=False, direct=False, no_flush=False),
    "directsync": CacheFlags(writeback=False, direct=True, no_flush=False),
    "unsafe": CacheFlags(writeback=True, direct=False, no_flush=True),
}
"""What each cache mode of a disk means: `direct` is O_DIRECT in all files, and only `unsafe` ignores flushes.

The guest sees the write cache and nothing else of it.
"""


def has_write_cache(mode: CacheMode) -> bool:
    """Whether the guest's disk has a write cache, as the guest sees it."""
    return CACHE_FLAGS[mode].writeback
