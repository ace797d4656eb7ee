"""Makes a snapshot: all or nothing, once, however many runs want it at the same time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from vmlab.guests.image.locks import Lock
from vmlab.guests.snapshots import catalog
from vmlab.guests.snapshots.catalog import MANIFEST, USE_LOCK, Notice, Snapshot, snapshots_folder
from vmlab.guests.snapshots.eviction import evict, size_limit
from vmlab.guests.snapshots.recipe import Recipe
from vmlab.model.errors import HypervisorError

Builder = Callable[[Path], Awaitable[None]]
"""Fills an empty folder with a frozen guest, see `Hypervisor.save`."""

_LOCKS = ".locks"
_POLL = 0.1
_DESCRIBED = ("ram", "disk.qcow2")
"""The files that the snapshot's digest covers."""


async def make(recipe: Recipe, base: Path, builder: Builder, notice: Notice) -> Snapshot:
    """The snapshot of `recipe`: found, or made by `builder` and kept. `base` is the image's disk, below the guest's.

    Whoever comes second waits, says so through `notice`, and finds the first one's. When `builder` raises, or is
    cancelled, nothing stays. Afterwards others are evicted as far as the limit wants it. Raises HypervisorError where
    it cannot be kept, as on a full disk, and whatever `builder` raises.
    """
    async with _only_maker(recipe.id, notice):
        found = await asyncio.to_thread(catalog.find, recipe, notice)
        if found is not None:
            return found
        return await _made(recipe, base, builder, notice)


async def _made(recipe: Recipe, base: Path, builder: Builder, notice: Notice) -> Snapshot:
    began = time.monotonic()
    folder, lock = _unfinished(recipe.id)
    try:
        await builder(folder)
        seconds = time.monotonic() - began
        await asyncio.to_thread(_seal, folder, recipe, base, seconds)
        final = snapshots_folder() / recipe.id
        folder.rename(final)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise HypervisorError(f"snapshot {recipe.id} cannot be kept: {error.strerror or error}") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        lock.release()
    for gone in await asyncio.to_thread(evict, size_limit(), recipe.id):
        notice(f"snapshot {gone} was removed to make room")
    return catalog.load(final)


def _unfinished(id: str) -> tuple[Path, Lock]:
    """A new folder, and the lock that tells it from what a killed maker left."""
    place = snapshots_folder()
    gate = _taken(place / _LOCKS / "gate")
    try:
        catalog.sweep_leftovers()
        folder = place / f"{catalog.MAKING}{id}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700)
        return folder, _taken(folder / USE_LOCK)
    finally:
        gate.release()


def clear_unfinished() -> list[Path]:
    """Remove what makers and removers that were killed left behind; what went."""
    if not snapshots_folder().is_dir():
        return []
    gate = _taken(snapshots_folder() / _LOCKS / "gate")
    try:
        return catalog.sweep_leftovers()
    finally:
        gate.release()


def _taken(path: Path) -> Lock:
    """The lock alone; others have it for moments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while (lock := Lock.try_exclusive(path)) is None:
        time.sleep(0.01)
    return lock


@asynccontextmanager
async def _only_maker(id: str, notice: Notice) -> AsyncIterator[None]:
    path = snapshots_folder() / _LOCKS / id
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = Lock.try_exclusive(path)
    if lock is None:
        notice(f"snapshot {id} is being made by another; waiting for it")
    while lock is None:
        await asyncio.sleep(_POLL)
        lock = Lock.try_exclusive(path)
    try:
        yield
    finally:
        lock.release()


def _seal(folder: Path, recipe: Recipe, base: Path, seconds: float) -> None:
    """Write the manifest, and bring everything to the disk."""
    files = {path.name: _described(path) for path in sorted(folder.iterdir()) if path.name != USE_LOCK}
    whole = hashlib.sha256("".join(files[name]["sha256"] for name in _DESCRIBED).encode())
    manifest = {
        "schema": "vmlab.snapshot/1",
        "id": recipe.id,
        "key": recipe.key,
        "created": time.time(),
        "seconds": round(seconds, 3),
        "base": str(base.resolve()),
        "sha256": whole.hexdigest(),
        "files": files,
        "recipe": recipe.described(),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for path in (*folder.iterdir(), folder):
        _to_disk(path)


def _described(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
