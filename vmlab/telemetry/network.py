"""Traffic on the lab's bridge, from /proc/net/dev of the lab's own network namespace."""

from __future__ import annotations

from vmlab.telemetry.counter import NAN, growths
from vmlab.telemetry.figure import HostFigure
from vmlab.telemetry.source import KernelFile, Roots

_NOT_PORTS = frozenset({"lo"})
# Columns after the colon: rx bytes, packets, errs, drop, 4 more; tx bytes, packets, errs, drop, …
_WANTED = (0, 1, 3, 8, 9, 11)

FIGURES = (
    HostFigure(
        "network_receive_bytes_per_second", "lab network", "between guests", "", chart="Lab network", tone="one"
    ),
)


class BridgeTraffic:
    """What guests sent to the bridge and what the bridge delivered to them, added up over its ports.

    A bridge's own counters miss what it forwards from guest to guest, so the counters of its ports are used: every
    interface of the lab's namespace except the loopback and the bridge. Received is what guests sent.
    """

    title = "the lab's network"
    names: tuple[str, ...] = (
        "network_receive_bytes_per_second",
        "network_receive_packets_per_second",
        "network_receive_drops_per_second",
        "network_transmit_bytes_per_second",
        "network_transmit_packets_per_second",
        "network_transmit_drops_per_second",
        "network_ports",
    )

    def __init__(self, roots: Roots, bridge: str) -> None:
        self._file = KernelFile(roots.proc / "net/dev")
        self._bridge = bridge
        self._before: dict[str, list[int]] | None = None

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`. A port that appeared during the tick counts from the next tick on; NaN without a bridge."""
        now: dict[str, list[int]] = {}
        bridged = False
        for line in self._file.read().split(b"\n")[2:]:
            name, _, rest = line.partition(b":")
            port = name.strip().decode()
            bridged |= port == self._bridge
            if not rest or port in _NOT_PORTS or port == self._bridge:
                continue
            columns = rest.split()
            now[port] = [int(columns[column]) for column in _WANTED]
        before, self._before = self._before, now if bridged else None
        if not bridged:
            return [NAN] * len(self.names)
        if before is None:
            return [*[NAN] * len(_WANTED), float(len(now))]
        grown = [growths(counters, before[port]) for port, counters in now.items() if port in before]
        totals = [sum(column) / length for column in zip(*(g for g in grown if g is not None), strict=True)]
        return [*(totals or [0.0] * len(_WANTED)), float(len(now))]
