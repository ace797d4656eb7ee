"""Which programs are on a raw disk: its ext2, ext3 or ext4 root file system is read with debugfs and never mounted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import BinaryIO

from vmlab.integrity.long_work import beside

_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/snap/bin")
"""Where `command -v` looks in a guest, as sudo and sshd set PATH on Debian and Ubuntu."""
_SHELL = "sh"
"""The program that every root file system has."""
_SECTOR = 512
_EXT_MAGIC = (1024 + 56, b"\x53\xef")
"""Offset in the file system, and the bytes there."""
_MOST_OUTPUT = 8 * 2**20
_DEADLINE = 60.0
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBUGFS_PAGER": "__none__"}
_FSTAB = "cat /etc/fstab"


class NotReadable(Exception):
    """Why it cannot be known which programs a disk has, in words that follow ``because``."""


def programs_on(disk: Path, wanted: Iterable[str]) -> dict[str, bool]:
    """For each name or absolute path in `wanted`, whether the disk has it. A link counts, whatever it leads to.

    Raises NotReadable where that cannot be known, and OSError.
    """
    names = list(wanted)
    with disk.open("rb") as file:
        offsets = [offset for offset in (0, *_partitions(disk)) if _has_ext(file, offset)]
    roots = [there for offset in offsets if _SHELL in (there := _present(disk, offset, [_SHELL, *names]))]
    if not roots:
        raise NotReadable("it has no ext2, ext3 or ext4 root file system, neither whole nor on a partition")
    return {name: any(name in there for there in roots) for name in names}


def _partitions(disk: Path) -> list[int]:
    """Where each partition begins, in bytes; nothing for a disk without a partition table. Raises NotReadable."""
    argv = ["partx", "--raw", "--noheadings", "--output", "START", str(disk.absolute())]
    try:
        told = subprocess.run(argv, env=_ENVIRONMENT, capture_output=True, text=True, timeout=_DEADLINE, check=False)
    except FileNotFoundError:
        raise NotReadable("partx is missing; apt-get install util-linux") from None
    except subprocess.TimeoutExpired:
        raise NotReadable(f"partx did not read it within {_DEADLINE:.0f} s") from None
    return [int(start) * _SECTOR for start in told.stdout.split()]


def _has_ext(file: BinaryIO, offset: int) -> bool:
    place, magic = _EXT_MAGIC
    file.seek(offset + place)
    return file.read(len(magic)) == magic


def _present(disk: Path, offset: int, names: Iterable[str]) -> set[str]:
    """Those of `names` that are in the file system at `offset` of the disk. Raises NotReadable."""
    places = {
        place: name
        for name in names
        for place in ([name] if name.startswith("/") else [f"{folder}/{name}" for folder in _FOLDERS])
    }
    said = _debugfs(disk, offset, [*(f"stat {place}" for place in places), _FSTAB]).splitlines()
    found: set[str] = set()
    for asked, answer in pairwise(said):
        place = asked.removeprefix("debugfs: stat ")
        if place in places and answer.startswith("Inode:"):
            found.add(places[place])
    _demand_one_file_system(said, places)
    return found


def _demand_one_file_system(said: list[str], places: Iterable[str]) -> None:
    """Raises NotReadable where /etc/fstab, which ends what debugfs said, has other file systems for some `places`."""
    asked = f"debugfs: {_FSTAB}"
    if asked not in said:
        raise NotReadable(f"debugfs did not read it within {_DEADLINE:.0f} s")
    for line in said[said.index(asked) + 1 :]:
        fields = line.split()
        if len(fields) < 2 or fields[0].startswith("#") or fields[1] == "/" or not fields[1].startswith("/"):
            continue
        if any(PurePosixPath(place).is_relative_to(fields[1]) for place in places):
            raise NotReadable(f"its {fields[1][:40]!r} is another file system")


def _debugfs(disk: Path, offset: int, commands: list[str]) -> str:
    # The name of the disk has no folder in it: debugfs takes what follows a question mark for options.
    argv = ["debugfs", "-f", "-", f"{disk.name}?offset={offset}"]
    try:
        process = subprocess.Popen(
            argv,
            cwd=disk.parent,
            env=_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise NotReadable("debugfs is missing; apt-get install e2fsprogs") from None
    clock = Timer(_DEADLINE, process.kill)
    clock.start()
    try:
        with process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("".join(f"{one}\n" for one in commands).encode())
            process.stdin.close()
            said = beside(partial(process.stdout.read, _MOST_OUTPUT + 1), process.kill)
            process.kill()
    except BrokenPipeError:
        said = b""
    finally:
        clock.cancel()
    if len(said) > _MOST_OUTPUT:
        raise NotReadable("debugfs prints more than is read of it")
    return said.decode("utf-8", "replace")
