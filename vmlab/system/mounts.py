"""The one reader of the kernel's lists of mounts: proc_pid_mountinfo(5), and the older proc_pid_mounts(5)."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
