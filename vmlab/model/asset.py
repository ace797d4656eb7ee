"""A user's own copy of a suite that vmlab does not bring, such as a benchmark that may not be passed on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset as it was when the run was asked for.

    `name` is the one of `workloads.assets`, `path` absolute. `sha256` is that of the archive that guests get of it,
    and `size` the bytes of that archive.
    """

    name: str
    path: str
    sha256: str
    size: int
