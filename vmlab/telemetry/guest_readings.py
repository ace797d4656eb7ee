"""Each guest's figures, from two answers of libvirt's bulk statistics (virConnectGetAllDomainStats)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from operator import itemgetter, sub
from typing import Generic, NamedTuple, TypeVar, cast

from vmlab.model.sample import OF_DATA_DISKS, OF_GUESTS_DISKS
from vmlab.telemetry.source import NAN

Found = TypeVar("Found", covariant=True)
"""What is kept of an answer."""

GuestStats = Mapping[str, Mapping[str, int]]
"""libvirt's parameters (``cpu.time``, ``block.0.rd.bytes``, …) by the name of the domain."""


class Timed(NamedTuple, Generic[Found]):
    """What libvirt found out between `asked` and `given`, in seconds of the monotonic clock."""

    asked: float
    given: float
    found: Found

    @property
    def read_at(self) -> float:
        """When the counters were read, as well as it is known: in the middle."""
        return (self.asked + self.given) / 2

    @property
    def doubt(self) -> float:
        """Seconds that `read_at` may be wrong by. A guest that is being ended holds up the answer for all others."""
        return (self.given - self.asked) / 2


class GuestAnswer(NamedTuple, Generic[Found]):
    """libvirt's answer to one question. The counters of disks and the balloon come from QEMU itself, which may take
    seconds: they have a time of their own, and are None in an answer that they were too late for.
    """

    quick: Timed[Found]
    disks: Timed[Found] | None


_BLOCK = ("rd.bytes", "wr.bytes", "rd.reqs", "wr.reqs", "rd.times", "wr.times")
_OF_DATA = ("rd.reqs", "wr.reqs", "rd.times", "wr.times")
DATA_BLOCK = "block.data"
"""Among libvirt's parameters of a guest with a data disk, which of its blocks that is."""
_NET = ("rx.bytes", "tx.bytes", "rx.pkts", "tx.pkts")
_Reading = tuple[int, float]
"""A counter, and when it was read."""
_Together = tuple[tuple[range, range], ...]


class Part(NamedTuple):
    """Figures that come in one answer: their names, libvirt's names of levels (KiB) and of numbers of devices, those of
    the counters to sum up with so many devices, and the figures from levels, growth of the counters and its seconds.
    `together`: where a counter of the first places went back, all of the second began anew.
    """

    metrics: tuple[str, ...]
    levels: tuple[str, ...]
    devices: tuple[str, ...]
    keys: Callable[..., list[list[str]]]
    values: Callable[[Sequence[int | None], Sequence[float], float], tuple[float, ...]]
    together: _Together


def _quick_keys(vcpus: int, nets: int) -> list[list[str]]:
    own = ["cpu.time"], [f"vcpu.{n}.delay" for n in range(vcpus)]
    return [*own, *([f"net.{n}.{key}" for n in range(nets)] for key in _NET)]


def _quick_values(levels: Sequence[int | None], grown: Sequence[float], length: float) -> tuple[float, ...]:
    cpu, delay, *moved = grown
    return (cpu / length / 1e7, delay / length / 1e7, *(one / length for one in moved))


def _disk_keys(blocks: int) -> list[list[str]]:
    return [[f"block.{n}.{key}" for n in range(blocks)] for key in _BLOCK]


def _disk_values(levels: Sequence[int | None], grown: Sequence[float], length: float) -> tuple[float, ...]:
    rss, balloon = levels
    rd_bytes, wr_bytes, *of_requests = grown
    return (
        NAN if rss is None else rss * 1024.0,
        NAN if balloon is None else balloon * 1024.0,
        rd_bytes / length,
        wr_bytes / length,
        *_request_values(of_requests, length),
    )


def _request_values(grown: Sequence[float], length: float) -> tuple[float, ...]:
    """Rates of reads and writes, and how long one took."""
    reads, writes, rd_ns, wr_ns = grown
    return (
        reads / length,
        writes / length,
        rd_ns / reads / 1e6 if reads else 0.0 * rd_ns,
        wr_ns / writes / 1e6 if writes else 0.0 * wr_ns,
    )


QUICK = Part(
    (
        "guest_cpu_percent",
        "guest_vcpu_delay_percent",
        "guest_network_receive_bytes_per_second",
        "guest_network_transmit_bytes_per_second",
        "guest_network_receive_packets_per_second",
        "guest_network_transmit_packets_per_second",
    ),
    (),
    ("vcpu.current", "net.count"),
    _quick_keys,
    _quick_values,
    # A guest whose CPU time went back was started anew; one whose NICs' did had one changed.
    ((range(1), range(6)), (range(1, 2), range(1, 2)), (range(2, 6), range(2, 6))),
)
"""What libvirt knows without QEMU."""
DISKS = Part(
    OF_GUESTS_DISKS,
    ("balloon.rss", "balloon.current"),
    ("block.count",),
    _disk_keys,
    _disk_values,
    ((range(6), range(6)),),
)
"""What it asks QEMU for."""


class Counted(NamedTuple):
    """What an answer has about one guest: levels (KiB) and counters; None for what is missing. `data` are counters of
    its data disk, None where it has none or they are missing.
    """

    levels: Sequence[int | None]
    counters: Sequence[int | None]
    whole: bool
    data: Sequence[int] | None = None


GuestCounters = Mapping[str, Counted]
"""By the name of the domain."""


class _Whole(NamedTuple):
    """All counters of one guest, read at `mono`."""

    counters: Sequence[int]
    mono: float


class _Keys:
    """libvirt's names for the levels and counters of guests with so many devices."""

    def __init__(self, part: Part, devices: Sequence[int]) -> None:
        self._levels = part.levels
        self._apart = part.keys(*devices)
        ends = list(accumulate(map(len, self._apart), initial=0))
        self._spans = [slice(begin, end) for begin, end in pairwise(ends)]
        self._plain = all(len(keys) == 1 for keys in self._apart)
        self._every = itemgetter(*part.levels, *chain.from_iterable(self._apart))
        self._all_there = all(self._apart)

    def counted(self, figures: Mapping[str, int]) -> Counted:
        """Those of one guest's answer."""
        count = len(self._levels)
        if self._all_there:
            try:
                every = self._every(figures)
            except KeyError:
                pass
            else:
                levels, counters = every[:count], every[count:]
                return Counted(levels, counters if self._plain else [sum(counters[span]) for span in self._spans], True)
        get = figures.get
        return Counted([get(name) for name in self._levels], [_sum(get, wanted) for wanted in self._apart], False)


class GuestAnswers:
    """Takes from libvirt's answers what the rates need: a fourth of it."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, ...], _Keys] = {}

    def cut(self, answer: GuestAnswer[GuestStats]) -> GuestAnswer[GuestCounters]:
        """The counters of all guests. Any thread may call."""
        quick, disks = answer
        return GuestAnswer(
            Timed(quick.asked, quick.given, self.counters(QUICK, quick.found)),
            None if disks is None else Timed(disks.asked, disks.given, self.counters(DISKS, disks.found)),
        )

    def counters(self, part: Part, stats: GuestStats) -> GuestCounters:
        """Those of one part of an answer."""
        found = {guest: self._keys_of(part, figures).counted(figures) for guest, figures in stats.items()}
        if part is DISKS:
            for guest, figures in stats.items():
                if (data := _of_data(figures)) is not None:
                    found[guest] = found[guest]._replace(data=data)
        return found

    def _keys_of(self, part: Part, figures: Mapping[str, int]) -> _Keys:
        shape = tuple([figures.get(name, 0) for name in part.devices])
        keys = self._keys.get(shape)
        if keys is None:
            # Parts differ in how many kinds of devices they have, so that no shape is of both.
            keys = self._keys[shape] = _Keys(part, shape)
        return keys


class GuestRates:
    """Turns answers about one part into rates, each over the true time between two answers. A guest or a value that is
    missing in an answer is NaN and does not affect others. When it comes back, its rate is over the time since it was
    last read. libvirt's counters do not wrap: one that went back began anew, and no rate is known of it and of those
    that begin anew with it (`Part.together`).
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self._never: list[_Reading | None] = [None] * len(part.keys(*[0 for _ in part.devices]))
        self._before: dict[str, _Whole | list[_Reading | None]] = {}
        self._data: dict[str, _Whole] = {}
        self._with_data: list[str] = []
        self.names: tuple[str, ...] = ()

    def rates(self, counted: GuestCounters, mono: float) -> list[float]:
        """Values parallel to `names`, from counters that were read at `mono`."""
        values: list[float] = []
        readings: dict[str, _Whole | list[_Reading | None]] = {}
        figures = self._part.values
        for guest, (levels, counters, whole, _) in counted.items():
            before = self._before.get(guest, self._never)
            if whole:
                readings[guest] = _Whole(cast(Sequence[int], counters), mono)
                if isinstance(before, _Whole) and mono > before.mono:
                    # The usual way, at a third of the cost of the one that follows.
                    grown = list(map(sub, cast(Sequence[int], counters), before.counters))
                    if min(grown) >= 0:
                        values += figures(levels, grown, mono - before.mono)
                        continue
            if isinstance(before, _Whole):
                before = [(counter, before.mono) for counter in before.counters]
            if not whole:
                readings[guest] = [b if n is None else (n, mono) for n, b in zip(counters, before, strict=True)]
            values += figures(levels, _rates(counters, mono, before, self._part.together), 1.0)
        data = {guest: _Whole(one.data, mono) for guest, one in counted.items() if one.data is not None}
        for guest, now in data.items():
            values += _data_values(now, self._data.get(guest))
        self._data |= data
        if readings.keys() != self._before.keys() or [*data] != self._with_data or not self.names:
            self._with_data = [*data]
            of_guests = (f"{metric}[{guest}]" for guest in readings for metric in self._part.metrics)
            self.names = (*of_guests, *(f"{metric}[{guest}]" for guest in data for metric in OF_DATA_DISKS))
        self._before = readings
        return values

    def unknown(self) -> list[float]:
        """Values for a tick in which no answer came."""
        return [NAN] * len(self.names)


def _of_data(figures: Mapping[str, int]) -> Sequence[int] | None:
    """The counters of a guest's data disk."""
    number = figures.get(DATA_BLOCK)
    found = [figures.get(f"block.{number}.{key}") for key in _OF_DATA] if number is not None else [None]
    return None if None in found else cast(Sequence[int], found)


def _data_values(now: _Whole, before: _Whole | None) -> Sequence[float]:
    """Those of a guest's data disk; NaN where it was not read before, or began anew."""
    if before is not None and now.mono > before.mono:
        grown = list(map(sub, now.counters, before.counters))
        if min(grown) >= 0:
            return _request_values(grown, now.mono - before.mono)
    return [NAN] * len(OF_DATA_DISKS)


def _sum(get: Callable[[str], int | None], keys: list[str]) -> int | None:
    """The sum over a guest's disks, NICs or vCPUs; None where there are none, or one is unknown."""
    if len(keys) == 1:
        return get(keys[0])
    total = 0
    for key in keys:
        value = get(key)
        if value is None:
            return None
        total += value
    return total if keys else None


def _rates(
    counters: Sequence[int | None], mono: float, before: Sequence[_Reading | None], together: _Together
) -> list[float]:
    """Growth per second of a guest's counters; NaN until one was read twice, and for all that began anew together."""
    back = [n is not None and b is not None and n < b[0] for n, b in zip(counters, before, strict=True)]
    rates = [
        NAN if n is None or b is None or mono <= b[1] else (n - b[0]) / (mono - b[1])
        for n, b in zip(counters, before, strict=True)
    ]
    for seen, anew in together:
        if any(back[place] for place in seen):
            for place in anew:
                rates[place] = NAN
    return rates
