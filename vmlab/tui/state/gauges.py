"""How near the host's disk and CPUs are to their limits, over the newest seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vmlab.model.sample import Sample
from vmlab.telemetry.sample_summary import CPU_BUSY, DISK_BUSY, MOST_OF_THE_TIME, cpu_busy

TICKS = 10
"""How many of the newest samples count: one alone jumps too much to be read."""
_FULL, _EMPTY = ("█", "="), ("░", ".")


class Gauge(NamedTuple):
    """A mean in percent; `at_limit` where it was so for most of the time."""

    name: str
    percent: float
    at_limit: bool

    @property
    def tone(self) -> str:
        """That of limits where it is at its own."""
        return "bad" if self.at_limit else "plain"

    def bar(self, columns: int, *, plain: bool) -> str:
        """A bar of so many columns; of ASCII alone where it has to be `plain`."""
        filled = round(min(100.0, self.percent) / 100 * columns)
        return _FULL[plain] * filled + _EMPTY[plain] * (columns - filled)


def gauges(samples: Sequence[Sample]) -> tuple[Gauge, ...]:
    """Of `samples`, the disk's utilisation and the CPUs' work; what none of them has is left out."""
    known = {
        "disk": ([sample.get("disk_util_percent") for sample in samples], DISK_BUSY),
        "cpu": ([cpu_busy(sample) for sample in samples], CPU_BUSY),
    }
    return tuple(gauge for name, (values, limit) in known.items() for gauge in _gauge(name, values, limit))


def _gauge(name: str, values: Iterable[float], limit: float) -> Iterable[Gauge]:
    seen = [value for value in values if value == value]
    if seen:
        reached = 100 * sum(value >= limit for value in seen) / len(seen)
        yield Gauge(name, sum(seen) / len(seen), reached >= MOST_OF_THE_TIME)
