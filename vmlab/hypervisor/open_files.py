"""What a running QEMU has open: which descriptors are on a file, how a node was opened, what is below a loop device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from vmlab.telemetry.domains.open_disks import identity


def opened_by(place: str) -> dict[str, Any]:
    """How the lowest node of a node's ``file``, by QMP, was opened; the file's path is its ``filename``.

    QEMU writes the options as JSON where a path does not say all of them: for what has none, and for an image whose
    file names the one below it by another path than it was opened by, as where a folder is a symbolic link. Of more
    than 4096 characters it writes a beginning, which says nothing: {}.
    """
    if not place.startswith("json:"):
        return {"filename": place} if place else {}
    try:
        options: Any = json.loads(place.removeprefix("json:"))
    except ValueError:
        return {}
    while isinstance(below := options.get("file"), dict):
        options = below
    return dict(options)


def descriptors_on(process: Path, file: Path) -> Iterator[Path]:
    """The descriptors by which a process, by its folder below a /proc, holds `file` open. Raises OSError."""
    wanted = identity(file.stat())
    for descriptor in (process / "fd").iterdir():
        with suppress(FileNotFoundError):
            if identity(descriptor.stat()) == wanted:
                yield descriptor


def file_below(device: str) -> Path | None:
    """The file that a loop device is on, by the kernel's name of it, as ``loop0``; None for any other device."""
    try:
        return Path(Path("/sys/block", device, "loop/backing_file").read_text().rstrip("\n"))
    except OSError:
        return None
