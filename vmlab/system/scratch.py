"""The one place for temporary folders: in the cache, marked and locked, so that `vmlab clean` finds what a kill leaves.

A file that is to appear under its name once it is complete needs none: `new_file`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vmlab.model.places import cache_folder
from vmlab.system.descriptors import closed_after
from vmlab.system.file_system import demand_usable, flock
from vmlab.system.removal import Removals, make_marked, owner_of, remove_tree, remove_trees

_FOLDER = "scratch"
_LOCK = "use.lock"
_GATE = ".gate"


@contextmanager
def scratch(what: str, cache: Path | None = None) -> Iterator[Path]:
    """A new folder for this user alone, removed at the end of the block; `what` it is for is in its name.

    `cache` stands in the place of the user's. Raises RefusedError where the cache cannot be written, and OSError.
    """
    # Imported late: it loads OpenSSL.
    from secrets import token_hex

    place = (cache or cache_folder()) / _FOLDER
    demand_usable(place)
    folder = place / f"{what}-{token_hex(4)}"
    with ExitStack() as closing:
        closing.callback(remove_tree, folder)
        with _locked(place / _GATE):
            make_marked(folder, folder.name)
            opened = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            flock(closing.enter_context(closed_after(opened)), fcntl.LOCK_EX | fcntl.LOCK_NB, folder / _LOCK)
        yield folder


def clear_scratch() -> Removals:
    """Remove the folders of processes that were killed. Raises OSError."""
    place = cache_folder() / _FOLDER
    if not place.is_dir():
        return Removals()
    with _locked(place / _GATE):
        return remove_trees([one for one in sorted(place.iterdir()) if owner_of(one) == one.name and _is_free(one)])


def _is_free(folder: Path) -> bool:
    """Whether no process holds a folder; none can take it while the gate is held."""
    try:
        with closed_after(os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)) as lock:
            flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, folder / _LOCK)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    return True


@contextmanager
def _locked(gate: Path) -> Iterator[None]:
    """Hold the gate: for moments, while a folder is made or those of dead processes are removed."""
    with closed_after(os.open(gate, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as lock:
        flock(lock, fcntl.LOCK_EX, gate)
        yield
