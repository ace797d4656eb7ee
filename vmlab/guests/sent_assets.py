"""Copies of suites that a fleet's controller sent to this host, which are kept for as long as a run here uses them.

An entry's id has the asset's name and digest; `asset_taking` makes and finds entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vmlab.guests.cached import Collection
from vmlab.model.asset import Asset
from vmlab.model.errors import RefusedError, in_one_line
from vmlab.system.removal import Removals


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
