"""The emulated disk's own process: one file, served over FUSE, whose requests take as long as the model says.

Started by `disk_process`, never by hand, with the arguments ``MOUNTPOINT FD SIZE PROFILE SEED``. `FD` is the file that
keeps the bytes, opened with O_DIRECT. The words ``lift`` and ``set`` on standard input, a line each, lift and set the
limits, and are answered by the same word; it begins with lifted limits and the word ``ready``. It ends with standard
input.

The file is opened with direct_io, so that no page cache is between the disk and whoever reads it with O_DIRECT.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import mmap
import os
import selectors
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyfuse3
import pyfuse3.asyncio

from vmlab.hypervisor.emulated_disk.disk_model import DiskModel
from vmlab.hypervisor.emulated_disk.disk_process import LIFT, READY, SERVED, SET
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.model.scenarios.disk_profiles import DISK_PROFILES, DiskProfile
from vmlab.system import kernel
from vmlab.system.mounts import mounted
from vmlab.telemetry.recorder_clock import take_precedence

_FILE_INODE = pyfuse3.InodeT(pyfuse3.ROOT_INODE + 1)
_MOST_AT_ONCE = 256
"""Requests that the kernel may have under way here, more than any queue depth of a workload."""
_LARGEST = 2**20
"""Bytes of the largest request that FUSE sends."""
_CONNECTIONS = "/sys/fs/fuse/connections"


class LimitedDisk:
    """Holds requests back until the model says that they have ended; while the limits are lifted, not at all."""

    def __init__(self, profile: DiskProfile, size: int, seed: int) -> None:
        self._fresh: Callable[[], DiskModel] = lambda: DiskModel(profile, size, seed)
        self._model: DiskModel | None = None
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._newest = 0
        self._timer: asyncio.TimerHandle | None = None

    def lift(self) -> None:
        """From now on nothing waits; what waits goes on at once."""
        self._model = None
        self._stop_timer()
        for future in self._waiting.values():
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def set(self) -> None:
        """From now on the model decides. It begins with its head at the first byte, and its turns with the seed's."""
        if self._model is None:
            self._model = self._fresh()

    async def wait(self, offset: int, length: int, *, write: bool) -> None:
        """Return when the request, which arrives now, has ended."""
        if self._model is None:
            return
        loop = asyncio.get_running_loop()
        self._newest += 1
        ended = self._waiting[self._newest] = loop.create_future()
        self._model.submit(loop.time(), self._newest, offset, length, write=write)
        self._wake_when_due()
        await ended

    def _wake_when_due(self) -> None:
        self._stop_timer()
        if self._model is not None and (due := self._model.due()) is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._end_what_is_due)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_what_is_due(self) -> None:
        if self._model is not None:
            for tag in self._model.finished(asyncio.get_running_loop().time()):
                future = self._waiting.pop(tag)
                if not future.done():
                    future.set_result(None)
        self._wake_when_due()


class OneFile(pyfuse3.Operations):
    """A file system with a single file of `size` bytes, kept in the open file `kept`."""

    def __init__(self, kept: int, size: int, disk: LimitedDisk) -> None:
        super().__init__()
        self._kept = kept
        self._size = size
        self._disk = disk
        # O_DIRECT wants memory that begins with a page.
        self._buffer = memoryview(mmap.mmap(-1, _LARGEST))

    async def getattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        """The attributes of the folder or of the file in it."""
        found = pyfuse3.EntryAttributes()
        found.st_ino = inode
        found.entry_timeout = found.attr_timeout = 3600
        if inode == pyfuse3.ROOT_INODE:
            found.st_mode, found.st_nlink = pyfuse3.ModeT(stat.S_IFDIR | 0o700), 2
        elif inode == _FILE_INODE:
            found.st_mode, found.st_nlink, found.st_size = pyfuse3.ModeT(stat.S_IFREG | 0o600), 1, self._size
        else:
            raise pyfuse3.FUSEError(errno.ENOENT)
        return found

    async def lookup(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        """The file by its name."""
        if parent_inode != pyfuse3.ROOT_INODE or name != SERVED.encode():
            raise pyfuse3.FUSEError(errno.ENOENT)
        return await self.getattr(_FILE_INODE, ctx)

    async def open(self, inode: pyfuse3.InodeT, flags: pyfuse3.FlagT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileInfo:
        """Open the file, past the page cache."""
        return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(inode), direct_io=True)

    async def read(self, fh: pyfuse3.FileHandleT, off: int, size: int) -> bytes:
        """The bytes, when the disk has read them."""
        with _or_end():
            length = os.preadv(self._kept, [self._buffer[:size]], off)
        found = bytes(self._buffer[:length])
        await self._disk.wait(off, size, write=False)
        return found

    async def write(self, fh: pyfuse3.FileHandleT, off: int, buf: bytes) -> int:
        """Keep the bytes; returns when the disk has written them."""
        self._buffer[: len(buf)] = buf
        with _or_end():
            written = os.pwritev(self._kept, [self._buffer[: len(buf)]], off)
        await self._disk.wait(off, len(buf), write=True)
        return written

    async def fsync(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:
        """Nothing is left to do: a write has ended when it is on the platter."""

    async def flush(self, fh: pyfuse3.FileHandleT) -> None:
        """As `fsync`."""

    async def release(self, fh: pyfuse3.FileHandleT) -> None:
        """Nothing is kept for each opening."""


@contextlib.contextmanager
def _or_end() -> Iterator[None]:
    """End this process where the file below fails, as for lack of space: whoever waits is freed, and has the cause."""
    try:
        yield
    except OSError as error:
        os.write(2, f"its file cannot be read or written: {error.strerror}\n".encode())
        os._exit(1)


async def _heed(disk: LimitedDisk) -> None:
    """Obey the words on standard input until it ends."""
    heard = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(heard), sys.stdin)
    _say(READY)
    while line := await heard.readline():
        word = line.decode().strip()
        if word == LIFT:
            disk.lift()
        elif word == SET:
            disk.set()
        _say(word)


def _say(word: str) -> None:
    os.write(1, f"{word}\n".encode())


async def _serve(disk: LimitedDisk) -> None:
    work = [asyncio.ensure_future(pyfuse3.main()), asyncio.ensure_future(_heed(disk))]
    done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()


def _connection(mountpoint: str) -> int:
    """The number of the mount's connection; not by stat(2), which this process would have to answer itself."""
    for one in mounted(Path("/proc/self/mountinfo")):
        if str(one.point) == mountpoint:
            return int(one.device.partition(":")[2])
    raise OSError(errno.ENOENT, "the kernel lists no such mount", mountpoint)


def _widen(connection: int) -> None:
    """Let the kernel have more requests under way here than the 12 that FUSE allows."""
    kernel.mount("fusectl", _CONNECTIONS, "fusectl")
    for name in ("max_background", "congestion_threshold"):
        (Path(_CONNECTIONS) / str(connection) / name).write_text(str(_MOST_AT_ONCE))


def main() -> None:
    """Entry point of the process."""
    mountpoint, kept, size, profile, seed = sys.argv[1:]
    require_isolation()
    kernel.die_with_parent()
    take_precedence()
    disk = LimitedDisk(DISK_PROFILES[profile], int(size), int(seed))
    pyfuse3.asyncio.enable()
    pyfuse3.init(OneFile(int(kept), int(size), disk), mountpoint, {"fsname=vmlab", "default_permissions"})
    connection = _connection(mountpoint)
    # From here on this process has mounts of its own. With the file system on the disk among them, its end could wait
    # for that file system's last writes, which it would have to serve itself.
    kernel.unshare(kernel.CLONE_NEWNS)
    _widen(connection)
    # epoll waits in whole milliseconds, which are a tenth of a disk's access.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_serve(disk))
    # Not by Python's way out, which would wait for requests that are still held back.
    os._exit(0)


if __name__ == "__main__":
    main()
