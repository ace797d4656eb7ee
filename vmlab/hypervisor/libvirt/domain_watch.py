"""Watches the QEMU of each guest: whether it runs, whether it was stopped, and why it died; who waits for that is told.

A death is reported by three sources, in any order: a pidfd of the process, libvirt's event, and the lab's init, which
reaps it and alone knows its exit status. After the first report there is a short wait for the others, so that the cause
contains all that is known. A guest that the lab ends itself is no longer watched then.

libvirt's event loop is run by a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import libvirt

from vmlab.hypervisor.isolation.init import Change, Children
from vmlab.hypervisor.libvirt.libvirt_root import Places
from vmlab.hypervisor.protocols import CAUSE_SECONDS
from vmlab.model.errors import GuestLost
from vmlab.model.visible import visible_line

_CONSOLE_READ = 4096
_CONSOLE_SHOWN = 200
_MOST_ENDED = 256
_MOST_TUNED = 1000
_ORDERED = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


@dataclass(slots=True)
class _Guest:
    domain: str
    uuid: str
    pid: int
    pidfd: int | None = None
    stopped: float = 0.0
    since: float | None = None
    halts: set[str] = field(default_factory=set)
    """What holds it now: a signal, or somebody who has paused it."""
    tuned: list[str] = field(default_factory=list)
    reason: str = ""
    reporting: asyncio.TimerHandle | None = None

    def stand(self, now: float, *, still: bool, by: str = "a signal") -> None:
        """It stands still from now on, or goes on as far as this holds it."""
        (self.halts.add if still else self.halts.discard)(by)
        if self.since is not None:
            self.stopped += now - self.since
        self.since = now if self.halts else None

    def stopped_until(self, now: float) -> float:
        return self.stopped + (0.0 if self.since is None else now - self.since)


def last_line(console: Path) -> str:
    """What stands last in a guest's console log: its kernel's panic, if there is one; empty where nothing stands."""
    try:
        with console.open("rb") as file:
            file.seek(max(0, console.stat().st_size - _CONSOLE_READ))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    panics = [line for line in lines if "Kernel panic" in line]
    return (panics or lines or [""])[-1][:_CONSOLE_SHOWN]


class DomainWatch:
    """For one event loop, and its thread alone. `places` gives each domain's process and the last line of its log,
    `console_of` the log of the serial console of a guest by its name. `why_killed` says why the kernel has killed a
    process of the lab since it was asked last; empty where it has killed none.
    """

    def __init__(
        self, places: Places, console_of: Callable[[str], Path], why_killed: Callable[[], str] = lambda: ""
    ) -> None:
        self._places = places
        self._console_of = console_of
        self._why_killed = why_killed
        self._children = Children(self._on_child)
        self._losses = Losses()
        self._guests: dict[str, _Guest] = {}
        self._early: dict[str, str] = {}
        self._ended: OrderedDict[int, Change] = OrderedDict()

    def begin(self) -> DomainEvents:
        """Listen to the lab's init; the listener to libvirt, to be registered with a connection."""
        self._children.start()
        loop = asyncio.get_running_loop()
        return DomainEvents(loop, self._on_stopped, self._on_disk_error, self._on_paused, self._on_tuned)

    def end(self) -> None:
        """Stop watching all guests."""
        for name in list(self._guests):
            self.leave(name)
        self._children.stop()

    def pid_of(self, name: str, domain: Any) -> int:
        """The process of a domain that was started just now. Raises GuestLost where it has ended already."""
        try:
            return self._places.pid_of(domain.name())
        except OSError as error:
            words = self._places.last_words_of(domain.name())
            raise GuestLost(name, f"its QEMU died at its start: {words or 'it said nothing'}") from error

    def watch(self, name: str, domain: Any, pid: int) -> None:
        """Guest `name` runs as libvirt's `domain` in process `pid`; from now on its end is reported as a loss."""
        self.leave(name)
        uuid: str = domain.UUIDString()
        guest = self._guests[name] = _Guest(domain.name(), uuid, pid)
        if uuid in self._early:
            self._on_disk_error(uuid, self._early.pop(uuid))
        if not self._attend(name, guest):
            self._find_cause(name)

    def _attend(self, name: str, guest: _Guest) -> bool:
        """Hear of the end of the guest's process from now on; False where it has ended."""
        try:
            guest.pidfd = os.pidfd_open(guest.pid)
        except ProcessLookupError:
            return False
        asyncio.get_running_loop().add_reader(guest.pidfd, self._find_cause, name)
        return True

    def leave(self, name: str) -> None:
        """Stop watching guest `name`: the lab ends it, or it has ended."""
        self._losses.forget(name)
        guest = self._guests.pop(name, None)
        if guest is not None:
            self._close(guest)
            if guest.reporting is not None:
                guest.reporting.cancel()

    async def until_lost(self, names: Collection[str]) -> NoReturn:
        """See `protocols.Hypervisor.until_lost`."""
        await self._losses.until_lost(names)

    async def standstill(self, names: Collection[str]) -> dict[str, float]:
        """Seconds for which each guest's process was stopped since it is watched, a stop that still lasts included."""
        now, known = time.monotonic(), self._guests
        return {name: known[name].stopped_until(now) if name in known else 0.0 for name in names}

    def tuned(self, names: Collection[str]) -> dict[str, list[str]]:
        """See `protocols.GuestWatch.tuned`."""
        return {name: [*self._guests[name].tuned] for name in names if name in self._guests}

    def pids(self, names: Collection[str]) -> dict[str, int]:
        """The process of each of these guests that is watched."""
        return {name: self._guests[name].pid for name in names if name in self._guests}

    def pids_outside(self, names: Collection[str]) -> dict[str, int]:
        """None: see `host_pids`."""
        return {}

    def host_pids(self) -> list[int]:
        """None: all guests are processes of the lab's PID namespace."""
        return []

    def _on_child(self, change: Change) -> None:
        """The lab's init saw a change of one of its children."""
        if change.ended:
            self._ended[change.pid] = change
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        for guest in self._guests.values():
            if guest.pid == change.pid:
                guest.stand(change.mono, still=change.stopped)

    def _on_paused(self, uuid: str, how: str) -> None:
        """Somebody has paused a domain, or with an empty `how` let it go on."""
        for guest in self._guests.values():
            if guest.uuid == uuid:
                guest.stand(time.monotonic(), still=bool(how), by="a pause")

    def _on_tuned(self, uuid: str, what: str) -> None:
        """Somebody has changed what libvirt gives a domain."""
        for guest in self._guests.values():
            if guest.uuid == uuid and len(guest.tuned) < _MOST_TUNED:
                guest.tuned.append(what)

    def _on_stopped(self, uuid: str, reason: str) -> None:
        """libvirt reports that a domain has ended; `reason` may be empty."""
        for name, guest in list(self._guests.items()):
            if guest.uuid == uuid:
                guest.reason = guest.reason or reason
                self._find_cause(name)

    def _on_disk_error(self, uuid: str, reason: str) -> None:
        """QEMU has stopped a domain because of an error of its disk, maybe before `watch` was called for it."""
        name = next((name for name, guest in self._guests.items() if guest.uuid == uuid), None)
        if name is None:
            self._early[uuid] = reason
        else:
            self._losses.report(name, f"QEMU stopped it because its disk cannot be written: {reason}")

    async def kill_of(self, pid: int) -> str | None:
        """How a process that is not watched yet was killed from outside, for people; None where it ended by itself."""
        if pid not in self._ended:
            await asyncio.sleep(CAUSE_SECONDS)
        ending = self._ended.get(pid)
        return ending.ending() if ending is not None and ending.killed_by in _ORDERED else None

    def _find_cause(self, name: str) -> None:
        guest = self._guests[name]
        self._close(guest)
        if guest.reporting is None:
            guest.reporting = asyncio.get_running_loop().call_later(CAUSE_SECONDS, self._report_loss, name)

    def _report_loss(self, name: str) -> None:
        guest = self._guests[name]
        ending = self._ended.get(guest.pid)
        words = self._places.last_words_of(guest.domain)
        ended_here = self._is_of_libvirt(words)
        known = [
            "its QEMU died" if ending is None else f"its QEMU died: {ending.ending()}",
            guest.reason if ended_here else words or guest.reason,
        ]
        if ending is not None and ending.killed_by == signal.SIGKILL:
            known.append(self._why_killed())
        if ending is not None and ending.killed_by is None and (last := last_line(self._console_of(name))):
            # A guest that panics or restarts ends its QEMU in order; only its console has the reason.
            known.append(f"its console's last line: {visible_line(last)}")
        crashed = ending is not None and ending.killed_by is not None and ending.killed_by not in _ORDERED
        self._losses.report(name, ", ".join(part for part in known if part), crashed=crashed)

    def _is_of_libvirt(self, words: str) -> bool:
        """Whether QEMU's last words are that libvirt, in this process, ends it, as after the guest switched itself off.

        QEMU waits for that.
        """
        return f" from pid {os.getpid()} " in words

    def _close(self, guest: _Guest) -> None:
        if guest.pidfd is not None:
            asyncio.get_running_loop().remove_reader(guest.pidfd)
            os.close(guest.pidfd)
            guest.pidfd = None


class Losses:
    """A loss is reported to all who wait for it, now or later, until a guest of that name starts again.

    Belongs to one event loop; may be called only from its thread.
    """

    def __init__(self) -> None:
        self._lost: dict[str, tuple[str, bool]] = {}
        self._waiting: list[tuple[frozenset[str], asyncio.Future[NoReturn]]] = []

    def forget(self, name: str) -> None:
        """Guest `name` starts again, or was ended by the lab: forget an earlier report."""
        self._lost.pop(name, None)

    def report(self, name: str, cause: str, *, crashed: bool = False) -> None:
        """Guest `name` is lost, see `GuestLost`; of several causes the first one is kept."""
        if name in self._lost:
            return
        self._lost[name] = cause, crashed
        for names, waiting in self._waiting:
            if name in names and not waiting.done():
                waiting.set_exception(self._loss(name))

    def _loss(self, name: str) -> GuestLost:
        cause, crashed = self._lost[name]
        return GuestLost(name, cause, crashed=crashed)

    async def until_lost(self, names: Collection[str]) -> NoReturn:
        """Raise GuestLost for the first of `names` that is lost, or was lost before; wait for ever otherwise."""
        for name in names:
            if name in self._lost:
                raise self._loss(name)
        waiting: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        entry = (frozenset(names), waiting)
        self._waiting.append(entry)
        try:
            await waiting
        finally:
            self._waiting.remove(entry)
        raise AssertionError("a loss has no result")


_LOG = logging.getLogger(__name__)
_ENDED_BY = {
    libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN: "the guest shut down or restarted by itself",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED: "the guest crashed",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_DESTROYED: "libvirt was asked to end it",
}
_PUMP_AGAIN = 0.1
_DISK_FULL = "the host's disk is full"

Receiver = Callable[[str, str], None]
"""Takes a domain's UUID, because names are used again from cell to cell, and the reason."""


@functools.cache
def start_event_loop() -> threading.Thread:
    """Register libvirt's default loop and pump it in a daemon thread; later calls return the same thread."""
    libvirt.registerErrorHandler(_keep_off_stderr, None)
    libvirt.virEventRegisterDefaultImpl()
    pump = threading.Thread(target=_pump, name="libvirt-events", daemon=True)
    pump.start()
    return pump


def _pump() -> None:
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
        except libvirt.libvirtError:
            # Its handler has told of it. Without this loop nobody hears of the end of a guest.
            time.sleep(_PUMP_AGAIN)


def _keep_off_stderr(_context: Any, error: tuple[Any, ...]) -> None:
    """libvirt writes errors to stderr unless there is a handler; every one is raised as an exception too."""
    _LOG.debug("libvirt: %s", error[2])


@dataclass(eq=False)
class DomainEvents:
    """Passes on, in the loop's thread, that a domain has ended, had an error of its disk, was paused or changed."""

    _loop: asyncio.AbstractEventLoop
    _on_stopped: Receiver
    _on_disk_error: Receiver
    _on_paused: Receiver
    _on_tuned: Receiver

    def connect(self, uri: str) -> Any:
        """A connection to libvirt, whose domains are listened to until it is closed; blocks. Raises libvirtError."""
        start_event_loop()
        connection = libvirt.open(uri)
        kinds = (
            (libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._lifecycle),
            (libvirt.VIR_DOMAIN_EVENT_ID_IO_ERROR_REASON, self._disk_error),
            (libvirt.VIR_DOMAIN_EVENT_ID_TUNABLE, self._tuned),
            # QEMU tells this only when the guest gives memory away or takes some back, not when it boots.
            (libvirt.VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE, self._changed("{} KiB of memory")),
            (libvirt.VIR_DOMAIN_EVENT_ID_BLOCK_JOB_2, self._changed("a block job on {}")),
            (libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, self._changed("the device {} added")),
            (libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, self._changed("the device {} removed")),
        )
        for kind, called in kinds:
            connection.domainEventRegisterAny(None, kind, called, None)
        # Has libxml2 set up its types of values: if several starts use them first at the same time, some fail.
        with contextlib.suppress(libvirt.libvirtError):
            connection.createXML("<domain/>", libvirt.VIR_DOMAIN_START_VALIDATE)
        return connection

    def _lifecycle(self, _connection: Any, domain: Any, event: int, detail: int, _opaque: Any) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_STOPPED:
            self._pass_on(self._on_stopped, domain, _ENDED_BY.get(detail, ""))
        elif event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED and detail == libvirt.VIR_DOMAIN_EVENT_SUSPENDED_IOERROR:
            # The reason of the error is in the event below, which comes first.
            self._pass_on(self._on_disk_error, domain, "an I/O error")
        elif event in (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_RESUMED):
            self._pass_on(self._on_paused, domain, "paused" if event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED else "")

    def _tuned(self, _connection: Any, domain: Any, given: dict[str, Any], _opaque: Any) -> None:
        self._pass_on(self._on_tuned, domain, ", ".join(f"{name} {value}" for name, value in given.items()))

    def _changed(self, words: str) -> Callable[..., None]:
        def told(_connection: Any, domain: Any, what: object, *_more: Any) -> None:
            self._pass_on(self._on_tuned, domain, words.format(what))

        return told

    def _disk_error(
        self, _connection: Any, domain: Any, path: str, _device: str, action: int, reason: str, _opaque: Any
    ) -> None:
        if action == libvirt.VIR_DOMAIN_EVENT_IO_ERROR_PAUSE:
            why = _DISK_FULL if reason == "enospc" else reason or "an I/O error"
            self._pass_on(self._on_disk_error, domain, f"{why} ({path})")

    def _pass_on(self, receiver: Receiver, domain: Any, reason: str) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(receiver, domain.UUIDString(), reason)
