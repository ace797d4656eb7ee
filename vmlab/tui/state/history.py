"""The last samples of host and guests, kept as they came, and how near the newest are to the host's limits."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice, takewhile
from statistics import median_high
from typing import NamedTuple

from vmlab.model.sample import Sample
from vmlab.telemetry.host.host_figures import Terms
from vmlab.telemetry.sample_summary import CPU_BUSY, DISK_BUSY, MOST_OF_THE_TIME, cpu_busy

KEPT = 600
"""How many samples are kept: ten minutes at one a second."""
HOUR = 3600
"""The same where the host is watched for long."""

_MISSED = 2
"""Ticks in a row that a reading may miss without a gap in what is drawn, and with the figures of the one before."""


class History:
    """Samples in order of time. `version` grows with every change, so that a viewer knows what it has drawn."""

    def __init__(self, kept: int = KEPT) -> None:
        self._samples: deque[Sample] = deque(maxlen=kept)
        self._last: Sample | None = None
        self.version = 0
        self._drawn: dict[Terms, deque[float]] = {}
        self.taken = 0
        """How many samples were ever taken: the time axis, so that columns stay where they are as time goes on."""

    def take(self, sample: Sample) -> None:
        """Add the newest sample. One that is older than the newest there starts a new history."""
        if self._samples and sample.mono < self._samples[-1].mono:
            self.clear()
        # As bare numbers: an hour of a host with many CPUs and guests takes a fourth of what objects would.
        self._samples.append(sample._replace(values=array("d", sample.values)))
        self._last = None
        for terms, values in self._drawn.items():
            values.append(value_of(sample, terms))
        self.version += 1
        self.taken += 1

    def clear(self) -> None:
        """Forget everything, as when a recording is played from an earlier moment."""
        self._samples.clear()
        self._drawn.clear()
        self._last = None
        self.version += 1

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def last(self) -> Sample | None:
        """The newest sample, with guests' values of up to `_MISSED` ticks before where it lacks them.

        libvirt answers at moments of its own, and figures that come and go with each tick cannot be read.
        """
        if self._last is None and self._samples:
            self._last = self._complete(self._samples[-1])
        return self._last

    def _complete(self, last: Sample) -> Sample:
        places = _guests(last.layout.names)
        for back in range(1, min(_MISSED, len(self._samples) - 1) + 1):
            missing = [place for place in places if math.isnan(last.values[place])]
            before = self._samples[-1 - back]
            if not missing or before.layout.names != last.layout.names:
                break
            values = list(last.values)
            for place in missing:
                values[place] = before.values[place]
            last = last._replace(values=values)
        return last

    def newest(self, count: int) -> list[Sample]:
        """The newest `count` samples, oldest first."""
        return list(islice(self._samples, max(0, len(self._samples) - count), None))

    @property
    def interval(self) -> float:
        """Seconds between samples, by the newest sample; 1 where there is none."""
        last = self.last
        return last.length if last is not None and last.length > 0 else 1.0

    def newer_than(self, moment: float) -> int:
        """How many samples were taken after `moment` of the monotonic clock."""
        return sum(1 for _ in takewhile(lambda sample: sample.mono > moment, reversed(self._samples)))

    def values(self, terms: Terms, count: int) -> list[float]:
        """The newest `count` sums of `terms`, oldest first; NaN where a sample lacks one of them.

        A sum is worked out once, when its sample comes, however often it is drawn.
        """
        values = self._drawn.get(terms)
        if values is None:
            values = deque((value_of(sample, terms) for sample in self._samples), maxlen=self._samples.maxlen)
            self._drawn[terms] = values
        return list(islice(values, max(0, len(values) - count), None))


def value_of(sample: Sample, terms: Terms) -> float:
    """The sum of `terms` in one sample; NaN where it lacks one of them."""
    return sum([sample.get(name) * sign for name, sign in terms])


def newest_known(values: Sequence[float]) -> float:
    """The newest of `values`, or the one that is known of up to `_MISSED` ticks before; else NaN."""
    return next((value for value in reversed(values[-1 - _MISSED :]) if value == value), math.nan)


def bridged(values: Sequence[float]) -> list[float]:
    """`values`, where up to `_MISSED` missing ones in a row have that of the tick behind them.

    A rate is that of the time since the reading before, so it covers these ticks; a history with a gap at every second
    tick would be a comb. What is missing for longer, or at the end, stays a gap.
    """
    found = list(values)
    missing = 0
    for place, value in enumerate(values):
        if math.isnan(value):
            missing += 1
            continue
        if 0 < missing <= _MISSED and missing < place:
            found[place - missing : place] = [value] * missing
        missing = 0
    return found


TICKS = 10
"""How many of the newest samples count: one alone jumps too much to be read."""
_FULL, _EMPTY, _LIMIT = ("█", "="), ("░", "."), ("┃", "|")


class Gauge(NamedTuple):
    """A median in percent, NaN where it is not known: at its `limit` or beyond exactly where it is `at_limit`, which
    is so where it was for most of the time.
    """

    name: str
    percent: float
    at_limit: bool
    limit: float = 100.0

    @property
    def tone(self) -> str:
        """That of limits where it is at its own."""
        return "bad" if self.at_limit else "plain"

    def bar(self, columns: int, *, plain: bool, marked: bool = False) -> str:
        """A bar of so many columns, with its limit where it is `marked`; of ASCII alone where it has to be `plain`."""
        filled = round(min(100.0, self.percent) / 100 * columns) if self.percent == self.percent else 0
        drawn = _FULL[plain] * filled + _EMPTY[plain] * (columns - filled)
        at = int(self.limit / 100 * columns)
        return f"{drawn[:at]}{_LIMIT[plain]}{drawn[at + 1 :]}" if marked else drawn


UNKNOWN = (Gauge("disk", math.nan, False, DISK_BUSY), Gauge("cpu", math.nan, False, CPU_BUSY))
"""Those of no samples."""


def gauges(samples: Sequence[Sample]) -> tuple[Gauge, ...]:
    """Of `samples`, the disk's utilisation and the CPUs' work; what none of them has is left out."""
    known = {
        "disk": ([sample.get("disk_util_percent") for sample in samples], DISK_BUSY),
        "cpu": ([cpu_busy(sample.get) for sample in samples], CPU_BUSY),
    }
    return tuple(gauge for name, (values, limit) in known.items() for gauge in _gauge(name, values, limit))


def _gauge(name: str, values: Iterable[float], limit: float) -> Iterable[Gauge]:
    seen = [value for value in values if value == value]
    if seen:
        reached = 100 * sum(value >= limit for value in seen) / len(seen)
        # A mean may be below a limit that was reached for most of the time: a figure in red beside a bar short of it.
        yield Gauge(name, median_high(seen), reached >= MOST_OF_THE_TIME, limit)


MUCH_PERCENT = 20.0
"""From this share of the CPUs on, other work on the host is shown: it makes figures of the lab doubtful."""


class CpuUse(NamedTuple):
    """Shares of all CPUs together, in percent; NaN where unknown. `guests` is NaN while there are none.

    Without a lab, `guests` are the host's own, `lab` is this program, and `watched` is set. In a tick in which not all
    guests were read, `lab` has theirs too, and `undivided` is set.
    """

    guests: float
    lab: float
    outside: float
    watched: bool = False
    undivided: bool = False


def cpu_use(sample: Sample) -> CpuUse:
    """The shares in one sample; what the lab uses besides its guests is the runner and the programs it starts."""
    guests, own = (_sum_of(sample, metric) for metric in ("guest_cpu_percent", "domain_cpu_percent"))
    whole, outside = sample.get("cpu_lab_percent"), sample.get("cpu_outside_lab_percent")
    if not math.isnan(own) and math.isnan(guests):
        return CpuUse(own, whole, max(0.0, outside - own), watched=True)
    if any(math.isnan(sample.values[place]) for place in _places(sample.layout.names, "guest_cpu_percent")):
        return CpuUse(math.nan, whole, outside, undivided=True)
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
def _guests(names: tuple[str, ...]) -> tuple[int, ...]:
    """The places of what is read of the lab's guests."""
    return tuple(place for place, name in enumerate(names) if name.startswith("guest_"))


@lru_cache(maxsize=16)
def _places(names: tuple[str, ...], metric: str) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(names) if name.startswith(f"{metric}["))
