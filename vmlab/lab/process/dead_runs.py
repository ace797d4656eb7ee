"""Removes what runs left that died: what a run's journal lists, and folders with the run's own mark.

A run's folder that was copied or renamed is a user's data and is not touched, nor are files in a run's folder that are
not in its journal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vmlab.guests import sent_assets
from vmlab.guests.image import building
from vmlab.guests.image.added import ADDED
from vmlab.guests.snapshots import SNAPSHOTS
from vmlab.hypervisor.isolation.cgroups import prefix_of, remove_everywhere
from vmlab.hypervisor.journal import JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.libvirt.libvirt_root import root_folder
from vmlab.hypervisor.settings_keeper import Tell
from vmlab.lab.process.measuring_runs import clear_dead
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.lab.process.stray_processes import StrayProcess, end_stray, stray_processes
from vmlab.model.errors import CleanupIncomplete, RefusedError, StoreError, in_one_line
from vmlab.model.event import Notice
from vmlab.model.places import runs_folder, runtime_folder
from vmlab.model.visible import visible_line
from vmlab.store.archive import is_unfinished
from vmlab.store.runs import run_names
from vmlab.store.writer import RunWriter, fold_in_dead
from vmlab.system.descriptors import closed_after
from vmlab.system.held_folder import is_held
from vmlab.system.removal import remove_empty_folder, remove_tree, remove_trees
from vmlab.system.scratch import clear_scratch
from vmlab.system.terminal import say
from vmlab.telemetry.source import THE_HOST, Roots

_PATIENCE_SECONDS = 5.0
THE_CACHE = "(images, snapshots and assets)"
"""In the place of a run, for what was removed from the cache."""


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What `vmlab clean` did for one run, or in the cache: what it removed or put back and what it could not.

    `notes` are lines on settings of the host that are not as they were before the run, on what its journal names and
    nobody removed, and on files that it does not name. A journal may be anybody's text, so it proves no removal.
    """

    run: str
    removed: tuple[str, ...]
    left: tuple[str, ...]
    notes: tuple[str, ...] = ()


def sweep_run(
    folder: RunFolder,
    patience: float = _PATIENCE_SECONDS,
    *,
    roots: Roots = THE_HOST,
    tell: Tell | None = None,
    done: Callable[[JournalEntry], object] = lambda _entry: None,
) -> list[str]:
    """Remove all that the run made outside its namespaces, and put the host's settings back; what is still there
    afterwards, with why. Idempotent.

    Call it only when no process of the run is left but the caller. `patience` is in seconds; `tell` takes a line for
    each setting of the host that is not as it was before the run, where it is not to be a notice of the run's record,
    `done` each entry of the journal of which something was removed or put back.
    """
    end = time.monotonic() + patience
    while True:
        left = _swept(folder, roots, tell or _notices(folder), done)
        # The kernel lets go of a dead process's cgroup some moments after the process.
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


def _notices(folder: RunFolder) -> Tell:
    def keep(line: str) -> None:
        try:
            with contextlib.closing(RunWriter(folder.store)) as writer:
                writer.append(Notice(level="warning", text=line))
        except StoreError:
            say(f"vmlab: {visible_line(line)}")

    return keep


def _swept(folder: RunFolder, roots: Roots, tell: Tell, done: Callable[[JournalEntry], object]) -> list[str]:
    """One attempt; what is left after it."""
    if not folder.is_own():
        words = f"{folder.path} is not the folder that the run made: nothing in it was removed"
        # Whose folder has gone has its sockets still.
        return [words, *(_without_runtime(RuntimeFolder(folder.runtime)) if is_held(folder.path) else [])]
    left = []
    try:
        sweep(folder.journal, folder.disks, folder.id, roots=roots, tell=tell, done=done)
    except (CleanupIncomplete, StoreError) as error:
        left.append(str(error))
    left += _without_runtime(RuntimeFolder(folder.runtime))
    remove_empty_folder(folder.disks)
    return left


def _without_runtime(runtime: RuntimeFolder) -> list[str]:
    """Remove a run's runtime folder; why it could not go."""
    if not runtime.is_own():
        # An empty one lost its mark in a removal that was interrupted.
        gone = remove_empty_folder(runtime.path) or not runtime.path.exists()
        return [] if gone else [f"{runtime.path} does not carry the run's mark: nothing in it was removed"]
    try:
        remove_tree(runtime.path)
    except OSError as error:
        return [f"{runtime.path}: {error.strerror or error}"]
    return []


def dead_runs() -> Iterator[RunFolder]:
    """Runs that are over and have something left to clear; of other state folders too, if their sockets are here."""
    found = {path: RunFolder(path.name, path) for path in _folders(runs_folder())}
    for runtime in _runtimes():
        record = _record_of(runtime)
        if record is not None:
            found.setdefault(record.path, record)
    for _, folder in sorted(found.items()):
        alive = folder.alive() or RuntimeFolder(folder.runtime).alive()
        if folder.is_own() and not alive and _has_remains(folder):
            yield folder


def _has_remains(folder: RunFolder) -> bool:
    """Whether there may be something to clear: a journal that cannot be read hides no other run."""
    try:
        return bool(folder.remains())
    except StoreError:
        return True


def _runtimes() -> list[RuntimeFolder]:
    return [runtime for path in _folders(runtime_folder()) if (runtime := RuntimeFolder(path)).is_own()]


def _record_of(runtime: RuntimeFolder) -> RunFolder | None:
    """The run's folder, where it still is the one that the run made."""
    path = runtime.record()
    folder = None if path is None else RunFolder(runtime.run, path)
    return folder if folder is not None and folder.is_own() else None


def _folders(place: Path) -> list[Path]:
    """The folders in `place`, links not among them."""
    with contextlib.suppress(OSError):
        return sorted(path for path in place.iterdir() if path.is_dir() and not path.is_symlink())
    return []


def _sweep_orphans() -> Iterator[CleanResult]:
    """Clear runtime folders whose run's record was deleted by hand, and that no process has locked any more."""
    for runtime in _runtimes():
        if _record_of(runtime) is None and not runtime.alive():
            run = runtime.run
            removed, left = [], []
            try:
                # Without a journal its cgroups are found by the name that libvirt makes of the root folder, which is in
                # here.
                removed += remove_everywhere(prefix_of(root_folder(runtime.path)))
            except OSError as error:
                left.append(str(error))
            left += _without_runtime(runtime)
            if not runtime.path.exists():
                removed.append(str(runtime.path))
            yield CleanResult(run, tuple(removed), tuple(left))


def _clear_imports() -> Iterator[CleanResult]:
    """Remove what imports left that were killed: their figures are in the archive still."""
    for path in _folders(runs_folder()):
        if is_unfinished(path):
            with _held(RunFolder(path.name, path)) as ours:
                if ours:
                    done = remove_trees([path])
                    yield CleanResult(path.name, tuple(map(str, done.removed)), done.left)


def _ended(stray: StrayProcess) -> CleanResult:
    process = (f"process {stray.pid}",)
    gone = end_stray(stray)
    return CleanResult(stray.run, process if gone else (), () if gone else process, (str(stray),))


def _fold_in_stores() -> None:
    for path in _folders(runs_folder()):
        folder = RunFolder(path.name, path)
        # A damaged store, or one that this user may not write, is left as it is.
        with contextlib.suppress(OSError, StoreError):
            if folder.is_own():
                with _held(folder) as ours:
                    if ours:
                        fold_in_dead(folder.store)


@contextlib.contextmanager
def _held(folder: RunFolder) -> Iterator[bool]:
    """Hold a dead run's lock, so that no other process clears up at the same time; False where one does."""
    try:
        lock = folder.take_lock()
    except BlockingIOError:
        yield False
        return
    with closed_after(lock):
        yield True


def remove_run(folder: RunFolder) -> None:
    """Remove a run that is over, with its record.

    Raises RefusedError for one that is under way, that left something on this host, or whose folder is not its own;
    OSError where something cannot be removed, such as below a mount.
    """
    if not folder.is_own():
        raise RefusedError(f"{folder.path} is not the folder that the run made: nothing was removed")
    with _held(folder) as ours:
        if not ours:
            raise RefusedError(f"run {folder.id} is under way; `vmlab stop {folder.id}` ends it")
        if folder.remains():
            raise RefusedError(f"run {folder.id} left something on this host; `vmlab clean` removes that first")
        remove_tree(folder.path)


def demand_sight() -> None:
    """Raises RefusedError where there may be runs that this user cannot see: "nothing to clean" might be wrong."""
    run_names()
    try:
        next(runtime_folder().iterdir(), None)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RefusedError(f"cannot read {runtime_folder()}: {error.strerror}") from error


def clean_document(swept: Sequence[CleanResult]) -> dict[str, Any]:
    """The document ``vmlab.clean/1``."""
    return {"schema": "vmlab.clean/1", "runs": [asdict(one) for one in swept]}


def clean(roots: Roots = THE_HOST) -> list[CleanResult]:
    """End what works on without its folder, and clear after every dead run and what killed processes left in the cache.

    An empty list if there was nothing. Afterwards the store of every dead run is complete in one file.
    """
    swept = [_ended(stray) for stray in stray_processes()]
    clear_dead()
    _fold_in_stores()
    for folder in dead_runs():
        with _held(folder) as ours:
            if ours:
                swept.append(_cleaned(folder, roots))
    swept += _clear_imports()
    swept += _sweep_orphans()
    cache = _clear_cache()
    return [*swept, cache] if cache.removed or cache.left else swept


def _cleaned(folder: RunFolder, roots: Roots) -> CleanResult:
    before = _known_remains(folder)
    notes: list[str] = []
    done: set[str] = set()
    left = sweep_run(folder, roots=roots, tell=notes.append, done=lambda entry: done.add(f"{entry.kind} {entry.what}"))
    closed = before - _known_remains(folder)
    removed = {one for one in closed if one in done or one == str(folder.runtime)}
    for one in sorted(closed - removed):
        notes.append(f"run {folder.id}: {one}: gone before, or none of the lab's; nothing was removed")
    with contextlib.suppress(OSError):
        if more := len(list(folder.disks.iterdir())):
            notes.append(f"run {folder.id}: {folder.disks} has {more} files that its journal does not name; they stay")
    return CleanResult(folder.id, tuple(sorted(removed)), tuple(left), tuple(notes))


def _known_remains(folder: RunFolder) -> set[str]:
    with contextlib.suppress(StoreError):
        return set(folder.remains())
    return set()


def _clear_cache() -> CleanResult:
    removed: list[str] = []
    left: list[str] = []
    unfinished = (building.clear_unfinished, ADDED.clear_unfinished, SNAPSHOTS.clear_unfinished)
    for clear in (*unfinished, sent_assets.clear_unused, clear_scratch):
        try:
            done = clear()
        except (OSError, RefusedError) as error:
            left.append(in_one_line(error))
        else:
            removed += map(str, done.removed)
            left += done.left
    return CleanResult(THE_CACHE, tuple(removed), tuple(left))
