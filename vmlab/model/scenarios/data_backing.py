"""Where a guest's data disk lies: the values of its key ``backing``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

FileSystem = Literal["ext4", "xfs", "btrfs"]
FILE_SYSTEMS: tuple[FileSystem, ...] = ("ext4", "xfs", "btrfs")
"""Those that the lab makes for a data disk."""
PlaceKind = Literal["file", "block", "ext4", "xfs", "btrfs", "rbd", "lvm", "folder"]
_ALONE: tuple[PlaceKind, ...] = ("file", "block", *FILE_SYSTEMS)
_NAMED: dict[PlaceKind, re.Pattern[str]] = {
    "rbd": re.compile(r"rbd:([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})", re.ASCII),
    "lvm": re.compile(r"lvm:((?!\.{1,2}$)[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126})", re.ASCII),
    "folder": re.compile(r"folder:((?:/(?!\.{1,2}(?:/|$))[^/\x00-\x1f\x7f]+)+)", re.ASCII),
}
_BESIDE = 2**30
"""What a file system of the lab's is larger than the disk at least: journal or log, tables, reserved blocks."""


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A `kind` of place, and its `name`: that of a pool or a volume group, or the path of a folder."""

    kind: PlaceKind
    name: str = ""

    @classmethod
    def of(cls, backing: str) -> DataPlace:
        """The place that a value of the key names. Raises ValueError for one that is none."""
        for kind in _ALONE:
            if backing == kind:
                return cls(kind)
        for kind, pattern in _NAMED.items():
            if found := pattern.fullmatch(backing):
                return cls(kind, found[1])
        raise ValueError(f"{backing!r} is no backing of a data disk")

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def file_system(self) -> FileSystem | None:
        """The file system that the lab makes for the disk; None where it lies on what is there."""
        return next((kind for kind in FILE_SYSTEMS if kind == self.kind), None)

    @property
    def on_other_disk(self) -> bool:
        """Whether it is on this host, and not below the folder of runs."""
        return self.kind in ("folder", "lvm")

    def file_bytes(self, size: int) -> int:
        """The size of the file below a data disk of `size` bytes.

        btrfs keeps an extent until nothing of it is in use, so that a disk that is written in any order takes twice its
        size; ext4 and XFS take less than an eighth for themselves.
        """
        if self.file_system is None:
            return size
        return (2 * size if self.kind == "btrfs" else size + size // 8) + _BESIDE


def _backing(value: object) -> object:
    try:
        if isinstance(value, str) and DataPlace.of(value):
            return value
    except ValueError:
        pass
    raise ValueError(
        f"needs {', '.join(_ALONE)}, folder:PATH with an absolute path, lvm:GROUP with the name of a volume group, "
        "or rbd:POOL with the name of a pool of a Ceph cluster"
    )


Backing = Annotated[
    str,
    BeforeValidator(_backing),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(_ALONE)},
                *({"type": "string", "pattern": f"^{pattern.pattern}$"} for pattern in _NAMED.values()),
            ]
        }
    ),
]
