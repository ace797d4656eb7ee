"""One reading of telemetry, as the recorder makes it and every viewer sees it.

A value's name is ``metric`` for the whole host or ``metric[instance]`` for one CPU, disk or guest, and the unit is
the end of the metric's name: ``disk_await_ms[vda]`` is in milliseconds. docs/reference/telemetry.md lists all of them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

_UNITS = (
    ("_bytes_per_second", "B/s"),
    ("_per_second", "1/s"),
    ("_percent", "%"),
    ("_bytes", "B"),
    ("_ms", "ms"),
    ("_seconds", "s"),
    ("_watts", "W"),
)

OWN_NAMES = (
    "tick_length_seconds",
    "tick_lateness_seconds",
    "ticks_missed",
    "clock_step_seconds",
    "suspended_seconds",
    "recorder_cpu_percent",
)
"""The first values of every sample; they describe the tick itself."""

OF_GUESTS_DISKS = (
    "guest_memory_resident_bytes",
    "guest_memory_balloon_bytes",
    "guest_disk_read_bytes_per_second",
    "guest_disk_write_bytes_per_second",
    "guest_disk_reads_per_second",
    "guest_disk_writes_per_second",
    "guest_disk_read_await_ms",
    "guest_disk_write_await_ms",
)
"""The guests' figures that QEMU is asked for; all others of guests are known without it."""
OF_DATA_DISKS = (
    "guest_data_disk_reads_per_second",
    "guest_data_disk_writes_per_second",
    "guest_data_disk_read_await_ms",
    "guest_data_disk_write_await_ms",
)
"""The same of a guest's data disk alone; guests without one have none of these."""
GUESTS_READ = ("guests_read_offset_seconds", "guests_read_length_seconds")
"""When the guests' counters were read, in seconds after the tick began (below 0 in an answer that came late), and the
seconds since they were last read.
"""
GUESTS_DISKS_READ = ("guests_disks_read_offset_seconds", "guests_disks_read_length_seconds")
"""The same of `OF_GUESTS_DISKS` and `OF_DATA_DISKS`."""
DOMAIN_READ_LENGTH = "domain_read_length_seconds"
"""Of one of the host's own guests, the seconds that its libvirt rates describe, which are not those of the tick: an
answer may be late, and libvirt passes over a domain that something else asks. 0 where rates stand from an earlier tick.
"""
TRACED_LENGTH = "domains_traced_length_seconds"
"""The seconds that the rates of traced disks describe."""
_LIBVIRT_RATES = ("domain_disk_", "domain_network_")
_TRACED_RATES = "domain_disk_traced_"
_OF_GUEST = "guest_"


def split_name(name: str) -> tuple[str, str | None]:
    """``"disk_await_ms[vda]"`` to ``("disk_await_ms", "vda")``; the instance is None for the whole host."""
    metric, bracket, rest = name.partition("[")
    return (metric, rest[:-1]) if bracket else (name, None)


def unit_of(name: str) -> str:
    """The unit of a value: ``%``, ``B``, ``B/s``, ``1/s``, ``ms``, ``s``, ``W``, or ``1`` for a plain count."""
    metric, _ = split_name(name)
    return next((unit for ending, unit in _UNITS if metric.endswith(ending)), "1")


_LONGEST_OFFSET = 86400.0


def is_offset(seconds: float) -> bool:
    """Whether values may have been read so long after a tick: of a stranger's store they may be infinite."""
    return abs(seconds) <= _LONGEST_OFFSET


class SampleNames:
    """The names of a sample's values in order; many samples share one. `units` is parallel to `names`."""

    __slots__ = ("names", "position", "read", "units")

    def __init__(self, names: tuple[str, ...], units: tuple[str, ...]) -> None:
        self.names = names
        self.units = units
        self.position = {name: place for place, name in enumerate(names)}
        self.read = {
            source: (self.position[source[0]], self.position[source[1]])
            for source in (GUESTS_READ, GUESTS_DISKS_READ)
            if source[0] in self.position and source[1] in self.position
        }
        """Where the times stand at which guests' values were read; {} in records from before these had times."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleNames) and (self.names, self.units) == (other.names, other.units)

    def __hash__(self) -> int:
        return hash((self.names, self.units))

    @classmethod
    def of(cls, names: Sequence[str]) -> SampleNames:
        """The layout of `names`, whose units follow from their endings."""
        return cls(tuple(names), tuple(map(unit_of, names)))


def read_with(metric: str) -> tuple[str, str] | None:
    """`GUESTS_READ` or `GUESTS_DISKS_READ` for what guests are asked for; None for what is read as the tick begins."""
    if not metric.startswith(_OF_GUEST) or metric == "guest_questions_stuck":
        return None
    return GUESTS_DISKS_READ if metric in OF_GUESTS_DISKS or metric in OF_DATA_DISKS else GUESTS_READ


def read_length_of(name: str) -> str | None:
    """The name of the value with the seconds that a rate of one of the host's own guests describes, as libvirt or the
    trace of its disk tells it; None for any other value.
    """
    metric, instance = split_name(name)
    if instance is None or not metric.startswith(_LIBVIRT_RATES):
        return None
    return TRACED_LENGTH if metric.startswith(_TRACED_RATES) else f"{DOMAIN_READ_LENGTH}[{instance.partition('/')[0]}]"


class Sample(NamedTuple):
    """All values of one tick; it describes the `length` seconds that ended at `mono`.

    Values of guests describe spans of their own, which `span_of` gives: libvirt answers after the tick began.

    `wall` is seconds since the epoch and `mono` seconds of the monotonic clock, both read when the tick began.
    `lateness` is how many seconds after its deadline that was. A value that could not be read is NaN.
    """

    wall: float
    mono: float
    length: float
    lateness: float
    layout: SampleNames
    values: Sequence[float]

    def get(self, name: str) -> float:
        """The value called `name`; NaN where the sample has none."""
        place = self.layout.position.get(name)
        return math.nan if place is None else self.values[place]

    def seconds_of(self, name: str) -> float:
        """How many seconds the value called `name` describes; 0 for one that stands from an earlier sample."""
        if (source := read_length_of(name)) is not None:
            described = self.get(source)
            return self.length if math.isnan(described) else described
        begin, end = self.span_of(split_name(name)[0])
        return end - begin

    def span_of(self, metric: str) -> tuple[float, float]:
        """Beginning and end of what a value of `metric` describes, on the monotonic clock."""
        source = read_with(metric)
        places = None if source is None else self.layout.read.get(source)
        if places is not None:
            offset, length = self.values[places[0]], self.values[places[1]]
            if is_offset(offset) and is_offset(length):
                return self.mono + offset - length, self.mono + offset
        return self.mono - self.length, self.mono

    def host(self) -> dict[str, float]:
        """Name and value of everything that is about the whole host, without CPUs, disks and guests apart."""
        return {name: value for name, value in zip(self.layout.names, self.values, strict=True) if name[-1] != "]"}

    def instances(self, metric: str) -> dict[str, float]:
        """The values of ``metric[instance]`` by instance."""
        found: dict[str, float] = {}
        for name, value in zip(self.layout.names, self.values, strict=True):
            if name.startswith(metric) and name[len(metric) : len(metric) + 1] == "[":
                found[name[len(metric) + 1 : -1]] = value
        return found


class Series(NamedTuple):
    """One value over time; `mono` (seconds of the monotonic clock) and `values` are parallel."""

    name: str
    unit: str
    mono: array[float]
    values: array[float]
