"""The folders that this process works in: each is opened once, found again by its descriptor, and watched.

The rule for every process that the lab starts and that outlives its command: it holds its folders before it writes
anything (`hold`), and does not open them by their paths again. A later file is opened relative to the descriptor
(`opened`), or was open before. A library that takes paths, as SQLite, opens one only after `demand`. Once a second the
process looks whether its folders are still where they were (`why_lost`), and ends where one is not: nobody finds what
is written then.

A folder is lost when it was removed, moved or replaced, when its file system was unmounted or has become read-only, and
when a file in it that the process needs (`need`) is not the one that was there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from vmlab.model.errors import StoreError
from vmlab.system.descriptors import closed_after

LOOK_SECONDS = 1.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE})
"""Errors of a path that leads nowhere; of others nobody knows, and they may pass."""

_Identity = tuple[int, int]


class FolderLostError(StoreError):
    """A folder that this process works in is not at its place any more."""


class _HeldFolder:
    """One folder, from the moment on at which it was opened. Raises OSError for a link, and for no folder."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, _FOLDER)
        self._seen = path
        with contextlib.suppress(OSError):
            # Not every process may look through the root folder of another.
            through = root / path.relative_to("/")
            through.lstat()
            self._seen = through
        self._own = _identity(os.fstat(self.descriptor))
        self._files: dict[str, _Identity] = {}
        self.suspected = False

    def need(self, name: str) -> None:
        """From the first call on it counts as lost where the file `name` is another, or gone. Raises OSError."""
        self._files.setdefault(name, _identity(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)))

    def forget(self, name: str) -> None:
        self._files.pop(name, None)

    def why_lost(self) -> str:
        try:
            there = self._seen.lstat()
        except OSError as error:
            return self._where_to() if error.errno in _NOWHERE else ""
        if _identity(there) != self._own:
            what = {stat.S_IFLNK: "a link", stat.S_IFDIR: "another folder"}.get(stat.S_IFMT(there.st_mode), "a file")
            return f"{self.path} was replaced by {what} while it was in use"
        if os.fstatvfs(self.descriptor).f_flag & os.ST_RDONLY or self._refuses():
            return f"{self.path}: its file system has become read-only"
        return next((why for name, known in [*self._files.items()] if (why := self._why_other(name, known))), "")

    def _refuses(self) -> bool:
        """Whether a write that failed did so for good: a file system that found an error in itself need not show it."""
        if self.suspected:
            self.suspected = False
            try:
                os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=self.descriptor))
            except OSError as error:
                self.suspected = error.errno == errno.EROFS
        return self.suspected

    def _where_to(self) -> str:
        """Why nothing is at the path."""
        now = Path(f"/proc/self/fd/{self.descriptor}").readlink()
        if now.name.endswith(" (deleted)"):
            return f"{self.path} was removed while it was in use"
        with contextlib.suppress(OSError):
            if _identity(now.lstat()) == self._own:
                return f"{self.path} was moved to {now} while it was in use"
        return f"{self.path} is not there any more: it was moved, or its file system was unmounted, while it was in use"

    def _why_other(self, name: str, known: _Identity) -> str:
        try:
            there = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except OSError as error:
            return f"{self.path / name} was removed while it was in use" if error.errno in _NOWHERE else ""
        return "" if _identity(there) == known else f"{self.path / name} was replaced while it was in use"


def _identity(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


_held: dict[Path, _HeldFolder] = {}


def hold(folder: Path, root: Path = Path("/")) -> None:
    """Work in `folder`, an absolute path, from now on until this process ends; once is enough.

    Where others see the folder in another mount namespace, `root` is their root folder: it is lost when they do not see
    it any more. Raises OSError where it is a link, or no folder.
    """
    if folder not in _held:
        _held[folder] = _HeldFolder(folder, root)


def release(folder: Path) -> None:
    """Work in `folder` no more."""
    if (one := _held.pop(folder, None)) is not None:
        os.close(one.descriptor)


def is_held(folder: Path) -> bool:
    """Whether this process works in `folder`."""
    return folder in _held


def need(file: Path) -> None:
    """Have the folder of `file` count as lost where that is removed or replaced; nothing where it is not held.

    Raises OSError where there is no such file.
    """
    if (one := _held.get(file.parent)) is not None:
        one.need(file.name)


def forget(file: Path) -> None:
    """Take back `need`."""
    if (one := _held.get(file.parent)) is not None:
        one.forget(file.name)


def suspect(file: Path) -> None:
    """Have it looked into why `file` could not be written; nothing where its folder is not held."""
    if (one := _held.get(file.parent)) is not None:
        one.suspected = True


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int]:
    """The descriptor of `folder`: the one that is held, or a new one. Raises OSError where it is a link."""
    if (one := _held.get(folder)) is not None:
        yield one.descriptor
        return
    with closed_after(os.open(folder, _FOLDER)) as descriptor:
        yield descriptor


def write_text_in(folder: int, name: str, text: str) -> None:
    """Write the file `name` of an open folder, in the place of what was in it. Raises OSError, also for a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(text)


def why_lost() -> str:
    """Why one of this process's folders is lost, in one line; empty while none is."""
    return next((why for one in list(_held.values()) if (why := one.why_lost())), "")


def demand() -> None:
    """Raise FolderLostError where one of this process's folders is lost."""
    if why := why_lost():
        raise FolderLostError(why)


async def until_lost() -> NoReturn:
    """Wait, and raise FolderLostError as soon as one of this process's folders is lost."""
    # Imported late: most that imports this module does not wait.
    import asyncio

    while True:
        demand()
        await asyncio.sleep(LOOK_SECONDS)
