"""The few system calls that Python 3.11 does not offer, through libc."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from vmlab.system.descriptors import closed_after

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_REMOUNT = 0x20
MNT_DETACH = 0x2
_PR_SET_PDEATHSIG = 1
_OPENAT2 = 437
_CACHESTAT = 451
_IO_URING_SETUP = 425
_MADV_POPULATE_WRITE = 23
"""Of Linux 5.14."""
_NO_CROSSING = 0x01 | 0x02 | 0x04 | 0x08
"""RESOLVE_NO_XDEV (bind mounts of one file system included), _NO_MAGICLINKS, _NO_SYMLINKS and _BENEATH."""

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    """Leave the namespaces in `flags` (``CLONE_NEW…``) for fresh ones; raises OSError."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def enter(namespace: int, kind: int) -> None:
    """Move this thread into an open namespace of a kind (``CLONE_NEW…``); raises OSError."""
    _checked(_libc.setns(ctypes.c_int(namespace), ctypes.c_int(kind)), "setns")


def keep_children_here() -> None:
    """Take back `unshare(CLONE_NEWPID)`, so that children and threads are in this process's own PID namespace again.

    Raises OSError.
    """
    with closed_after(os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)) as own:
        enter(own, CLONE_NEWPID)


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    """mount(2); `options` is the file system's own text, such as ``noload``. Raises OSError."""
    kind_bytes, option_bytes = (None if text is None else text.encode() for text in (kind, options))
    mounted = _libc.mount(source.encode(), target.encode(), kind_bytes, ctypes.c_ulong(flags), option_bytes)
    _checked(mounted, target)


def unmount(target: str) -> None:
    """Detach a mount at once, even when it is busy; raises OSError."""
    _checked(_libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH)), target)


def sync_file_system(descriptor: int) -> None:
    """Have the file system of an open file write all that it has in memory; raises OSError."""
    _checked(_libc.syncfs(ctypes.c_int(descriptor)), "syncfs")


def die_with_parent() -> None:
    """Have the kernel send SIGKILL to this process when the thread that forked it ends."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0), "prctl")


_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mlock.argtypes = _libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_MAP_FAILED = ctypes.c_void_p(-1).value


@contextmanager
def held_in_memory(descriptor: int, size: int) -> Iterator[None]:
    """Keep the first `size` bytes of an open file in the page cache while the context lasts.

    All of them are read first. Every reader of the file in the meantime, by any descriptor, reads these pages. Raises
    OSError where the file cannot be read, or memory is short.
    """
    if size == 0:
        yield
        return
    place = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    _checked(int(place == _MAP_FAILED), "mmap")
    try:
        _checked(_libc.mlock(place, size), "mlock")
        yield
    finally:
        _checked(_libc.munmap(place, size), "munmap")


class OwnMemory:
    """Memory of this process, in huge pages where the kernel has them. Raises OSError without that much."""

    def __init__(self, size: int) -> None:
        self._size = size
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._place = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        _checked(int(self._place == _MAP_FAILED), "mmap")
        try:
            _libc.madvise(self._place, size, mmap.MADV_HUGEPAGE)
            _checked(_libc.madvise(self._place, size, _MADV_POPULATE_WRITE), "madvise")
        except OSError:
            self.free()
            raise

    def free(self) -> None:
        """Give it back to the kernel; to be called once."""
        _checked(_libc.munmap(self._place, self._size), "munmap")


class _OpenHow(ctypes.Structure):
    """``struct open_how`` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_folder_beneath(folder: int, name: str) -> int:
    """A descriptor of the folder `name`, a relative path, found from the open `folder` without leaving it.

    No mount is crossed on the way and no link is followed, the last part of the path included. Raises OSError: EXDEV
    at a mount or a way out, ELOOP at a link.
    """
    how = _OpenHow(os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_CROSSING)
    descriptor = _libc.syscall(
        ctypes.c_long(_OPENAT2),
        ctypes.c_int(folder),
        os.fsencode(name),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    _checked(int(descriptor < 0), name)
    return int(descriptor)


class _CachedPages(ctypes.Structure):
    """``struct cachestat`` of cachestat(2), in pages."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


def dirty_bytes(descriptor: int) -> int | None:
    """The bytes of an open file or block device that its disk has not got yet: dirty pages, and those being written.

    None on a kernel before 6.5, which does not tell it for one file.
    """
    whole, pages = (ctypes.c_uint64 * 2)(0, 0), _CachedPages()
    result = _libc.syscall(
        ctypes.c_long(_CACHESTAT), ctypes.c_uint(descriptor), ctypes.byref(whole), ctypes.byref(pages), ctypes.c_uint(0)
    )
    return None if result != 0 else int(pages.dirty + pages.writeback) * mmap.PAGESIZE


def io_uring_fault() -> str | None:
    """Why this kernel gives this process no io_uring, in its words; None where it does.

    A kernel that has it finds no parameters at the address 0 and says so (io_uring_setup(2)).
    """
    _libc.syscall(ctypes.c_long(_IO_URING_SETUP), ctypes.c_uint(1), None)
    number = ctypes.get_errno()
    return os.strerror(number) if number in (errno.ENOSYS, errno.EPERM) else None
