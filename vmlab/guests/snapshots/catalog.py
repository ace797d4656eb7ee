"""The frozen guests on this machine: which are intact, which are in use, and how one is removed.

Each is a folder with RAM state, disk, description of the machine, and a manifest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.guests.cached import Collection, Entry, Fault, Notice, digests_in, read_bytes, require_sizes
from vmlab.guests.snapshots.recipe import SnapshotRecipe
from vmlab.integrity import FileDigests
from vmlab.model.errors import SnapshotError
from vmlab.model.frozen import MACHINE

SCHEMA = "vmlab.snapshot/2"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One frozen guest. `sha256` covers RAM state and disk, `seconds` is how long making it took.

    `files` has the digests of what is in the folder, by name: what RAM state and disk must be compared with.
    """

    id: str
    folder: Path
    sha256: str
    seconds: float
    files: Mapping[str, FileDigests]


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """A line of `vmlab snapshot ls`. `bytes` is what it takes on disk; `created` and `used` are times of the epoch.

    `whole` is False for one that is damaged, or whose image was removed; it will not be used again.
    """

    id: str
    folder: Path
    bytes: int
    created: float
    used: float
    in_use: bool
    whole: bool


class _Snapshots(Collection):
    name = "snapshots"
    noun = "snapshot"
    command = "vmlab snapshot ls"
    schema = SCHEMA
    needed = frozenset({"files", "key", "created", "seconds", "base", "sha256"})
    unfinished = ".making-"

    def damaged(self, folder: Path, fault: str) -> SnapshotError:
        return SnapshotError(f"snapshot {folder.name} is damaged: {fault}", snapshot=folder.name)

    def gone(self, id: str) -> SnapshotError:
        return SnapshotError(f"snapshot {id} was removed just now")

    def usable(self, entry: Entry) -> bool:
        """False without the image that its disk is based on."""
        if entry.manifest is None or not Path(entry.manifest["base"]).is_file():
            return False
        try:
            self.require_whole(entry.folder, entry.manifest)
        except SnapshotError:
            return False
        return True

    def require_whole(self, folder: Path, manifest: Mapping[str, Any]) -> dict[str, FileDigests]:
        """The digests of the files, whose sizes are right. Raises SnapshotError."""
        with self.naming(folder):
            files = digests_in(manifest)
            require_sizes(folder, {name: digests.size for name, digests in files.items()})
            if hashlib.sha256(read_bytes(folder, MACHINE)).hexdigest() != files[MACHINE].sha256:
                raise Fault(f"{MACHINE} is not what was written")
        return files


SNAPSHOTS = _Snapshots()


def snapshots_folder() -> Path:
    """Where snapshots are, one folder each."""
    return SNAPSHOTS.folder()


def find(recipe: SnapshotRecipe, notice: Notice) -> Snapshot | None:
    """The snapshot of `recipe`, or None. One that `load` refuses is discarded, with a line to `notice`."""
    folder = snapshots_folder() / recipe.id
    if not folder.is_dir():
        return None
    try:
        return load(folder, recipe.key)
    except SnapshotError as error:
        discard(folder, f"{error}; it is made again", notice)
        return None


def load(folder: Path, key: str | None = None) -> Snapshot:
    """The snapshot in `folder`. Quick: of RAM state and disk only the sizes are compared, of all else every byte.

    Raises SnapshotError where files are missing, short, changed, or of another `key`.
    """
    manifest = SNAPSHOTS.read(folder)
    files = SNAPSHOTS.require_whole(folder, manifest)
    if key is not None and manifest["key"] != key:
        raise SnapshotError(f"snapshot {folder.name} is of something else", snapshot=folder.name)
    return Snapshot(folder.name, folder, str(manifest["sha256"]), float(manifest["seconds"]), files)


@contextmanager
def hold(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Keep a snapshot from being removed while the context lasts, and note that it was used.

    Raises SnapshotError where it was removed already.
    """
    with SNAPSHOTS.held(snapshot.folder):
        yield snapshot


def discard(folder: Path, why: str, notice: Notice) -> bool:
    """Delete a snapshot that can no longer be used, and report `why`; False where a run still uses it.

    The caller must release it first.
    """
    notice(why)
    return SNAPSHOTS.retire(folder)


def list_snapshots() -> list[SnapshotSummary]:
    """All snapshots on this machine, the one used last first."""
    return sorted((_summary(entry) for entry in SNAPSHOTS.entries()), key=lambda one: one.used, reverse=True)


def _summary(entry: Entry) -> SnapshotSummary:
    return SnapshotSummary(
        id=entry.id,
        folder=entry.folder,
        bytes=entry.bytes,
        created=entry.created,
        used=entry.used,
        in_use=entry.in_use,
        whole=SNAPSHOTS.usable(entry),
    )


def remove(id: str) -> None:
    """Delete a snapshot. Raises RefusedError where there is none of that id, or when a run uses it."""
    SNAPSHOTS.remove(id)
