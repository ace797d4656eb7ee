"""A user's own copy of a suite that vmlab does not bring, such as a benchmark that may not be passed on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AssetForm:
    """What a copy must be: a folder with all of `files` in it, or in its folder `within`; or one archive of `suffix`.

    `name` is that of ``--asset NAME=PATH``; `what` tells people what a copy is. Folders of `left_out` are results of
    earlier runs, and not given to guests.
    """

    name: str
    what: str
    files: tuple[str, ...]
    within: str = ""
    suffix: str = ""
    left_out: tuple[str, ...] = (".git", "results", "tmp")


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset as it was when the run was asked for.

    `name` is that of its form, `path` absolute. `sha256` is that of the archive that guests get of it,
    and `size` the bytes of that archive.
    """

    name: str
    path: str
    sha256: str
    size: int
