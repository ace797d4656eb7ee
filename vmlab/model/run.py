"""What a run leaves behind: outcomes, measurements, proofs, cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

AxisValue = str | int | float | bool
CacheMode = Literal["none", "writeback", "writethrough", "directsync", "unsafe"]
Accelerator = Literal["kvm", "tcg"]
CACHE_MODES: tuple[CacheMode, ...] = ("none", "writeback", "writethrough", "directsync", "unsafe")


class Outcome(StrEnum):
    """How a workload, a cell or a run ended; `worst` reduces many to one."""

    PASSED = "passed"
    INVALID = "invalid"
    FAILED = "failed"
    ABORTED = "aborted"


_SEVERITY = (Outcome.PASSED, Outcome.INVALID, Outcome.FAILED, Outcome.ABORTED)


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The most severe of many outcomes; passed where there is none."""
    return max(outcomes, key=_SEVERITY.index, default=Outcome.PASSED)


class Phase(StrEnum):
    """The parts of a cell, in order."""

    PROVISION = "provision"
    PREPARE = "prepare"
    EXECUTE = "execute"
    COLLECT = "collect"
    CLEAN_UP = "clean up"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure that a workload produced. `tile` counts from 1; `guest` is where the client ran, or ``host``."""

    workload: str
    tile: int
    guest: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class RawOutput:
    """What a tool printed, kept beside every figure that was parsed from it."""

    workload: str
    tile: int
    guest: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CacheProof:
    """What QEMU's own open file says of the cache mode, against what was asked.

    `o_direct` is the flag in ``/proc/PID/fdinfo``; `writeback`, `direct` and `no_flush` are QMP's cache flags.
    """

    guest: str
    file: str
    o_direct: bool
    writeback: bool
    direct: bool
    no_flush: bool
    expected: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One point of the axes, one repeat. `index` counts from 1 in the order of execution."""

    index: int
    axes: dict[str, AxisValue]
    repeat: int
    guests: int
    memory_bytes: int
    disk_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What is known of a run when it starts."""

    id: str
    scenario: str
    size: str
    seed: int
    started: float
    accelerator: str | None = None
    host: dict[str, Any] = field(default_factory=dict)
