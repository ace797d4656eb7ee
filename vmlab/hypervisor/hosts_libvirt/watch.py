"""Watches QEMUs outside of the lab's PID namespace: by libvirt's events, and by looks at the host's /proc.

No descriptor stands for such a process here, and the lab's init does not reap it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection

from vmlab.hypervisor.isolation.children import Change
from vmlab.hypervisor.libvirt.domain_watch import DomainWatch, _Guest
from vmlab.hypervisor.libvirt.events import DomainEvents

EVERY = 0.5
"""Seconds between two looks, and so how far off the length of a stop may be."""
_STOPPED = ("T", "t")


class HostsWatch(DomainWatch):
    """As `DomainWatch`, for guests of the host's own libvirt."""

    _looking: asyncio.Task[None] | None = None

    def begin(self) -> DomainEvents:
        """Begin to look; the listener to libvirt, to be registered with a connection."""
        self._looking = asyncio.ensure_future(self._look_on())
        return super().begin()

    def end(self) -> None:
        """Stop watching all guests."""
        if self._looking is not None:
            self._looking.cancel()
        super().end()

    def lose_all(self, cause: str) -> None:
        """Every guest is lost, as nothing more is heard of any."""
        for name in self._guests:
            self._losses.report(name, cause)

    def pids(self, names: Collection[str]) -> dict[str, int]:
        """None: the numbers of the host's processes mean others in the lab's PID namespace."""
        return {}

    def host_pids(self) -> list[int]:
        """The processes of all guests that are watched, as the host numbers them; for any thread."""
        return [guest.pid for guest in tuple(self._guests.values())]

    async def _look_on(self) -> None:
        while True:
            for name, guest in list(self._guests.items()):
                self._look(name, guest)
            await asyncio.sleep(EVERY)

    def _look(self, name: str, guest: _Guest) -> None:
        now = time.monotonic()
        state = self._state(guest.pid)
        if state is None:
            self._find_cause(name)
        elif state in _STOPPED:
            guest.since = now if guest.since is None else guest.since
        elif guest.since is not None:
            guest.stopped += now - guest.since
            guest.since = None

    def _state(self, pid: int) -> str | None:
        """As proc(5) has it; None for a process that has ended."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            state = (self._places.proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            return None if state == "Z" else state
        return None

    def _attend(self, name: str, guest: _Guest) -> bool:
        return self._state(guest.pid) is not None

    def _on_child(self, change: Change) -> None:
        """A child of the lab's init is no guest here."""

    def _is_of_libvirt(self, words: str) -> bool:
        return any(f"{daemon})" in words for daemon in ("libvirtd", "virtqemud"))
