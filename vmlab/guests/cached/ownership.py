"""Which folders of the cache the lab has made; all others are a user's data, whatever their names."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from vmlab.guests.cached.manifest import MANIFEST
from vmlab.system.marks import owner_of


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
