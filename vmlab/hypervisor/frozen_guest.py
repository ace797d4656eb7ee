"""Saves a guest's RAM and devices to a file and loads them: QEMU's migration, with a file in place of the other QEMU.

QEMU gets the open file, so that no byte goes through this process. Its sandbox allows that; it would kill QEMU for
starting a program as a pipe. Pages of zeros take nine bytes in the file.

What is loaded is kept in memory, so that the bytes that are compared with its digests are those that QEMU reads: both
read the same pages of the page cache, which cannot be dropped and read anew in between. QEMU starts to load before all
is compared, but the guest does not run before that.

A host that is a virtual machine itself gives memory that is free for half a second back to the hypervisor below it
(free page reporting). Getting it again costs some 10 µs of CPU time for each 4 KiB, twenty times what clearing the page
costs: half a second for a restored guest of 150 MiB. So the memory is taken as soon as guests have ended, and freed
piece by piece when QEMU is about to load a state into memory of its own. The kernel clears it in between, as always.

The files of a frozen guest fit the machine that is described beside them, and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.libvirt.calls import call, qmp
from vmlab.hypervisor.libvirt.domain_xml import CHANNELS, possible_vcpus
from vmlab.integrity.digests import FileDigests
from vmlab.integrity.long_work import copied
from vmlab.model.concurrency import within
from vmlab.model.errors import OF_THIS_PROCESS, HypervisorError, RefusedError, SnapshotError
from vmlab.model.names import DISK, FROZEN_FILES, MACHINE
from vmlab.system.descriptors import closed_after
from vmlab.system.host_size import host_memory
from vmlab.system.kernel import OwnMemory, held_in_memory
from vmlab.system.kvm_device import CPUINFO, in_virtual_machine, processor_fields
from vmlab.system.removal import remove_file

_PIECE = 32 * 2**20
_SLOW = 0.04
"""Seconds of CPU time for a piece: 0.006 where the memory was freed just now, 0.1 where it had been given back."""
_SHARE = 2
"""At most one part in so many of the memory that is available is kept."""


class MemoryReserve:
    """Some memory of this process. All methods block for fractions of a second, and may run in any thread.

    It never grows where the host is no virtual machine, or has no memory to spare.
    """

    def __init__(self, *, useful: bool | None = None, slow: float = _SLOW) -> None:
        self._useful = in_virtual_machine() if useful is None else useful
        self._slow = slow
        self._pieces: list[OwnMemory] = []
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return len(self._pieces) * _PIECE

    def take(self, size: int) -> None:
        """Keep up to `size` bytes more, to be called right after as much was freed.

        Ends early where the memory turns out to have been given back already: it would save nothing to get it now.
        """
        with self._lock, contextlib.suppress(OSError):
            wanted = min(size, host_memory().available // _SHARE) if self._useful else 0
            for _ in range(wanted // _PIECE):
                began = time.thread_time()
                self._pieces.append(OwnMemory(_PIECE))
                if time.thread_time() - began > self._slow:
                    break

    def free(self, size: int | None = None) -> None:
        """Free at least `size` bytes as far as they are kept, or all."""
        with self._lock:
            left = 0 if size is None else max(0, (self.size - size) // _PIECE)
            while len(self._pieces) > left:
                self._pieces.pop().free()


class HeldState:
    """A `file` of RAM state, open and all of it in memory from `hold` to `release`. QEMU is to read from `descriptor`.

    All methods block. After `hold`, `release` must be called, also on an error.
    """

    def __init__(self, file: Path, expected: FileDigests) -> None:
        self._file = file
        self._expected = expected
        self._held = ExitStack()
        self.descriptor = -1

    def hold(self) -> None:
        """Open it and read it in.

        Raises SnapshotError where it cannot be read or is of another length, RefusedError without the memory for it.
        """
        try:
            self.descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
            self._held.callback(os.close, self.descriptor)
            size = os.fstat(self.descriptor).st_size
        except OSError as error:
            raise self._unreadable(error) from error
        if size != self._expected.size:
            raise self._damaged(f"{self._file.name} is {size} bytes long and not {self._expected.size}")
        self._hold(size)

    def _hold(self, size: int) -> None:
        try:
            self._held.enter_context(held_in_memory(self.descriptor, size))
        except OSError as error:
            # A medium that cannot be read causes the same error.
            self.compare()
            raise RefusedError(
                f"{self._file} cannot be held in memory while it loads: {error.strerror}",
                remedy="free some memory, or raise the limit of locked memory",
            ) from error

    def compare(self) -> None:
        """Read all of it once. Raises SnapshotError at the first chunk that is not what was saved."""
        buffer = memoryview(bytearray(self._expected.chunk_bytes))
        for index in range(len(self._expected.chunks)):
            try:
                chunk = buffer[: self._read(buffer, index * self._expected.chunk_bytes)]
            except OSError as error:
                raise self._unreadable(error) from error
            if not self._expected.holds(index, chunk):
                raise self._damaged(self._expected.fault(self._file.name, index))

    def _read(self, buffer: memoryview, offset: int) -> int:
        got = 0
        while got < len(buffer) and (count := os.preadv(self.descriptor, [buffer[got:]], offset + got)):
            got += count
        return got

    def release(self) -> None:
        """Release the pages, and close the file."""
        self._held.close()

    def _unreadable(self, error: OSError) -> HypervisorError:
        if error.errno in OF_THIS_PROCESS:
            return HypervisorError(f"{self._file} cannot be read: {error.strerror}")
        return self._damaged(f"{self._file.name} cannot be read: {error.strerror or error}")

    def _damaged(self, fault: str) -> SnapshotError:
        folder = self._file.parent.name
        return SnapshotError(f"snapshot {folder} is damaged: {fault}", snapshot=folder)


_ASK = 20.0
_FIRST_POLL = 0.01
_POLL = 0.03
_FILE = "vmlab-state"
_NO_LIMIT = 0


async def write_state(domain: Any, name: str, file: Path, deadline: float) -> None:
    """Write the state of a guest whose vCPUs are stopped to a new `file`, within `deadline` seconds.

    Raises HypervisorError or DeadlineExceeded. The guest cannot continue afterwards: QEMU has released its disk.
    """
    await call(f"{name}: saving", _ASK, _begin_writing, domain, file)
    await _finished(domain, name, "saving", deadline)


def _begin_writing(domain: Any, file: Path) -> None:
    qmp(domain, "migrate-set-parameters", {"max-bandwidth": _NO_LIMIT})
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    _hand_over(domain, descriptor, "migrate")


class SharedState:
    """A saved state in `file`, for all QEMUs that load it at the same time: read in once, and compared once.

    It is held in memory from the first `hold` to `release`, which must be called in the end.
    """

    def __init__(self, file: Path, expected: FileDigests, deadline: float) -> None:
        self.size = expected.size
        self._name = f"{file.parent.name}/{file.name}"
        self._held = HeldState(file, expected)
        self._deadline = deadline
        self._steps: dict[str, asyncio.Task[None]] = {}

    async def hold(self) -> None:
        """Have it in memory. Raises what `HeldState.hold` raises, and DeadlineExceeded."""
        await self._once("reading", self._held.hold)

    async def compare(self) -> None:
        """Have all of it compared. Raises SnapshotError, and DeadlineExceeded."""
        await self._once("comparing", self._held.compare)

    async def _once(self, what: str, step: Callable[[], None]) -> None:
        task = self._steps.get(what)
        if task is None:
            task = self._steps[what] = asyncio.ensure_future(call(f"{what} {self._name}", self._deadline, step))
        # A guest that is given up must not end what others wait for.
        await asyncio.shield(task)

    def opened(self) -> int:
        """A new descriptor of the very file that is held, with a position of its own."""
        return os.open(f"/proc/self/fd/{self._held.descriptor}", os.O_RDONLY | os.O_CLOEXEC)

    async def release(self) -> None:
        """Release the memory when nothing is under way any more. Not to be cancelled: memory would stay locked."""
        await asyncio.gather(*self._steps.values(), return_exceptions=True)
        await call(f"releasing {self._name}", _ASK, self._held.release)


async def released(states: Iterable[SharedState]) -> None:
    """Release all of them, also where one of them cannot be."""
    results = await asyncio.gather(*(state.release() for state in states), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def read_state(
    domain: Any, name: str, state: SharedState, deadline: float, make_room: Callable[[int], None] = lambda _size: None
) -> None:
    """Load `state` into a QEMU that was started with ``-incoming defer``; it stays paused.

    `make_room` is called with the state's size right before QEMU begins.

    Raises SnapshotError when the file is not what was saved, even if QEMU loads it, RefusedError without the memory to
    hold it, HypervisorError when QEMU refuses it, which ends QEMU, and DeadlineExceeded.
    """
    await state.hold()
    comparing = asyncio.ensure_future(state.compare())
    try:
        make_room(state.size)
        await call(f"{name}: loading", _ASK, _hand_over, domain, state.opened(), "migrate-incoming")
        await _finished(domain, name, "loading", deadline)
    finally:
        await comparing


def _hand_over(domain: Any, descriptor: int, command: str) -> None:
    """Give QEMU an open file to stream to or from; this process keeps it open no longer."""
    with closed_after(descriptor):
        qmp(domain, "getfd", {"fdname": _FILE}, file=descriptor)
    qmp(domain, command, {"uri": f"fd:{_FILE}"})


async def _finished(domain: Any, name: str, what: str, deadline: float) -> None:
    wait = _FIRST_POLL
    async with within(deadline, f"{name}: {what} took longer than {deadline:g} s"):
        while True:
            found = await call(f"{name}: {what}", _ASK, qmp, domain, "query-migrate")
            if found.get("status") == "completed":
                return
            if found.get("status") in ("failed", "cancelled"):
                raise HypervisorError(f"{name}: {what}: {found.get('error-desc', found['status'])}")
            await asyncio.sleep(wait)
            wait = _POLL


_COMPARED_FACTS = ("qemu", "libvirt", "accelerator", "machine_type", "cpu_model", "host_cpu_flags")


def layout(spec: DomainSpec, image: BootImage, facts: Mapping[str, Any]) -> dict[str, Any]:
    """All that must be equal for a saved state to load, as JSON values. `facts` are the hypervisor's own."""
    image, accelerator = spec.image or image, facts["accelerator"]
    return {
        **{name: facts[name] for name in _COMPARED_FACTS},
        **spec.resources.seen(),
        **({} if accelerator == "kvm" else {"possible_vcpus": possible_vcpus(spec.resources.vcpus, accelerator)}),
        "base": str(image.disk.resolve()),
        "kernel": _digest(image.kernel),
        "initrd": _digest(image.initrd),
        "command_line": image.command_line,
        "channels": list(CHANNELS),
    }


def host_cpu_flags() -> str:
    """Names the host's processor: twelve digits of the SHA-256 of its model and flags, which KVM hands to guests."""
    fields = processor_fields(CPUINFO.read_text())
    known = "\n".join(fields.get(name, "") for name in ("vendor_id", "cpu family", "model", "stepping", "flags"))
    return hashlib.sha256(known.encode()).hexdigest()[:12]


def write_machine(folder: Path, described: Mapping[str, Any], libvirt: str, xml: str) -> None:
    """Keep the description: the layout, and for people libvirt's version and the whole domain XML."""
    text = json.dumps({"schema": "vmlab.machine/1", "layout": described, "libvirt": libvirt, "domain": xml}, indent=1)
    (folder / MACHINE).write_text(text + "\n", encoding="utf-8")


def require_fitting(folder: Path, expected: Mapping[str, Any]) -> None:
    """Raise SnapshotError unless the state in `folder` is complete and was saved from a machine like `expected`."""
    missing = [name for name in FROZEN_FILES if not (folder / name).is_file()]
    if missing:
        raise _useless(folder, f"is damaged: {' and '.join(missing)} missing")
    try:
        found = json.loads((folder / MACHINE).read_text(encoding="utf-8"))["layout"]
        differing = sorted(name for name in {*expected, *found} if found.get(name) != expected.get(name))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _useless(folder, f"is damaged: {MACHINE} is not one") from error
    if differing:
        raise _useless(folder, f"was saved from another machine: {', '.join(differing)} differ")


_OF_DATA = (
    "load of migration failed",
    "error while loading state",
    "Not a migration stream",
    "Unsupported migration stream",
    "Unknown savevm section",
    "Unknown ramblock",
    "Missing section footer",
    "Length mismatch",
    "not in qcow2 format",
    "Image is corrupt",
    "Could not open backing",
)
"""Words of QEMU and qemu-img about what was saved."""
_OF_SURROUNDINGS = tuple(os.strerror(number) for number in (*OF_THIS_PROCESS, errno.ENOSPC, errno.EDQUOT))


def blames_data(words: str) -> bool:
    """Whether QEMU's or qemu-img's error says that what was saved cannot be used, and not that it could not start."""
    return any(part in words for part in _OF_DATA) and not any(part in words for part in _OF_SURROUNDINGS)


def _useless(folder: Path, why: str) -> SnapshotError:
    return SnapshotError(f"snapshot {folder.name} {why}", snapshot=folder.name)


def keep_disk(overlay: Path, folder: Path) -> None:
    """Move a stopped guest's overlay to its place in `folder`, also across file systems. Raises OSError."""
    try:
        overlay.rename(folder / DISK)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with overlay.open("rb") as file:
            copied(file, folder / DISK)
        remove_file(overlay)


def _digest(file: Path | None) -> str | None:
    if file is None:
        return None
    found = file.stat()
    return _digest_of(file, found.st_size, found.st_mtime_ns)


@functools.cache
def _digest_of(file: Path, _size: int, _changed: int) -> str:
    """Cached: all guests boot from one kernel, which is read once."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
