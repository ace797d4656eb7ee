"""Each guest's figures, from two answers of libvirt's bulk statistics (virConnectGetAllDomainStats)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from operator import itemgetter, sub
from typing import NamedTuple, cast

from vmlab.telemetry.host.counter import NAN

GuestStats = Mapping[str, Mapping[str, int]]
"""libvirt's parameters (``cpu.time``, ``block.0.rd.bytes``, …) by the name of the domain."""

METRICS = (
    "guest_cpu_percent",
    "guest_vcpu_delay_percent",
    "guest_memory_resident_bytes",
    "guest_memory_balloon_bytes",
    "guest_disk_read_bytes_per_second",
    "guest_disk_write_bytes_per_second",
    "guest_disk_reads_per_second",
    "guest_disk_writes_per_second",
    "guest_disk_read_await_ms",
    "guest_disk_write_await_ms",
    "guest_network_receive_bytes_per_second",
    "guest_network_transmit_bytes_per_second",
    "guest_network_receive_packets_per_second",
    "guest_network_transmit_packets_per_second",
)
_BLOCK = ("rd.bytes", "wr.bytes", "rd.reqs", "wr.reqs", "rd.times", "wr.times")
_NET = ("rx.bytes", "tx.bytes", "rx.pkts", "tx.pkts")
_MEMORY = ("balloon.rss", "balloon.current")
_OF_DELAY, _OF_DISKS, _OF_NICS = slice(1, 2), slice(2, 2 + len(_BLOCK)), slice(2 + len(_BLOCK), None)
_Reading = tuple[int, float]
"""A counter, and when it was read."""
_NEVER: list[_Reading | None] = [None] * (2 + len(_BLOCK) + len(_NET))


class Counted(NamedTuple):
    """What an answer has about one guest: resident and balloon memory (KiB) and counters; None for what is missing."""

    rss: int | None
    balloon: int | None
    counters: Sequence[int | None]
    whole: bool


GuestCounters = Mapping[str, Counted]
"""By the name of the domain."""


class _Whole(NamedTuple):
    """All counters of one guest, read at `mono`."""

    counters: Sequence[int]
    mono: float


class _Keys:
    """libvirt's names for the counters of guests with so many vCPUs, disks and NICs."""

    def __init__(self, vcpus: int, blocks: int, nets: int) -> None:
        self._apart = [
            ["cpu.time"],
            [f"vcpu.{n}.delay" for n in range(vcpus)],
            *([f"block.{n}.{key}" for n in range(blocks)] for key in _BLOCK),
            *([f"net.{n}.{key}" for n in range(nets)] for key in _NET),
        ]
        ends = list(accumulate(map(len, self._apart), initial=0))
        self._spans = [slice(begin, end) for begin, end in pairwise(ends)]
        self._plain = all(len(keys) == 1 for keys in self._apart)
        self._every = itemgetter(*_MEMORY, *chain.from_iterable(self._apart))
        self._all_there = all(self._apart)

    def counted(self, figures: Mapping[str, int]) -> Counted:
        """Those of one guest's answer."""
        if self._all_there:
            try:
                rss, balloon, *every = self._every(figures)
            except KeyError:
                pass
            else:
                return Counted(rss, balloon, every if self._plain else [sum(every[span]) for span in self._spans], True)
        get = figures.get
        rss, balloon = map(get, _MEMORY)
        return Counted(rss, balloon, [_sum(get, wanted) for wanted in self._apart], False)


class GuestAnswers:
    """Takes from libvirt's answers what the rates need: a fourth of it."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, int, int], _Keys] = {}

    def counters(self, stats: GuestStats) -> GuestCounters:
        """The counters of all guests. Any thread may call."""
        return {guest: self._keys_of(figures).counted(figures) for guest, figures in stats.items()}

    def _keys_of(self, figures: Mapping[str, int]) -> _Keys:
        shape = (figures.get("vcpu.maximum", 0), figures.get("block.count", 0), figures.get("net.count", 0))
        keys = self._keys.get(shape)
        if keys is None:
            keys = self._keys[shape] = _Keys(*shape)
        return keys


class GuestRates:
    """Turns answers into rates. An answer has the time at which it was given, so that a rate is over the true time
    between two answers. A guest or a value that is missing in an answer is NaN and does not affect others. When it
    comes back, its rate is over the time since it was last read. libvirt's counters do not wrap: a guest whose CPU time
    went back was started anew, and none of its rates is known; where a counter of its disks or NICs went back, one of
    them was changed, and none of theirs is.
    """

    def __init__(self) -> None:
        self._before: dict[str, _Whole | list[_Reading | None]] = {}
        self.names: tuple[str, ...] = ()

    def rates(self, counted: GuestCounters, mono: float) -> list[float]:
        """Values parallel to `names`, from the counters of an answer that was given at `mono`."""
        values: list[float] = []
        readings: dict[str, _Whole | list[_Reading | None]] = {}
        for guest, (rss, balloon, counters, whole) in counted.items():
            before = self._before.get(guest, _NEVER)
            if whole:
                readings[guest] = _Whole(cast(Sequence[int], counters), mono)
                if isinstance(before, _Whole) and mono > before.mono:
                    # The usual way, at a third of the cost of the one that follows.
                    grown = list(map(sub, cast(Sequence[int], counters), before.counters))
                    if min(grown) >= 0:
                        values += _values(grown, mono - before.mono, rss, balloon)
                        continue
            if isinstance(before, _Whole):
                before = [(counter, before.mono) for counter in before.counters]
            if not whole:
                readings[guest] = [b if n is None else (n, mono) for n, b in zip(counters, before, strict=True)]
            rates = _rates(counters, mono, before)
            values += _values(rates, 1.0, rss, balloon)
        if readings.keys() != self._before.keys() or not self.names:
            self.names = tuple(f"{metric}[{guest}]" for guest in readings for metric in METRICS)
        self._before = readings
        return values

    def unknown(self) -> list[float]:
        """Values for a tick in which no answer came."""
        return [NAN] * len(self.names)


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


def _rates(counters: Sequence[int | None], mono: float, before: Sequence[_Reading | None]) -> list[float]:
    """Growth per second of a guest's counters; NaN until one was read twice, and for all that began anew together."""
    back = [n is not None and b is not None and n < b[0] for n, b in zip(counters, before, strict=True)]
    rates = [
        NAN if n is None or b is None or mono <= b[1] else (n - b[0]) / (mono - b[1])
        for n, b in zip(counters, before, strict=True)
    ]
    if back[0]:
        return [NAN] * len(rates)
    for span in (_OF_DELAY, _OF_DISKS, _OF_NICS):
        if any(back[span]):
            rates[span] = [NAN] * len(rates[span])
    return rates


def _values(grown: Sequence[float], length: float, rss: int | None, balloon: int | None) -> tuple[float, ...]:
    """The metrics of one guest, whose counters have grown so far in `length` seconds."""
    cpu, delay, rd_bytes, wr_bytes, reads, writes, rd_ns, wr_ns, rx, tx, rx_packets, tx_packets = grown
    return (
        cpu / length / 1e7,
        delay / length / 1e7,
        NAN if rss is None else rss * 1024.0,
        NAN if balloon is None else balloon * 1024.0,
        rd_bytes / length,
        wr_bytes / length,
        reads / length,
        writes / length,
        rd_ns / reads / 1e6 if reads else 0.0 * rd_ns,
        wr_ns / writes / 1e6 if writes else 0.0 * wr_ns,
        rx / length,
        tx / length,
        rx_packets / length,
        tx_packets / length,
    )
