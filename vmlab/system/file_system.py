"""What the file system of a folder is, and whether it has what a run needs of it: room, locks and shared memory.

A file system without locks, such as an NFS whose lock daemon is missing, says nothing of what is to be locked: that is
neither in use, nor free, nor damaged. Whatever has to lock is refused, in a line with the path, the kind of file system
and the variable that moves the folder; whatever only reads does without the lock.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import secrets
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from vmlab.model.errors import RefusedError, unusable
from vmlab.model.places import remedy_for
from vmlab.system.descriptors import closed_after
from vmlab.system.mounts import mounted
from vmlab.system.removal import named, remove_empty_folder, remove_file

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_PROC = Path("/proc")
_TRIED_BYTES = 32768
"""Of SQLite's shared memory in its smallest form."""


class NoLocksError(RefusedError):
    """The file system of what should be locked has no locks."""


def mounts_of(device: int, proc: Path = _PROC) -> Iterator[tuple[str, str]]:
    """Type and source of each mount of a file system."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for one in mounted(proc / "self/mountinfo"):
        if one.device == wanted:
            yield one.kind, one.source


def filesystem_of(folder: Path, proc: Path = _PROC) -> str | None:
    """The type of the file system that holds `folder`, such as ``ext4``; None where it is not known (btrfs)."""
    return next((kind for kind, _ in mounts_of(folder.stat().st_dev, proc)), None)


def nearest_folder(path: Path) -> Path:
    """The nearest folder at or above `path` that is there and in sight."""
    return next(place for place in (path.absolute(), *path.absolute().parents) if _is_folder(place))


def _is_folder(place: Path) -> bool:
    """Of what lies in a folder that this user may not enter, nothing is known."""
    try:
        return place.is_dir()
    except OSError:
        return False


def supports_direct(folder: Path) -> bool:
    """Whether the file system of `folder` takes O_DIRECT; tmpfs, for one, may not. Raises OSError.

    It is tried on a file without a name, of which nothing is left, where the file system has such files.
    """
    place, flags = folder.resolve(), os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC
    try:
        os.close(os.open(place, flags | os.O_TMPFILE, 0o600))
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
            raise
    else:
        return True
    probe = place / f".direct-{secrets.token_hex(8)}"
    try:
        os.close(os.open(probe, flags | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    finally:
        remove_file(probe)
    return True


def offers(kind: str) -> bool:
    """Whether this kernel has a file system, or a module for it. True where its modules are not to be seen."""
    if kind in (_PROC / "filesystems").read_text().split():
        return True
    modules = Path("/lib/modules") / os.uname().release
    lists = [modules / "modules.dep", modules / "modules.builtin"]
    known = [file.read_text(errors="replace") for file in lists if file.exists()]
    return not known or any(f"/{kind}.ko" in text for text in known)


def flock(descriptor: int, operation: int, path: Path) -> None:
    """flock(2) on the open file at `path`. Raises BlockingIOError while another has it, and RefusedError where nobody
    can know: NoLocksError on a file system without locks.
    """
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        raise
    except OSError as error:
        raise _no_lock(error, path) from error


def has_record_locks(file: Path) -> bool:
    """Whether files beside `file` have the locks of fcntl(2), which SQLite takes. Asks only; raises OSError.

    Closing a file gives up all of the process's locks of this kind on it, so `file` must be one that nobody locks so.
    """
    with closed_after(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)) as descriptor:
        try:
            fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return False
    return True


def demand_usable(*folders: Path, keep: bool = True) -> None:
    """Make each folder where it is missing. Raises RefusedError unless files in all of them can be written, locked in
    both ways, and mapped into memory that processes share; then no file and no folder is left that was not there, and
    without `keep` in no case.
    """
    missing = [place for one in folders for place in (one, *one.parents) if not os.path.lexists(place)]
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            try_out(folder)
    except OSError as error:
        keep = False
        raise unusable(error, "write") from error
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            for place in missing:
                remove_empty_folder(place)


def try_out(folder: Path) -> None:
    """As `demand_usable`, of a folder that is there. Raises OSError, too."""
    file = folder / f".try-{os.getpid()}-{time.monotonic_ns()}"
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        error.filename = str(folder)
        raise
    with closed_after(descriptor):
        # Nothing is left of a process that is killed while the disk writes.
        remove_file(file)
        with named(folder):
            if os.pwrite(descriptor, bytes(_TRIED_BYTES), 0) < _TRIED_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, folder)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _no_lock(error, folder) from error
        try:
            mmap.mmap(descriptor, _TRIED_BYTES).close()
        except OSError as error:
            words = f"cannot share memory in {folder}: its file system{_kind(folder)} has none ({error.strerror})"
            raise RefusedError(words, remedy=remedy_for(folder)) from error


def _no_lock(error: OSError, path: Path) -> RefusedError:
    if error.errno in _NO_LOCKS:
        return NoLocksError(f"cannot lock {path}: its file system{_kind(path)} has no locks", remedy=remedy_for(path))
    return RefusedError(f"cannot lock {path}: {error.strerror}", remedy=remedy_for(path))


def _kind(path: Path) -> str:
    try:
        kind = filesystem_of(path)
    except OSError:
        kind = None
    return f" ({kind})" if kind else ""
