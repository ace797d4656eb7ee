"""The cache mode of running guests' disks switched between ``writeback`` and ``none``.

QEMU flushes a disk before it opens its files with other flags, and its guest stands still meanwhile: with 41 MB of
dirty pages on a disk of 150 requests a second that took 64 s. So the host writes the dirty pages first, while the guest
runs, until one more time takes next to none.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vmlab.hypervisor.libvirt.calls import call
from vmlab.model.errors import DeadlineExceeded, HypervisorError, VmlabError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import Drained
from vmlab.system.kernel import dirty_bytes

QUIET_SECONDS = 0.1
"""Dirty pages that are written in so little time are few enough."""
_SYNC = 60.0
_REOPEN = 60.0


class Nodes(Protocol):
    """The open disks of one guest; `block_nodes.BlockNodes` are real ones."""

    @property
    def files(self) -> Sequence[Path]: ...

    def reopen(self, *, direct: bool) -> float: ...


@dataclass(frozen=True, slots=True)
class GuestDisks:
    """The disks of the guest called `name`."""

    name: str
    nodes: Nodes


class DrainTooLong(DeadlineExceeded):
    """The dirty pages of the disks were not written in time; no disk was switched."""


class SwitchBrokenOff(HypervisorError):
    """A disk could not be switched, so that guests may have worked in another cache mode for a moment."""


@dataclass(frozen=True, slots=True)
class Written:
    """One time that the dirty pages of files were written: how long it took, and how many bytes there were before."""

    seconds: float
    dirty_bytes: int | None


def write_dirty(files: Iterable[Path]) -> Written:
    """Have the host write the dirty pages of `files`; blocks. Raises OSError."""
    dirty: list[int | None] = []
    began = time.monotonic()
    for file in files:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            dirty.append(dirty_bytes(descriptor))
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
    known = [one for one in dirty if one is not None]
    return Written(time.monotonic() - began, sum(known) if len(known) == len(dirty) else None)


Write = Callable[[Iterable[Path]], Written]


async def drain(files: Iterable[Path], deadline: float, write: Write = write_dirty) -> Drained:
    """Have the host write the dirty pages of `files` until few are left. A cancellation does no harm.

    Raises DrainTooLong when that takes longer than `deadline` seconds, OSError where a file cannot be written.
    """
    asked = sorted(set(files))
    began = time.monotonic()
    written: int | None = 0
    try:
        async with asyncio.timeout(deadline):
            while True:
                once = await call("writing the disks' dirty pages", deadline, write, asked)
                written = None if written is None or once.dirty_bytes is None else written + once.dirty_bytes
                if once.seconds <= QUIET_SECONDS:
                    return Drained(time.monotonic() - began, written)
    except (TimeoutError, DeadlineExceeded) as late:
        amount = "" if not written else f", after {format_bytes(written)}"
        raise DrainTooLong(f"the disks have still dirty pages after {deadline:g} s of writing{amount}") from late


async def switch(guests: Sequence[GuestDisks], *, direct: bool, write: Write = write_dirty) -> dict[str, float]:
    """Open all disks of `guests` with or without O_DIRECT, one guest after the other.

    Returns the seconds by name for which each may have stood still; few when `drain` was called before. Raises
    SwitchBrokenOff when a disk cannot be switched; the message says whether all disks are as they were. It must not be
    cancelled.
    """
    pauses: dict[str, float] = {}
    tried: list[GuestDisks] = []
    try:
        for guest in guests:
            # Since the last time, the guest has gone on writing.
            await call(f"{guest.name}: writing its dirty pages", _SYNC, write, guest.nodes.files)
            tried.append(guest)
            pauses[guest.name] = await _reopened(guest, direct)
    except (VmlabError, OSError) as error:
        left = await _put_back(tried, not direct)
        after = f"{', '.join(left)} could not be put back" if left else "all disks are as they were"
        raise SwitchBrokenOff(f"{error}; {after}") from error
    return pauses


async def _reopened(guest: GuestDisks, direct: bool) -> float:
    return await call(f"{guest.name}: switching its cache mode", _REOPEN, lambda: guest.nodes.reopen(direct=direct))


async def _put_back(guests: Iterable[GuestDisks], direct: bool) -> list[str]:
    """Open the disks of `guests` as they were; the names of those where that failed."""
    left = []
    for guest in guests:
        try:
            await _reopened(guest, direct)
        except (VmlabError, OSError):
            left.append(guest.name)
    return left
