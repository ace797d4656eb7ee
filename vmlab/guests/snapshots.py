"""The frozen guests on this machine: what each depends on, of which its key is a digest and of nothing else; which are
intact, which are in use, how much of the disk they may take.

Each is a folder with RAM state, disk, description of the machine, and a manifest. It is made completely or not
at all, and only once when several runs need it at the same time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from vmlab.guests.cached.collection import Collection, Entry, Kept, Notice
from vmlab.guests.cached.locks import USE_LOCK, wait_for_async
from vmlab.guests.cached.manifest import Fault, digests_in, read_bytes, require_sizes
from vmlab.guests.channel import payload_file
from vmlab.guests.image.catalog import FILES, IMAGES
from vmlab.integrity.digests import FileDigests, describe
from vmlab.integrity.long_work import as_current, until
from vmlab.model.concurrency import shielded
from vmlab.model.errors import HypervisorError, SnapshotError, UsageError
from vmlab.model.names import DISK, MACHINE, RAM
from vmlab.model.quantities import parse_bytes
from vmlab.system.removal import MARK_FILE

SCHEMA = "vmlab.snapshot/2"
FORMAT = 1
"""Increased when guests are frozen in another way that the other fields do not show."""

_PROGRAMS = ("identity.pl", "empty.sh", "settle.sh")
"""What runs in every guest before it is frozen, apart from its preparation."""
LIMIT = "VMLAB_SNAPSHOT_LIMIT"
_MOST = 20 * 2**30
_SHARE_OF_DISK = 4


@dataclass(frozen=True, slots=True)
class SnapshotRecipe:
    """All that a frozen guest depends on.

    `image` is the digest of its root disk, see `image_digest`. `machine` describes its hardware, and `preparation` what
    was done to it and by which code, both as JSON values. `roles` are its own, sorted by this class; they name it, too.
    """

    image: str
    machine: Mapping[str, Any]
    roles: tuple[str, ...]
    preparation: Any

    def described(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return {
            "format": FORMAT,
            "settled_by": _settled_by(),
            "image": self.image,
            "machine": dict(self.machine),
            "roles": sorted(self.roles),
            "preparation": self.preparation,
        }

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        canonical = json.dumps(self.described(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def id(self) -> str:
        """The roles and twelve digits of the key, such as ``mail-web-0a1b2c3d4e5f``; the name of its folder."""
        return f"{'-'.join(sorted(self.roles)) or 'plain'}-{self.key[:12]}"


def image_digest(disk: Path) -> str:
    """SHA-256 of an image's root disk, as its manifest has it: an image that is built again keeps its old id.

    Raises ImageError where the manifest beside `disk` cannot be read.
    """
    return str(IMAGES.read(disk.parent)["files"][FILES[0]]["sha256"])


@cache
def _settled_by() -> str:
    digest = hashlib.sha256()
    for name in _PROGRAMS:
        digest.update(payload_file(name))
    return digest.hexdigest()


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


Builder = Callable[[Path], Awaitable[None]]
"""Fills an empty folder with a frozen guest, see `Hypervisor.save`."""

_POLL = 0.1


async def make(recipe: SnapshotRecipe, base: Path, builder: Builder, notice: Notice) -> Snapshot:
    """The snapshot of `recipe`: found, or made by `builder` and kept. `base` is the image's disk, below the guest's.

    A second process waits, with a line through `notice`, and uses the first one's snapshot. When `builder` raises, or
    is cancelled, nothing is left. Afterwards others are evicted down to the limit. Raises HypervisorError where it
    cannot be stored, as on a full disk, RefusedError where another process hangs in a short step, and any error of
    `builder`.
    """
    lock = await wait_for_async(
        SNAPSHOTS.build_lock(recipe.id),
        every=_POLL,
        busy=lambda: notice(f"snapshot {recipe.id} is being made by another; waiting for it"),
    )
    with lock:
        found = await asyncio.to_thread(find, recipe, notice)
        if found is not None:
            return found
        return await _made(recipe, base, builder, notice)


async def _made(recipe: SnapshotRecipe, base: Path, builder: Builder, notice: Notice) -> Snapshot:
    began = time.monotonic()
    gate = await SNAPSHOTS.gate_async()
    try:
        with SNAPSHOTS.begun(recipe.id, gate, notice) as folder:
            await builder(folder)
            seconds = time.monotonic() - began
            # A thread that still wrote into the folder would keep it from being removed: it is asked to end, and does.
            over = threading.Event()
            with as_current(until(over.is_set)):
                await shielded(asyncio.to_thread(_seal, folder, recipe, base, seconds), over.set)
            final = SNAPSHOTS.keep(folder, recipe.id)
    except OSError as error:
        raise HypervisorError(f"snapshot {recipe.id} cannot be kept: {error.strerror or error}") from error
    for gone in await asyncio.to_thread(SNAPSHOTS.evict, size_limit(), recipe.id):
        notice(f"snapshot {gone} was removed to make room")
    return load(final)


def _seal(folder: Path, recipe: SnapshotRecipe, base: Path, seconds: float) -> None:
    """Write the manifest, and bring everything to the disk."""
    files = {path.name: describe(path) for path in sorted(folder.iterdir()) if path.name not in (USE_LOCK, MARK_FILE)}
    whole = hashlib.sha256("".join(files[name].sha256 for name in (RAM, DISK)).encode())
    manifest = {
        "key": recipe.key,
        "seconds": round(seconds, 3),
        "base": str(base.resolve()),
        "sha256": whole.hexdigest(),
        "recipe": recipe.described(),
    }
    SNAPSHOTS.seal(folder, recipe.id, files, manifest)
