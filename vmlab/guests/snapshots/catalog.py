"""The frozen guests on this machine: which are intact, which are in use, how much of the disk they may take.

Each is a folder with RAM state, disk, description of the machine, and a manifest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vmlab.guests.cached.collection import Collection, Entry, Kept, Notice
from vmlab.guests.cached.manifest import Fault, digests_in, read_bytes, require_sizes
from vmlab.guests.snapshots.recipe import SnapshotRecipe
from vmlab.integrity import FileDigests
from vmlab.model.errors import SnapshotError, UsageError
from vmlab.model.frozen import MACHINE
from vmlab.model.quantities import parse_bytes

SCHEMA = "vmlab.snapshot/2"
LIMIT = "VMLAB_SNAPSHOT_LIMIT"
_MOST = 20 * 2**30
_SHARE_OF_DISK = 4


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

    def usable(self, folder: Path, manifest: Mapping[str, Any]) -> bool:
        """False without the image that its disk is based on."""
        if not Path(manifest["base"]).is_file():
            return False
        try:
            self.require_whole(folder, manifest)
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


@dataclass(frozen=True, slots=True)
class Snapshot(Kept):
    """One frozen guest. `sha256` covers RAM state and disk, `seconds` is how long making it took.

    `files` has the digests of what is in the folder, by name: what RAM state and disk must be compared with.
    """

    collection: ClassVar[Collection] = SNAPSHOTS
    id: str
    folder: Path
    sha256: str
    seconds: float
    files: Mapping[str, FileDigests]


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


def discard(folder: Path, why: str, notice: Notice) -> bool:
    """Delete a snapshot that can no longer be used, and report `why`; False where a run still uses it.

    The caller must release it first.
    """
    notice(why)
    return SNAPSHOTS.retire(folder)


def list_snapshots() -> list[Entry]:
    """All snapshots on this machine, the one used last first."""
    return sorted(SNAPSHOTS.entries(), key=lambda one: one.used, reverse=True)


def size_limit() -> int:
    """Bytes that all snapshots together may take: VMLAB_SNAPSHOT_LIMIT, such as ``5 GiB``, or else a quarter of what
    would be free without them, and 20 GiB at most. Raises UsageError for a limit that is no size."""
    given = os.environ.get(LIMIT)
    if given is not None:
        try:
            return parse_bytes(given)
        except ValueError as error:
            raise UsageError(f"{LIMIT} {error}") from error
    place = snapshots_folder()
    place.mkdir(parents=True, exist_ok=True)
    taken = sum(one.bytes for one in SNAPSHOTS.entries())
    return min(_MOST, (shutil.disk_usage(place).free + taken) // _SHARE_OF_DISK)
