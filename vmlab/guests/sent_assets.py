"""Copies of suites that a fleet's controller sent to this host, which are kept for as long as a run here uses them.

An entry's id has the asset's name and digest. What is kept is read as any copy of a user is, and its digest taken anew
each time: an entry that was changed is none.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from vmlab.guests.cached.collection import Collection, Notice
from vmlab.model.asset import Asset
from vmlab.model.errors import RefusedError, UsageError, in_one_line
from vmlab.system.removal import Removals
from vmlab.workloads.assets import MOST_BYTES, asset_forms, read_assets


class _SentAssets(Collection):
    name = "assets"
    noun = "asset"
    command = "vmlab clean"
    schema = "vmlab.asset/1"
    needed = frozenset({"files", "created"})
    unfinished = ".taking-"

    def damaged(self, folder: Path, fault: str) -> RefusedError:
        return RefusedError(f"asset {folder.name} is damaged: {fault}", remedy="vmlab clean")

    def gone(self, id: str) -> RefusedError:
        return RefusedError(f"asset {id} was removed just now", remedy="start the run again")


SENT = _SentAssets()


def id_of(name: str, sha256: str) -> str:
    """The id of the asset `name` with this digest."""
    return f"{name}-{sha256}"


@contextmanager
def held(assets: Iterable[Asset]) -> Iterator[None]:
    """Keep those of a run's assets that were sent from removal while the block runs. Raises RefusedError."""
    with ExitStack() as holding:
        for folder in _sent(assets):
            holding.enter_context(SENT.held(folder))
        yield


def drop(assets: Iterable[Asset]) -> list[str]:
    """Remove those of a run's assets that were sent, unless another run uses them; what could not be removed."""
    return list(_without(_sent(assets)).left)


def clear_unused() -> Removals:
    """Remove what no run uses, and what killed processes left. Raises RefusedError and OSError."""
    unfinished = SENT.clear_unfinished()
    unused = _without(one.folder for one in SENT.entries() if not one.in_use)
    return Removals(unfinished.removed + unused.removed, unfinished.left + unused.left)


def _without(folders: Iterable[Path]) -> Removals:
    removed, left = [], []
    for folder in folders:
        try:
            if folder.is_dir() and SENT.retire(folder):
                removed.append(folder)
        except (OSError, RefusedError) as error:
            left.append(f"{folder}: {in_one_line(error)}")
    return Removals(tuple(removed), tuple(left))


def _sent(assets: Iterable[Asset]) -> list[Path]:
    """The entries that these assets are."""
    place = SENT.folder()
    inner = [Path(one.path).relative_to(place) for one in assets if Path(one.path).is_relative_to(place)]
    return [place / one.parts[0] for one in inner]


def take(id: str, source: IO[bytes], notice: Notice) -> str:
    """Keep the asset `id`, whose archive (`workloads.assets.packed`) comes from `source`; the id of what was kept.

    What was there under this id is replaced. Raises UsageError for an id of no asset, RefusedError where a run uses it
    and for an archive that is another one, is damaged or is not complete, and OSError; nothing of it is kept then.
    """
    name, _, sha256 = id.rpartition("-")
    if name not in asset_forms():
        raise UsageError(f"{id[:80]!r} is no asset")
    final = SENT.folder() / id
    if final.is_dir() and not SENT.retire(final):
        raise SENT.used_by_a_run(id)
    SENT.folder().mkdir(parents=True, exist_ok=True)
    with SENT.begun(id, SENT.gate(), notice) as folder:
        try:
            _unpack(source, name, folder)
        except (tarfile.TarError, EOFError) as error:
            raise RefusedError(f"asset {name} is not complete, or is no archive: {error}") from error
        found = _read(name, _copy_in(folder, name))
        if found is None or found.sha256 != sha256:
            raise RefusedError(f"asset {name} is not what was sent: its digest is another one")
        SENT.seal(folder, id, {}, {})
        SENT.keep(folder, id)
    return id


def _unpack(source: IO[bytes], name: str, folder: Path) -> None:
    """Write the files of an archive, which has plain files in the folder `name` alone."""
    left = MOST_BYTES
    with tarfile.open(fileobj=source, mode="r|") as archive:
        for entry in archive:
            inner = PurePosixPath(entry.name)
            content = archive.extractfile(entry) if entry.isreg() else None
            left -= entry.size
            if content is None or len(inner.parts) < 2 or inner.parts[0] != name or ".." in inner.parts or left < 0:
                raise RefusedError(f"asset {name} has {entry.name[:80]!r}, which no copy has")
            file = folder.joinpath(*inner.parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as target:
                shutil.copyfileobj(content, target)
            file.chmod(0o755 if entry.mode & 0o100 else 0o644)


def _copy_in(folder: Path, name: str) -> Path:
    """What a run is given as the copy: the folder, or the one archive in it that a suite comes as."""
    copy, suffix = folder / name, asset_forms()[name].suffix
    files = list(copy.iterdir()) if copy.is_dir() else []
    alone = len(files) == 1 and bool(suffix) and files[0].suffix == suffix
    return files[0] if alone else copy


def _read(name: str, path: Path) -> Asset | None:
    """The copy at `path`; None where there is none."""
    try:
        return read_assets([f"{name}={path}"])[name]
    except RefusedError:
        return None


def find(name: str, path: Path, sha256: str) -> Asset | None:
    """A copy with this digest: this host's own one at `path`, or one that was sent; None where there is neither.

    Raises UsageError where `name` is no asset's.
    """
    if name not in asset_forms():
        raise UsageError(f"{name[:80]!r} is no asset")
    places = (path, _copy_in(SENT.folder() / id_of(name, sha256), name))
    found = (_read(name, place) for place in places)
    return next((one for one in found if one is not None and one.sha256 == sha256), None)
