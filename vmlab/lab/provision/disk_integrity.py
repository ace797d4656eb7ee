"""Checks that a cell's guests read what was saved and built: compares their disks with the digests.

RAM is compared while QEMU loads it. A guest reads its disk at any time, so the disk is compared after the workloads
have ended: nobody writes to these files, so the medium still holds the bytes that the guest has read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from vmlab.guests.image.added import AddedImage
from vmlab.guests.image.catalog import Image
from vmlab.guests.snapshots import Snapshot
from vmlab.hypervisor.libvirt.calls import call
from vmlab.integrity.digests import FileDigests
from vmlab.integrity.disk_reading import Findings, verify
from vmlab.integrity.long_work import until
from vmlab.model.errors import HypervisorError, VmlabError, in_one_line
from vmlab.model.event import Event, Notice
from vmlab.model.names import DISK, MACHINE, RAM

_DEADLINE = 60.0
_LEAST_BYTES_A_SECOND = 10e6
"""A slower disk counts as failed."""


class Integrity:
    """Compares the files below the guests of one run. What was found damaged is remembered."""

    def __init__(self, image: Image, emit: Callable[[Event], object], more: Iterable[Image | AddedImage] = ()) -> None:
        """With `more` images beside vmlab's own: layers on it, and those that users have added."""
        self._images: tuple[Image | AddedImage, ...] = (image, *more)
        self._emit = emit
        self._reported: set[Path] = set()
        self.damaged: dict[str, str] = {}
        """Damaged snapshots, which may not be used again: what is wrong with them, by id."""
        self.image_fault: str | None = None
        """What is wrong with an image, and the command that repairs it; then no further cell can pass."""

    async def faults_after(self, snapshots: Iterable[Snapshot]) -> list[str]:
        """Read the images and the disks of `snapshots`; a reason for each that differs, none if all are intact."""
        used = {one.id: one for one in snapshots}
        files = {image.folder / name: digests for image in self._images for name, digests in image.files.items()}
        files |= {one.folder / DISK: one.files[DISK] for one in used.values()}
        try:
            found = await self._verify(files)
        except VmlabError as error:
            return [f"the guests' disks could not be compared: {error}"]
        self._note_damage(found, used.values())
        reasons = [f"snapshot {id} is damaged: {self.damaged[id]}" for id in used if id in self.damaged]
        return [*([self.image_fault] if self.image_fault else []), *reasons]

    async def find_damaged(self, snapshots: Iterable[Snapshot], names: Iterable[str] = (RAM, DISK, MACHINE)) -> None:
        """Read the files `names` of `snapshots`, and remember which of them are damaged. Raises DeadlineExceeded."""
        used = list(snapshots)
        files = {one.folder / name: one.files[name] for name in names for one in used}
        self._note_damage(await self._verify(files), used)

    def _note_damage(self, found: Findings, snapshots: Iterable[Snapshot]) -> None:
        for path, fault in found.faults.items():
            for image in self._images:
                if path.parent == image.folder:
                    self.image_fault = self.image_fault or str(image.damaged(fault))
            self.damaged.update({one.id: fault for one in snapshots if one.folder == path.parent})

    async def _verify(self, files: Mapping[Path, FileDigests]) -> Findings:
        over = threading.Event()
        deadline = _DEADLINE + sum(one.size for one in files.values()) / _LEAST_BYTES_A_SECOND
        try:
            found = await call("reading the guests' disks", deadline, verify, files, until(over.is_set))
        except OSError as error:
            # It says nothing of the files, which stay as good as they were.
            raise HypervisorError(f"the files below the guests cannot be read: {in_one_line(error)}") from error
        finally:
            over.set()
        for folder in sorted({path.parent.parent for path in found.buffered} - self._reported):
            self._reported.add(folder)
            text = f"the file system of {folder} has no O_DIRECT: what is compared may be the page cache's copy of it"
            self._emit(Notice(level="warning", text=text))
        return found
