"""Data disks in folders of the user's: one file for each, of the lab's own, beside whatever else is there.

The file's name has the run, the guest, and sixteen random digits: no other file has it. It is in the journal before it
is made, and nothing else in the folder is ever opened, changed or removed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from pathlib import Path

from vmlab.hypervisor.journal import OR_FORGET, JournalEntry
from vmlab.model.errors import HypervisorError
from vmlab.system.descriptors import closed_after
from vmlab.system.mounts import mounted
from vmlab.system.removal import remove_file

_RANDOM_BYTES = 8
_MOUNTS = Path("/proc/self/mountinfo")


def file_for(folder: Path, lab: str, guest: str, kind: str) -> Path:
    """The file of a guest of `lab` in `folder`, of a format, which is not made yet; without links. Raises OSError."""
    place = folder.resolve(strict=True)
    return place / f"vmlab.{lab}.{guest}.{secrets.token_hex(_RANDOM_BYTES)}.{kind}"


def entry_for(file: Path) -> JournalEntry:
    """The file's entry in a journal, with the mount point that it lies below. Raises OSError."""
    above = [point for point in _mount_points() if file.is_relative_to(point)]
    return JournalEntry("outside", str(file), was=str(max(above, key=lambda one: len(one.parts), default="")))


def _mount_points() -> list[Path]:
    return [one.point for one in mounted(_MOUNTS)]


def is_of(lab: str, file: Path) -> bool:
    """Whether a path has the name of a file that `lab` makes."""
    name = re.compile(rf"vmlab\.{re.escape(lab)}\.[a-z0-9-]+\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}\.(raw|qcow2)", re.ASCII)
    return file.is_absolute() and name.fullmatch(file.name) is not None


def create(file: Path) -> int:
    """Make the file, which must not be there; a descriptor to write it. No link is followed. Raises OSError."""
    with closed_after(os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)) as folder:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(file.name, flags, 0o600, dir_fd=folder)


def remove(entry: JournalEntry, lab: str) -> bool:
    """Remove the file of an `entry_for` a file of `lab`; False where it is not there, or is no file of the lab's.

    Raises HypervisorError where what it lay on is not mounted now, OSError where a link stands on the way to it, and
    where it cannot be removed.
    """
    file = Path(entry.what)
    if not is_of(lab, file):
        return False
    try:
        kind = file.lstat().st_mode
        above = file.parent.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        if entry.was and Path(entry.was) not in _mount_points():
            raise HypervisorError(f"{file} is on {entry.was}, which is not mounted: mount it, {OR_FORGET}") from None
        return False
    if not stat.S_ISREG(kind):
        return False
    if above != file.parent:
        raise OSError(errno.ELOOP, "a link has replaced the folder", str(file.parent))
    return remove_file(file)
