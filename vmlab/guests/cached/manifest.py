"""The manifest of an entry: sealed JSON that names its kind, when it was made, and the digests of its files.

Folders of the cache without one, and without a mark, are a user's data, whatever their names.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from vmlab.integrity.digests import FileDigests, seal, unseal
from vmlab.integrity.long_work import beside
from vmlab.model.errors import OF_THIS_PROCESS, UsageError
from vmlab.system.descriptors import closed_after
from vmlab.system.given_file import read_given
from vmlab.system.removal import owner_of

_MOST_BYTES = 64 * 2**20

MANIFEST = "manifest.json"


class Fault(Exception):
    """What is wrong with an entry, in words that follow ``ENTRY is damaged:``."""


def read_manifest(folder: Path, schema: str, needed: Iterable[str]) -> dict[str, Any]:
    """The manifest in `folder`. Raises Fault unless it is what was written, of this `schema`, with all `needed`."""
    try:
        manifest = unseal(read_bytes(folder, MANIFEST))
    except ValueError as error:
        raise Fault(f"{MANIFEST} is not what was written") from error
    if manifest.get("schema") != schema or not manifest.keys() >= set(needed):
        raise Fault(f"{MANIFEST} is not one")
    return manifest


def write_manifest(folder: Path, values: Mapping[str, Any]) -> None:
    """Write or replace the manifest, atomically: after a crash there is the old or the new one. Raises OSError."""
    renewed = folder / f".{MANIFEST}"
    renewed.write_text(seal(values), encoding="utf-8")
    _to_disk(renewed)
    renewed.replace(folder / MANIFEST)


def digests_in(manifest: Mapping[str, Any]) -> dict[str, FileDigests]:
    """The digests of the files that a manifest lists, by name. Raises Fault where there are none."""
    try:
        return {name: FileDigests.from_json(described) for name, described in manifest["files"].items()}
    except (ValueError, AttributeError) as error:
        raise Fault(str(error)) from error


def require_sizes(folder: Path, sizes: Mapping[str, int]) -> None:
    """Raises Fault where a file of `folder` is missing, or has not as many bytes as `sizes` says."""
    for name, expected in sizes.items():
        file = folder / name
        actual = file.stat().st_size if file.is_file() else None
        if actual != expected:
            found = "missing" if actual is None else f"{actual} bytes long and not {expected}"
            raise Fault(f"{name} is {found}")


def read_bytes(folder: Path, name: str) -> bytes:
    """All of a small file of an entry. Raises Fault where it cannot be read, OSError where this process cannot."""
    try:
        return read_given(folder / name, _MOST_BYTES)
    except UsageError as error:
        if isinstance(cause := error.__cause__, OSError) and cause.errno in OF_THIS_PROCESS:
            raise cause from None
        raise Fault(f"{name} cannot be read: {error}") from error


def bring_to_disk(folder: Path) -> None:
    """Return when all files of `folder`, and their names, are on the disk. Raises OSError, and what the work raises."""
    for path in (*folder.iterdir(), folder):
        beside(partial(_to_disk, path))


def _to_disk(path: Path) -> None:
    with closed_after(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
        os.fsync(descriptor)


def is_own(folder: Path, schema: str) -> bool:
    """Whether `folder` is a finished image or snapshot that the lab made, damaged or not.

    It has its own mark, or a manifest with its name and a `schema` that begins so: entries that were copied to a larger
    disk are still recognised.
    """
    if folder.is_symlink() or not folder.is_dir():
        return False
    return owner_of(folder) == folder.name or _named_in(folder / MANIFEST, schema) == folder.name


def _named_in(manifest: Path, schema: str) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        manifest_fields = json.loads(manifest.read_text(encoding="utf-8"))
        if isinstance(manifest_fields, dict) and str(manifest_fields.get("schema")).startswith(schema):
            return str(manifest_fields.get("id"))
    return None


def is_own_leftover(folder: Path, prefix: str, schema: str) -> bool:
    """Whether a folder called ``PREFIXid-random`` was begun, or is being removed, by the lab."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    names = (owner_of(folder), _named_in(folder / MANIFEST, schema))
    return any(name and folder.name.startswith(f"{prefix}{name}-") for name in names)
