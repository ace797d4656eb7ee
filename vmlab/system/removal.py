"""The one module that removes files and folders, and marks folders as the lab's own, which are all that it empties.

No removal crosses a mount or follows a link. A mark names its folder's owner and the folder's own inode.

A folder is walked by descriptors that openat2(2) opened with ``RESOLVE_NO_XDEV`` and without links, so that a mount
that appears half-way stops the removal there. Mounts that can be seen before stop it before it has begun.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from vmlab.system.descriptors import closed_after
from vmlab.system.mounts import mounted

MARK_FILE = "vmlab.mark"
"""The file that names a folder's owner (`mark`); it is removed last."""

_MOUNTS = Path("/proc/self/mountinfo")


class MountInTheWay(OSError):
    """Something is mounted on or below the folder to be removed; nothing in it was removed."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EBUSY, "something is mounted there, and a removal never crosses a mount", str(path))


def mounts_below(folder: Path) -> list[Path]:
    """Where something is mounted on `folder` or below it, as this process's mount namespace has it."""
    place = folder.parent.resolve() / folder.name
    return sorted({one.point for one in mounted(_MOUNTS) if one.point.is_relative_to(place)})


def remove_tree(folder: Path) -> bool:
    """Remove `folder` with all that is in it; False where there is none.

    Links in it are removed, not followed. The path to it may contain links, as where the cache is kept on another disk.
    Raises MountInTheWay, and OSError for a `folder` that is a link itself or not a folder, and for anything that cannot
    be removed.
    """
    for point in mounts_below(folder):
        raise MountInTheWay(point)
    return _removed(folder.parent.resolve(), folder)


class Removals(NamedTuple):
    """What was removed; for what could not be removed, its path and the reason."""

    removed: tuple[Path, ...] = ()
    left: tuple[str, ...] = ()


def remove_trees(folders: Iterable[Path]) -> Removals:
    """Remove each of `folders` with all that is in it; one that cannot be removed does not stop the others."""
    removed, left = [], []
    for folder in folders:
        try:
            remove_tree(folder)
        except OSError as error:
            where = f" ({error.filename})" if error.filename and str(error.filename) != str(folder) else ""
            left.append(f"{folder}: {error.strerror or error}{where}")
        else:
            removed.append(folder)
    return Removals(tuple(removed), tuple(left))


def remove_cgroup(group: Path) -> bool:
    """Remove a cgroup with those below it; False where there is none. The kernel removes the files in them.

    Raises OSError where a process is still in one of them.
    """
    return _removed(group.parent, group, files=False)


def _removed(above: Path, folder: Path, *, files: bool = True) -> bool:
    with contextlib.suppress(FileNotFoundError), _folder_held(above) as parent:
        return _remove_folder(parent, folder.name, folder, files=files)
    return False


def _folder_beneath(folder: int, name: str) -> int:
    # Late: ctypes, on which this stands, takes 10 ms, and most commands remove nothing.
    from vmlab.system.kernel import open_folder_beneath

    return open_folder_beneath(folder, name)


def _remove_folder(parent: int, name: str, path: Path, *, files: bool = True) -> bool:
    try:
        inner = _folder_beneath(parent, name)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise MountInTheWay(path) from error
        why = "is a link, which a removal never follows" if error.errno == errno.ELOOP else error.strerror
        raise OSError(error.errno, why, str(path)) from error
    with closed_after(inner):
        _empty(inner, path, files)
    with named(path):
        os.rmdir(name, dir_fd=parent)
    return True


def _empty(folder: int, path: Path, files: bool) -> None:
    with os.scandir(folder) as entries:
        # The mark goes last: after a removal that failed, the rest still names its owner.
        listed = sorted(entries, key=lambda entry: entry.name == MARK_FILE)
    for entry in listed:
        # A file may disappear meanwhile, such as the socket of a process that ends; that is not an error.
        with contextlib.suppress(FileNotFoundError), named(path / entry.name):
            if entry.is_dir(follow_symlinks=False):
                _remove_folder(folder, entry.name, path / entry.name, files=files)
            elif files:
                os.unlink(entry.name, dir_fd=folder)


def remove_file(file: Path) -> bool:
    """Remove one file, socket or link by its name; False where there is none.

    Of a link, the link itself is removed, not its target. Raises OSError where the folder of `file` is a link, where
    `file` is a folder, and where it cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError), _folder_held(file.parent) as parent:
        return _unlinked(parent, file.name, file)
    return False


def remove_file_beneath(above: Path, within: str, name: str) -> bool:
    """Remove the file `name` of the folder `within`, which lies in the folder `above`; False where there is none.

    Raises OSError where `above` is a link, and where a mount or a link stands between it and the file.
    """
    with (
        contextlib.suppress(FileNotFoundError),
        _folder_held(above) as folder,
        closed_after(_folder_beneath(folder, within)) as inner,
    ):
        return _unlinked(inner, name, Path(within, name))
    return False


def _unlinked(parent: int, name: str, path: Path) -> bool:
    with named(path):
        os.unlink(name, dir_fd=parent)
    return True


def remove_empty_folder(folder: Path) -> bool:
    """Remove `folder` if it is empty; False where it is not, where it is a mount or a link, or does not exist."""
    with contextlib.suppress(OSError), _folder_held(folder.parent) as parent:
        os.rmdir(folder.name, dir_fd=parent)
        return True
    return False


def _folder_held(folder: Path) -> contextlib.AbstractContextManager[int]:
    """A descriptor of `folder`, which must not be a link itself. Raises FileNotFoundError where there is none."""
    return closed_after(os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Give `path` to an OSError that comes without one, or with its last part alone.

    A call by descriptor knows no path: when the disk is full, the error of a write does not name the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and "/" not in str(error.filename):
            error.filename = str(path)
        raise


def make_marked(folder: Path, owner: str) -> None:
    """Make the new `folder`, for this user alone, and mark it as the property of `owner`.

    Raises OSError; then the folder does not exist, because nothing would ever remove one without a mark.
    """
    folder.mkdir(parents=True, mode=0o700)
    try:
        mark(folder, owner)
    except BaseException:
        remove_tree(folder)
        raise


def mark(folder: Path, owner: str) -> None:
    """Mark `folder`, which the caller has made. Raises OSError."""
    text = json.dumps({"owner": owner, "inode": folder.stat().st_ino})
    with named(folder / MARK_FILE):
        (folder / MARK_FILE).write_text(text, encoding="utf-8")


def owner_of(folder: Path) -> str | None:
    """The owner that the mark of `folder` names; None where it is a link, a copy, or was never marked."""
    with opened(folder) as (_, owner):
        return owner


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[tuple[int, str | None]]:
    """A descriptor of `folder` and its owner; -1 and None where it cannot be opened as a folder, or is a link."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield -1, None
        return
    with closed_after(descriptor):
        yield descriptor, _owner(descriptor)


def _owner(folder: int) -> str | None:
    try:
        file = os.open(MARK_FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(file, encoding="utf-8") as opened_file:
            mark = json.loads(opened_file.read(4096))
        owner, inode = mark["owner"], mark["inode"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if isinstance(owner, str) and inode == os.fstat(folder).st_ino else None
