"""What the yardstick of a cell shows: how far the host's own speed moved around it."""

from __future__ import annotations

from vmlab.analysis.shape import YardstickDocument, YardstickReading
from vmlab.model.event import YardstickTaken


def yardstick_document(taken: dict[str, YardstickTaken]) -> YardstickDocument | None:
    """The readings by ``before`` and ``after``; None where there is none."""
    if not taken:
        return None
    before, after = taken.get("before"), taken.get("after")
    return {
        "before": _reading(before),
        "after": _reading(after),
        "moved_percent": None if before is None or after is None else moved_percent(before.seconds, after.seconds),
    }


def moved_percent(one: float, other: float) -> float | None:
    """How much more the longer of two times is than the shorter one; None where that is nothing."""
    short, long = sorted((one, other))
    return 100 * (long / short - 1) if short > 0 else None


def _reading(taken: YardstickTaken | None) -> YardstickReading | None:
    if taken is None:
        return None
    return {
        "seconds": taken.seconds,
        "compute_seconds": taken.compute_seconds,
        "memory_seconds": taken.memory_seconds,
        "cpu_seconds": taken.cpu_seconds,
    }
