"""An emulated disk below the guests' files: its process, a loop device on its file, a file system on that.

::

    RUN/disks, and the files that are covered     bind mounts, in the lab's own mount namespace
      ext4
        /dev/loopN        direct I/O, true figures in /proc/diskstats
          FUSE, one file  `disk_server`, in the lab's PID namespace
            RUN/disks/emulated.raw                thin, on the host's own disk, past its page cache

Paths stay what they are: whoever opens a guest's disk by its usual name is on the emulated disk. The mounts and the
process go with the lab's namespaces, whichever process is killed; the file and the loop device stand in the journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import NoReturn

from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.disks.overlays import demand_direct
from vmlab.hypervisor.emulated_disk.disk_model import ProofFigure, prove
from vmlab.hypervisor.emulated_disk.disk_process import LIFT, PATIENCE, SERVED, SET, DiskProcess, StallWatch
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.protocols import GuestDisk
from vmlab.model.errors import HypervisorError, RefusedError, VmlabError, in_one_line
from vmlab.model.scenarios.disk_profiles import DiskProfile
from vmlab.system import kernel
from vmlab.system.descriptors import closed_after
from vmlab.system.removal import remove_empty_folder, remove_file
from vmlab.telemetry.setting_files import why_no_emulated_disk

_KEPT = "emulated.raw"
_MKFS = ("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", "65536", "-J", "size=64")
_MKFS_AT_ONCE = ("-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard")
"""All of it is written now, while the limits are lifted, and nothing later by the kernel beside the workloads."""
_START = 30.0
_PROVE = 120.0
_PAUSES = (0.0, 2.0, 5.0, 10.0, 15.0)
"""Seconds before each attempt at the proof: other work often ends within half a minute."""
_COPY = 1800.0
_UNMOUNT = 120.0
_PROCESSES_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


Proof = Callable[[Path, DiskProfile, int, int], list[ProofFigure]]
"""Measures a device, see `disk_proof.prove`."""


@dataclass(eq=False)
class EmulatedDisk(GuestDisk):
    """One disk for all guests of a lab, from `open` to `close`; its limits are lifted until `set_limits`.

    `disks` is the run's folder of guests' disks, which lies on the emulated disk while that is open. `runtime` is the
    run's runtime folder, for the mounts. `size` is in bytes. `seed` gives the random parts of its times. Where requests
    wait and none is completed for `patience` seconds its process is killed, so that nobody waits for ever.
    """

    profile: DiskProfile
    _size: int
    _seed: int
    _disks: Path
    runtime: InitVar[Path]
    lab: InitVar[str]
    _journal: Journal
    proof: Proof = prove
    _patience: float = PATIENCE
    pauses: Sequence[float] = _PAUSES
    _process: DiskProcess | None = field(default=None, init=False)
    _stalls: StallWatch | None = field(default=None, init=False)
    _device: int = field(default=-1, init=False)
    _mounted: list[Path] = field(default_factory=list, init=False)
    _copies: dict[tuple[str, int, int], Path] = field(default_factory=dict, init=False)

    def __post_init__(self, runtime: Path, lab: str) -> None:
        self._place, self._mark = runtime / "disk", loop_devices.mark_of(lab)

    @property
    def pid(self) -> int | None:
        """Its process, in this PID namespace; None while it is not open."""
        return None if self._process is None else self._process.pid

    @property
    def dead(self) -> bool:
        """Whether its process has ended although it is open."""
        return self._process is not None and self._process.dead

    async def open(self) -> list[str]:
        """Start it, prove that it is as slow as its profile, lift its limits, and put the run's `disks` on it.

        Gives a line for each figure of the proof. Raises RefusedError where this host cannot have one, or it is not as
        its profile says, HypervisorError and DeadlineExceeded. `close` is to be called in any case.
        """
        require_isolation()
        if why := why_no_emulated_disk():
            raise RefusedError(f"no emulated disk: {why}", remedy="vmlab doctor")
        try:
            await self._start()
            node = await call("attaching the emulated disk", _START, self._attach)
            await self.set_limits()
            found = await self._proved(node)
            await self.lift_limits()
            if wrong := [str(one) for one in found if not one.holds]:
                raise RefusedError(
                    f"the emulated disk {self.profile.name} is not as its profile says: {'; '.join(wrong)}",
                    remedy="a host that is less busy, or another profile",
                )
            await call("making a file system on the emulated disk", _START, self._make_file_system, node)
        except OSError as error:
            raise HypervisorError(f"the emulated disk cannot be made: {in_one_line(error)}") from error
        return [str(one) for one in found]

    async def _proved(self, node: Path) -> list[ProofFigure]:
        """The figures of the first proof that holds, or of the last one: other work may have disturbed the others."""
        found: list[ProofFigure] = []
        for pause in self.pauses:
            await asyncio.sleep(pause)
            found = await call(
                "proving the emulated disk", _PROVE, self.proof, node, self.profile, self._size, self._seed
            )
            if all(one.holds for one in found):
                break
        return found

    async def _start(self) -> None:
        demand_direct(self._disks, "an emulated disk")
        mountpoint = self._place / "fuse"
        mountpoint.mkdir(parents=True)
        self._journal.add(JournalEntry("file", str(self._kept)))
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC
        with closed_after(os.open(self._kept, flags, 0o600)) as kept:
            os.ftruncate(kept, self._size)
            numbers = (str(kept), str(self._size), self.profile.name, str(self._seed))
            self._process = await DiskProcess.start((str(mountpoint), *numbers), kept)
        self._mounted.append(mountpoint)

    @property
    def _kept(self) -> Path:
        return self._disks / _KEPT

    def _attach(self) -> Path:
        self._journal.add(JournalEntry("loop", self._mark))
        # What the emulated disk keeps is written with O_DIRECT, so no request may be smaller than that allows.
        file = self._place / "fuse" / SERVED
        self._device = loop_devices.attach(file, self._mark, writable=True, direct=True, sectors=[4096])
        number = os.fstat(self._device).st_rdev
        folder = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        self._stalls = StallWatch(self._running(), folder, self._patience)
        return Path(f"/proc/self/fd/{self._device}").readlink()

    def _make_file_system(self, node: Path) -> None:
        require_isolation()
        argv = [*_MKFS, *_MKFS_AT_ONCE, str(node)]
        made = subprocess.run(
            argv, env={**os.environ, "PATH": _PROCESSES_PATH}, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise HypervisorError(f"mkfs.ext4 failed on the emulated disk: {made.stderr.strip()}")
        files = self._place / "files"
        files.mkdir()
        self._mount(str(node), files, "ext4")
        (files / "disks").mkdir()
        (files / "copies").mkdir()
        self._mount(str(files / "disks"), self._disks)

    def _mount(self, source: str, target: Path, kind: str | None = None) -> None:
        require_isolation()
        flags = kernel.MS_NOSUID | kernel.MS_NODEV if kind else kernel.MS_BIND
        kernel.mount(source, str(target), kind, flags)
        self._mounted.append(target)

    async def set_limits(self) -> None:
        """From now on it is as slow as its profile. Raises HypervisorError where it has died, DeadlineExceeded."""
        await self._running().ask(SET)

    async def lift_limits(self) -> None:
        """From now on it is as fast as the host's own disk lets it be. Raises as `set_limits` does."""
        await self._running().ask(LIFT)

    async def until_dead(self) -> NoReturn:
        """Raise HypervisorError, with the cause, when its process ends; waits until then."""
        await self._running().until_dead()

    def _running(self) -> DiskProcess:
        if self._process is None:
            raise HypervisorError("the emulated disk is not open")
        return self._process

    async def cover(self, file: Path) -> None:
        """Copy `file` to the disk, once, and show the copy under its name until `uncover`. Lift the limits before.

        Raises HypervisorError where it cannot be copied, DeadlineExceeded.
        """
        await call(f"copying {file.name} to the emulated disk", _COPY, self._cover, file)

    def _cover(self, file: Path) -> None:
        require_isolation()
        found = file.stat()
        known = (str(file), found.st_ino, found.st_mtime_ns)
        copy = self._copies.get(known)
        if copy is None:
            copy = self._place / "files" / "copies" / f"{len(self._copies)}{file.suffix}"
            argv = ["cp", "--sparse=auto", "--preserve=mode,timestamps", str(file), str(copy)]
            copied = subprocess.run(argv, capture_output=True, text=True, check=False)
            if copied.returncode != 0:
                raise HypervisorError(f"cannot copy {file} to the emulated disk: {copied.stderr.strip()}")
            self._copies[known] = copy
        self._mount(str(copy), file)

    def uncover(self, files: Iterable[Path]) -> None:
        """Show the files themselves again; who has a copy open keeps it. Raises OSError."""
        require_isolation()
        for file in files:
            if file in self._mounted:
                kernel.unmount(str(file))
                self._mounted.remove(file)

    @contextlib.asynccontextmanager
    async def covering(self, files: Iterable[Path]) -> AsyncIterator[None]:
        """The files are on the disk while the block runs. Raises as `cover` and `uncover` do.

        Those that are on it already stay as long as whoever put them there wants.
        """
        wanted = sorted({*files}.difference(self._mounted))
        try:
            for file in wanted:
                await self.cover(file)
            yield
        finally:
            self.uncover(wanted)

    async def close(self) -> None:
        """Take everything away; what a guest still has open fails from now on. Raises HypervisorError and OSError."""
        if self._process is not None:
            # What is not written yet must not take as long as on a real disk. One that died is closed all the same.
            with contextlib.suppress(VmlabError):
                await self.lift_limits()
        try:
            await call("unmounting the emulated disk", _UNMOUNT, self._unmount_all)
        finally:
            if self._stalls is not None:
                await asyncio.to_thread(self._stalls.end)
            if self._process is not None:
                process, self._process = self._process, None
                await process.end()
        await call("removing the emulated disk", _UNMOUNT, self._remove)

    def _unmount_all(self) -> None:
        require_isolation()
        while self._mounted:
            kernel.unmount(str(self._mounted.pop()))
        if self._device >= 0:
            device, self._device = self._device, -1
            loop_devices.detach(device)
            self._journal.strike(JournalEntry("loop", self._mark))

    def _remove(self) -> None:
        entry = JournalEntry("file", str(self._kept))
        if entry in self._journal.open_entries():
            remove_file(self._kept)
            self._journal.strike(entry)
        for name in ("fuse", "files", ""):
            remove_empty_folder(self._place / name)
