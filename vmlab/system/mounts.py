"""The one reader of the kernel's lists of mounts: proc_pid_mountinfo(5), and the older proc_pid_mounts(5);
which hierarchies of cgroups are mounted, of version 1 and 2, and what is in their files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_KIND_FROM = 6
"""The first word of mountinfo that may be the hyphen before the file system's type; a mount point may be one, too."""


class Mounted(NamedTuple):
    """A line of mountinfo: the mount's `number` (``mnt_id`` of fdinfo), its ``major:minor``, where it is, and of what.

    Only btrfs and bcachefs promise a device as `source`: of others it may be any text. A mount that is listed may be
    hidden by a later one, on it or on a folder above it.
    """

    number: int
    device: str
    point: Path
    kind: str
    source: str


def mount_words(file: Path) -> Iterator[list[str]]:
    """The words of each line. Raises OSError.

    The kernel writes space, tab, line break and backslash in a path as three octal digits behind a backslash, and every
    other byte as it is: a path may hold what `str.split` and `str.splitlines` take for a space or a line break.
    """
    for line in file.read_bytes().split(b"\n"):
        if line:
            yield [_unescaped(word) for word in line.split(b" ")]


def mounted(file: Path) -> Iterator[Mounted]:
    """Each mount of a mountinfo. Raises OSError."""
    for words in mount_words(file):
        kind, source = words[words.index("-", _KIND_FROM) + 1 :][:2]
        yield Mounted(int(words[0]), words[2], Path(words[4]), kind, source)


def _unescaped(word: bytes) -> str:
    return os.fsdecode(word.decode("unicode_escape").encode("latin-1") if b"\\" in word else word)


_JOIN = 'left=$0; while [ "$left" -gt 0 ]; do echo 0 > "$1" || exit 126; shift; left=$((left - 1)); done; exec "$@"'
"""Writes itself into each cgroup (0 is the writer, in whichever PID namespace) and becomes the program."""


class Mount(NamedTuple):
    """One mounted hierarchy: its root folder, the controllers in it, and its version, 1 or 2."""

    root: Path
    controllers: frozenset[str]
    version: int


def hierarchies(mounts: Path = Path("/proc/self/mounts")) -> list[Mount]:
    """All hierarchies, version 1 and 2, whose mount is seen. Version 2 counts processor time without a controller.

    One that is listed while something is mounted over it, or over a folder above it, is not there: of the mounts on one
    folder only the last is seen, and a hierarchy's root has files that no other file system has.
    """
    found: dict[str, Mount | None] = {}
    for _, root, kind, options, *_ in mount_words(mounts):
        found.pop(root, None)
        found[root] = _hierarchy(Path(root), kind, options)
    return [one for one in found.values() if one is not None]


def _hierarchy(root: Path, kind: str, options: str) -> Mount | None:
    controllers = root / "cgroup.controllers"
    with contextlib.suppress(OSError):
        if kind == "cgroup2":
            return Mount(root, frozenset({*controllers.read_text().split(), "cpuacct"}), 2)
        if kind == "cgroup" and (root / "cgroup.procs").exists() and not controllers.exists():
            return Mount(root, frozenset(options.split(",")), 1)
    return None


def mount_of(controller: str, mounts: Iterable[Mount]) -> Mount | None:
    """The hierarchy that has `controller`, which is one at most; None where there is none."""
    return next((mount for mount in mounts if controller in mount.controllers), None)


def cgroups_in(text: bytes) -> Iterator[tuple[list[str], Path]]:
    """The cgroups of a process or a thread, as the kernel lists them: each with its controllers, which one of version 2
    does not have, and its place below the root of its hierarchy.
    """
    for line in text.splitlines():
        _, controllers, inner = line.decode("utf-8", "surrogateescape").split(":", 2)
        yield controllers.split(",") if controllers else [], Path(inner.lstrip("/"))


def throttled_seconds(text: bytes) -> float | None:
    """For how long a quota kept a cgroup from running, from its ``cpu.stat``: ``throttled_usec`` of version 2, or
    ``throttled_time`` (ns) of version 1; None without a quota.
    """
    words = text.split()
    for name, unit in ((b"throttled_usec", 1e6), (b"throttled_time", 1e9)):
        if name in words:
            return int(words[words.index(name) + 1]) / unit
    return None


def read_cpu_list(text: str) -> list[int]:
    """The CPUs of a list such as ``0-3,8``, in ascending order. Raises ValueError."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= {*range(int(first), int(last or first) + 1)}
    return sorted(found)


def cpu_list(cpus: Collection[int]) -> str:
    """The inverse of `read_cpu_list`, without ranges: ``0,1,2``."""
    return ",".join(map(str, sorted(cpus)))


def joining(groups: Sequence[Path]) -> tuple[str, ...]:
    """In front of a command: a shell that enters the cgroups with these ``cgroup.procs`` and becomes the command."""
    return ("/bin/sh", "-c", _JOIN, str(len(groups)), *map(str, groups)) if groups else ()
