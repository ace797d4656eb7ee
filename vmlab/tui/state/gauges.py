"""How near the host's disk and CPUs are to their limits, over the newest seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
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


MUCH_PERCENT = 20.0
"""From this share of the CPUs on, other work on the host is shown: it makes figures of the lab doubtful."""


class CpuUse(NamedTuple):
    """Shares of all CPUs together, in percent; NaN where unknown. `guests` is NaN while there are none.

    Without a lab, `guests` are the host's own, `lab` is this program, and `watched` is set.
    """

    guests: float
    lab: float
    outside: float
    watched: bool = False


def cpu_use(sample: Sample) -> CpuUse:
    """The shares in one sample; what the lab uses besides its guests is the runner and the programs it starts."""
    guests, own = (_sum_of(sample, metric) for metric in ("guest_cpu_percent", "domain_cpu_percent"))
    whole, outside = sample.get("cpu_lab_percent"), sample.get("cpu_outside_lab_percent")
    if not math.isnan(own) and math.isnan(guests):
        return CpuUse(own, whole, max(0.0, outside - own), watched=True)
    if math.isnan(guests) or math.isnan(whole):
        return CpuUse(guests, whole, outside)
    # libvirt is asked at other moments than the kernel, so guests may seem to use more than the lab that holds them.
    guests = min(guests, whole)
    return CpuUse(guests, whole - guests, outside)


def outside_share(samples: Iterable[Sample]) -> float:
    """The mean share of other work over `samples`, in percent; NaN where none of them has it."""
    known = [share for share in (one.get("cpu_outside_lab_percent") for one in samples) if not math.isnan(share)]
    return sum(known) / len(known) if known else math.nan


def _sum_of(sample: Sample, metric: str) -> float:
    """In percent of all CPUs; NaN where no instance has a figure."""
    known = [share for place in _places(sample.layout.names, metric) if (share := sample.values[place]) == share]
    return sum(known) / sample.get("cpu_count") if known else math.nan


@lru_cache(maxsize=16)
def _places(names: tuple[str, ...], metric: str) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(names) if name.startswith(f"{metric}["))
