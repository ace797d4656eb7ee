"""Makes a snapshot: completely or not at all, and only once when several runs need it at the same time."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from vmlab.guests.cached.collection import Notice
from vmlab.guests.cached.locks import USE_LOCK, wait_for_async
from vmlab.guests.snapshots import catalog
from vmlab.guests.snapshots.catalog import SNAPSHOTS, Snapshot, SnapshotRecipe, size_limit
from vmlab.integrity import describe
from vmlab.integrity.long_work import as_current, until
from vmlab.model.concurrency import shielded
from vmlab.model.errors import HypervisorError
from vmlab.model.names import DISK, RAM
from vmlab.system.removal import MARK_FILE

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
        found = await asyncio.to_thread(catalog.find, recipe, notice)
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
    return catalog.load(final)


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
