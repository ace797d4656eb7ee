"""Each guest's figures, from two answers of libvirt's bulk statistics (virConnectGetAllDomainStats)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vmlab.telemetry.counter import NAN, growth

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
_Reading = tuple[int, float]
"""A counter, and when it was read."""
_NEVER: list[_Reading | None] = [None] * (2 + len(_BLOCK) + len(_NET))


class GuestRates:
    """Turns answers into rates. An answer has the time at which it was given, so that a rate is over the true time
    between two answers. A guest or a value that is missing in an answer is NaN and does not affect others. When it
    comes back, its rate is over the time since it was last read.
    """

    def __init__(self) -> None:
        self._before: dict[str, list[_Reading | None]] = {}
        self._keys: dict[tuple[int, int, int], list[list[str]]] = {}
        self.names: tuple[str, ...] = ()

    def rates(self, stats: GuestStats, mono: float) -> list[float]:
        """Values parallel to `names`, from the answer `stats` that was given at `mono`."""
        values: list[float] = []
        readings: dict[str, list[_Reading | None]] = {}
        for guest, figures in stats.items():
            now, before = self._counters(figures), self._before.get(guest, _NEVER)
            rates = [_rate(n, mono, b) for n, b in zip(now, before, strict=True)]
            readings[guest] = [b if n is None else (n, mono) for n, b in zip(now, before, strict=True)]
            values += _values(rates, figures.get("balloon.rss"), figures.get("balloon.current"))
        if readings.keys() != self._before.keys() or not self.names:
            self.names = tuple(f"{metric}[{guest}]" for guest in readings for metric in METRICS)
        self._before = readings
        return values

    def unknown(self) -> list[float]:
        """Values for a tick in which no answer came."""
        return [NAN] * len(self.names)

    def _counters(self, figures: Mapping[str, int]) -> list[int | None]:
        shape = (figures.get("vcpu.maximum", 0), figures.get("block.count", 0), figures.get("net.count", 0))
        keys = self._keys.get(shape)
        if keys is None:
            keys = self._keys[shape] = _keys(*shape)
        get = figures.get
        return [get("cpu.time"), *(_sum(get, wanted) for wanted in keys)]


def _keys(vcpus: int, blocks: int, nets: int) -> list[list[str]]:
    return [
        [f"vcpu.{n}.delay" for n in range(vcpus)],
        *([f"block.{n}.{key}" for n in range(blocks)] for key in _BLOCK),
        *([f"net.{n}.{key}" for n in range(nets)] for key in _NET),
    ]


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


def _rate(now: int | None, mono: float, before: _Reading | None) -> float:
    """Growth per second; NaN until a counter was read twice."""
    if now is None or before is None or mono <= before[1]:
        return NAN
    return (now - before[0] if now >= before[0] else growth(now, before[0])) / (mono - before[1])


def _values(rates: list[float], rss: int | None, balloon: int | None) -> list[float]:
    cpu, delay, rd_bytes, wr_bytes, reads, writes, rd_ns, wr_ns, rx, tx, rx_packets, tx_packets = rates
    return [
        cpu / 1e7,
        delay / 1e7,
        NAN if rss is None else rss * 1024,
        NAN if balloon is None else balloon * 1024,
        rd_bytes,
        wr_bytes,
        reads,
        writes,
        rd_ns / reads / 1e6 if reads else 0.0 * rd_ns,
        wr_ns / writes / 1e6 if writes else 0.0 * wr_ns,
        rx,
        tx,
        rx_packets,
        tx_packets,
    ]
