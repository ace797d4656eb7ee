"""Traffic on the lab's bridges, from /proc/net/dev of the lab's own network namespace."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter, sub

from vmlab.model.names import FAR_BRIDGE, LIMITER_PREFIX, OVERLAY_CABLE, ROUTED_PREFIX, TUNNEL
from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, HostChart, HostFigure, Watched
from vmlab.telemetry.source import MOST_BYTES_PER_SECOND, NAN, KernelFile, Roots, growths

_LOOPBACK = b"lo:"
_BETWEEN = tuple(f"{name}:".encode() for name in (FAR_BRIDGE, *OVERLAY_CABLE, *TUNNEL))
_OF_ONE_GUEST = (LIMITER_PREFIX.encode(), ROUTED_PREFIX.encode())
# Columns after the colon: rx bytes, packets, errs, drop, 4 more; tx bytes, packets, errs, drop, …
_WANTED = (0, 1, 3, 8, 9, 11)
_WORDS = 17
_STALE_SECONDS = 2.0
"""Some cards bring their counters up to date this seldom."""

_CHART = HostChart("Lab network", panel=8)
FIGURES = (HostFigure("network_receive_bytes_per_second", "lab network", "between guests", "", chart=_CHART),)


class BridgeTraffic:
    """What guests sent to a bridge and what a bridge delivered to them, added up over its ports.

    A bridge's own counters miss what it forwards from guest to guest, so the counters of its ports are used: every
    interface of the lab's namespace except the loopback, bridges, tunnels and limits. Received is what guests sent.
    A port whose counters went back is another one under the same name, and counts from the next tick on as a new one
    does. Only a network card can wrap instead, within what its speed and the time allow: other interfaces have no
    speed (a tap always says 10 Mbit/s).
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
        self._cards = roots.sys / "class/net"
        self._bridge = f"{bridge}:".encode()
        self._lines: list[bytes] = []
        self._ports: list[bytes] = []
        self._pick: Callable[[list[bytes]], tuple[bytes, ...]] | None = None
        self._before: list[int] | None = None

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`. A port that appeared during the tick counts from the next tick on; NaN without a bridge."""
        text = self._file.read()
        # After two lines of headings, each line is a name with a colon and 16 numbers.
        text = text[text.index(b"\n", text.index(b"\n") + 1) :]
        words = text.split()
        lines = words[::_WORDS]
        if lines != self._lines and any(not line.endswith(b":") for line in lines):
            # Older kernels have no space after the colon where a number is long.
            words = text.replace(b":", b": ").split()
            lines = words[::_WORDS]
        ports, before = self._ports, self._before
        if lines != self._lines:
            self._find_ports(lines)
        if self._bridge not in lines:
            self._before = None
            return [NAN] * len(self.names)
        now = list(map(int, self._pick(words))) if self._pick is not None else []
        self._before = now
        count = float(len(self._ports))
        if before is None:
            return [*[NAN] * len(_WANTED), count]
        grown: list[float] = list(map(sub, now, before))
        if ports is not self._ports or min(grown, default=0) < 0:
            grown = self._grown_apart(now, ports, before, length)
        if max(grown, default=0) > MOST_BYTES_PER_SECOND * length:
            return [*[NAN] * len(_WANTED), count]
        width = len(grown) // len(_WANTED)
        return [*(sum(grown[at * width :][:width]) / length for at in range(len(_WANTED))), count]

    def _find_ports(self, lines: list[bytes]) -> None:
        if not all(line.endswith(b":") for line in lines):
            raise ValueError("/proc/net/dev has another form than expected")
        self._lines = lines
        # What passes a tunnel or a limit has been counted at the port of its guest.
        no_ports = (_LOOPBACK, self._bridge, *_BETWEEN)
        taps = [line not in no_ports and not line.startswith(_OF_ONE_GUEST) for line in lines]
        places = [place for place, is_tap in enumerate(taps) if is_tap]
        self._ports = [lines[place] for place in places]
        wanted = [place * _WORDS + 1 + column for column in _WANTED for place in places]
        self._pick = itemgetter(*wanted) if wanted else None

    def _grown_apart(self, now: list[int], known: list[bytes], before: list[int], length: float) -> list[float]:
        """The growth of the ports that were there before and are the same, in the order of `now`: column by column."""
        ports = self._ports
        old = {port: before[place :: len(known)] for place, port in enumerate(known)}
        grown = [
            growths(now[place :: len(ports)], old[port], self._fastest(port) * (length + _STALE_SECONDS))
            for place, port in enumerate(ports)
            if port in old
        ]
        return [value for column in zip(*(each for each in grown if each is not None), strict=True) for value in column]

    def _fastest(self, port: bytes) -> float:
        """Bytes a second that a network card can carry, from its speed in Mbit/s; infinite where nothing says it."""
        card = self._cards / port[:-1].decode()
        try:
            speed = int((card / "speed").read_text()) if (card / "device").exists() else 0
        except (OSError, ValueError):
            speed = 0
        return speed * 125_000 if speed > 0 else math.inf


def _traffic(watched: Watched) -> BridgeTraffic | None:
    return None if watched.network is None else BridgeTraffic(watched.roots, watched.network)


SOURCE = FigureSource((GroupMaker(BridgeTraffic.title, _traffic),), FIGURES, place=9)
