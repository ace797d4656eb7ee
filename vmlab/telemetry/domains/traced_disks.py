"""Requests to the disks of the host's own guests as the block devices below them get them, a group of the recorder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

from vmlab.model.domain import Domain
from vmlab.model.sample import TRACED_LENGTH
from vmlab.telemetry.domains.block_events import BlockEvents, Placed, WayCounts
from vmlab.telemetry.domains.disk_extents import placed, why_not_traced
from vmlab.telemetry.domains.open_disks import path_seen_by
from vmlab.telemetry.source import NAN, THE_HOST, Roots
from vmlab.telemetry.told_once import once

OF_TRACE = tuple(
    f"domain_disk_traced_{name}"
    for way in ("read", "write")
    for name in (
        f"{way}s_per_second",
        f"sequential_{way}s_per_second",
        f"{way}_bytes_per_second",
        f"{way}_depth",
    )
)
"""With ``[DOMAIN/TARGET]``, of each disk that is traced."""
_PAUSE_SECONDS = 0.1
_PLACES_SECONDS = 10.0
"""How often it is asked where the files lie: they grow, and disks come and go."""
_MOST_PARTS = 256
"""Parts of the trace that are read in a row; of a trace that is faster the kernel drops the rest, and says so."""


class Trace(Protocol):
    """Where the events come from."""

    def trace(self, devices: Collection[tuple[int, int]]) -> None:
        """Trace these devices and no other."""

    def read(self) -> bytes:
        """What came, or nothing."""
        ...


class TracedDisks:
    """Figures of each disk that can be traced; `domains` says who there is, `notify` takes a line for each other disk.

    Events are read in a thread between `start` and `close`. A second of which the kernel dropped some is NaN.
    """

    title = "the trace of the disks"

    def __init__(
        self,
        trace: Trace,
        domains: Callable[[], Sequence[Domain]],
        notify: Callable[[str], None],
        roots: Roots = THE_HOST,
    ) -> None:
        self.names: tuple[str, ...] = ()
        self._trace = trace
        self._domains = domains
        self._tell_once = once(notify)
        self._roots = roots
        self._events = BlockEvents()
        self._rest = b""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._error: OSError | None = None
        self._placed: tuple[Placed, ...] = ()
        self._traced: tuple[str, ...] = ()
        self._counted: dict[str, tuple[float, ...]] = {}
        self._until = time.monotonic()
        self._before: tuple[float, int, dict[str, tuple[float, ...]]] = (self._until, 0, {})
        self._thread = threading.Thread(target=self._follow, name="disk-trace", daemon=True)

    def start(self) -> None:
        """Read events from now on."""
        self._thread.start()

    def close(self) -> None:
        """End the thread. A second call does nothing."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`. The span ends up to a tenth of a second before `mono`, as events are read by then."""
        if self._error is not None:
            raise self._error
        with self._lock:
            until, lost, counted, traced = self._until, self._events.lost, self._counted, self._traced
        before, self._before = self._before, (until, lost, counted)
        if traced != tuple(dict.fromkeys(name.partition("[")[2][:-1] for name in self.names[1:])):
            self.names = (TRACED_LENGTH, *(f"{metric}[{name}]" for name in traced for metric in OF_TRACE))
        passed, none = until - before[0], (0.0,) * len(OF_TRACE)
        values = [passed] if self.names else []
        for name in traced:
            known = name in before[2] and name in counted and lost == before[1] and passed > 0
            grown = zip(counted.get(name, none), before[2].get(name, none), strict=True)
            values += [(new - old) / passed if known else NAN for new, old in grown]
        return values

    def look(self) -> None:
        """Ask where the disks lie, and trace the devices below them. Raises OSError where that is refused."""
        found = []
        for domain in self._domains():
            for disk in domain.disks:
                name = f"{domain.name}/{disk.target}"
                try:
                    why = why_not_traced(disk)
                    if not why:
                        found.append(placed(name, self._path(domain, disk.file), self._roots))
                except (OSError, ValueError) as error:
                    why = str(error)
                if why:
                    self._tell_once(name, f"{name} is not traced: {why}")
        devices = {one for disk in found for one in disk.devices}
        if devices != {one for disk in self._placed for one in disk.devices}:
            self._trace.trace(devices)
        self._placed = tuple(found)
        self._events.place(found)

    def follow(self) -> None:
        """Count what came since the last call. Raises OSError."""
        until = time.monotonic()
        for _ in range(_MOST_PARTS):
            part = self._trace.read()
            if not part:
                break
            *lines, self._rest = (self._rest + part).split(b"\n")
            with self._lock:
                self._events.feed(lines)
        counts = self._events.counts()
        with self._lock:
            self._traced = tuple(sorted(one.name for one in self._placed))
            self._counted = {
                name: tuple(value for way in "RW" for value in _in_order(counts.get((name, way)) or WayCounts()))
                for name in self._traced
            }
            self._until = until

    def _follow(self) -> None:
        looked = -_PLACES_SECONDS
        try:
            while not self._stopped.wait(_PAUSE_SECONDS):
                if time.monotonic() - looked >= _PLACES_SECONDS or not self._placed:
                    looked = time.monotonic()
                    self.look()
                self.follow()
        except OSError as error:
            self._error = error

    def _path(self, domain: Domain, file: str) -> Path:
        return path_seen_by(self._roots.proc / str(domain.pid), file) if domain.pid else Path(file)


def _in_order(one: WayCounts) -> tuple[float, ...]:
    """As in `OF_TRACE`; the time of all requests over the time that passes is their mean depth (Little's law)."""
    requests, sequential, moved, waited = one.values()
    return (requests, sequential, moved, waited)
