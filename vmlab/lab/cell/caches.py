"""The caches that workloads find: emptied in guests and host before each cell, so that all cells start alike."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from vmlab.guests.guest_setup import LOOKS_BY
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.snapshot_provider import cache_command
from vmlab.model.errors import VmlabError, in_one_line
from vmlab.model.results import CacheProof
from vmlab.model.scenarios.repetition import Warm
from vmlab.plan.terms import GuestPlan, WorkloadPlan
from vmlab.system import kernel
from vmlab.system.descriptors import closed_after
from vmlab.workloads.shell import Shell

_PATIENCE = 300.0
"""Seconds for one place."""


class Caches:
    """Empties the caches of one cell, or leaves those as they are that `warm` keeps.

    The programs that workloads are about to run are loaded again, with their shared libraries: what a cell's figures
    count is what the workloads read, and fio alone would add 33 MiB. So is what looks at the guests after them: read
    from the disk beside the check of all disks, it took two seconds. A place is where one runs: a guest, or the host.

    `faults` has a reason for each that could not be emptied: the cell is measured all the same, and is invalid.
    """

    def __init__(self, guests: GuestSet, *, warm: Warm) -> None:
        self._guests = guests
        self._warm = warm
        self.faults: list[str] = []

    async def empty_guest(self, guest: GuestPlan, workloads: Iterable[WorkloadPlan]) -> None:
        """Empty the page cache of one guest, and its caches of names and inodes, and load what it is to run.

        That of Windows is left as it is: workloads read and write past it there.
        """
        if self._guests.has_windows(guest):
            return
        command = cache_command("load" if self._warm is True else "empty", workloads, guest.key, *LOOKS_BY)
        try:
            await self._guests.shells[guest.key].run(command, deadline=_PATIENCE)
        except VmlabError as error:
            self.faults.append(f"{guest.key}: its caches could not be emptied: {in_one_line(error)}")

    async def load(self, shell: Shell, workloads: Iterable[WorkloadPlan], place: str) -> None:
        """Load what is to run in a place whose caches are the host's own."""
        await shell.run(cache_command("load", workloads, place), deadline=_PATIENCE)

    async def empty_host(self, files: Iterable[Path]) -> None:
        """Empty the host's page cache of the lab's own files. Other pages of the host are left alone."""
        if not self._warm:
            self.faults += await emptied(files)

    async def disown(self, files: Iterable[Path]) -> None:
        """Empty the host's page cache of files that guests are about to open: pages that were read before would count
        as nobody's memory in a limited host. Also where the cell starts warm.
        """
        self.faults += await emptied(files)


def host_files(proofs: Iterable[CacheProof]) -> Iterator[Path]:
    """The files of the host that the proofs are of: what lies in a pool of Ceph, the host has no pages of."""
    return (proof.host_file for proof in proofs if proof.host_file is not None)


async def emptied(files: Iterable[Path]) -> list[str]:
    """Empty the host's page cache of these files; a reason for each where that failed."""
    return await asyncio.to_thread(_emptied, sorted(set(files)))


def _emptied(files: list[Path]) -> list[str]:
    faults = []
    for file in files:
        try:
            _empty(file)
        except OSError as error:
            faults.append(f"the host's cache of {file} could not be emptied: {in_one_line(error)}")
    return faults


def _empty(file: Path) -> None:
    with closed_after(os.open(file, os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
        # Even without anything to write each call would have the disk flush its own cache.
        if kernel.dirty_bytes(descriptor) != 0:
            os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
