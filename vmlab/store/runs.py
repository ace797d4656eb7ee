"""The list of runs, read from their own stores, and the ways in which a user may name one of them."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vmlab.model.errors import RefusedError, UsageError, VmlabError
from vmlab.model.event import CellEnded, RepeatsEnded, RunEnded, RunStarted
from vmlab.model.places import runs_folder
from vmlab.model.run import RUNNING, Outcome
from vmlab.store.life import is_alive, process_ids
from vmlab.store.reader import RunReader
from vmlab.store.tags import LATEST, all_tags, demand_name, tagged, write_tag

STORE = "run.sqlite"
_LONGEST_SHOWN = 60
_MOST_CELLS = 1000


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the list of runs; times are seconds since the epoch.

    `outcome` is one of `Outcome`, or `RUNNING`; `problem` is the reason why a store cannot be read. `tags` are the
    names that a user gave to the run; `list_runs` has them, `summarise` has not. `control` tells a control run,
    which has one configuration on both sides.
    """

    id: str
    scenario: str
    size: str
    outcome: str
    started: float | None
    ended: float | None
    runner_pid: int | None
    cells_done: int
    cells_planned: int
    problem: str | None = None
    tags: tuple[str, ...] = ()
    control: bool = False


def new_run_id(scenario: str) -> str:
    """A new id such as ``20261121-143015-tile-7f3a``: sorts by time (UTC), is safe as a file name, is not taken."""
    safe = re.sub(r"[^a-z0-9]+", "-", scenario.lower()).strip("-")[:32] or "run"
    while True:
        run = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{safe}-{secrets.token_hex(2)}"
        if not (runs_folder() / run).exists():
            return run


def run_folders() -> list[Path]:
    """The folders of all runs, the newest first. Raises RefusedError where this user may not read them."""
    try:
        return sorted((path for path in runs_folder().iterdir() if path.is_dir()), reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RefusedError(f"cannot read {runs_folder()}: {error.strerror}") from error


def list_runs() -> list[RunSummary]:
    """All runs, the newest first. A damaged store affects its own line only."""
    tags = all_tags()
    runs = (summarise(folder / STORE) for folder in run_folders())
    return [replace(run, tags=tuple(name for name, of in tags.items() if of == run.id)) for run in runs]


def summarise(store: Path) -> RunSummary:
    """The line of the list for the run whose store is at `store`, which need not exist yet."""
    folder = store.parent
    # Checked before the store is read: a run that ends in between is then shown as its last event says.
    alive = is_alive(folder)
    started: RunStarted | None = None
    ended: RunEnded | None = None
    done = 0
    enough: int | None = None
    problem = None
    try:
        with RunReader(store) as reader:
            done = reader.count(CellEnded)
            # Not through the timeline of `analysis`, which is above the store: the list of hundreds of runs needs two
            # events of each, and a timeline of all of them would take minutes. With some dozens of cells, reading their
            # events also finds damage; with very many, only the number is read.
            kinds = (RunStarted, RepeatsEnded, RunEnded, *((CellEnded,) if done <= _MOST_CELLS else ()))
            for _, event in reader.events(kinds=kinds):
                if isinstance(event, RunStarted):
                    started = event
                elif isinstance(event, RepeatsEnded):
                    enough = event.cells
                elif isinstance(event, RunEnded):
                    ended = event
    except VmlabError as error:
        problem = str(error)
    return RunSummary(
        id=folder.name,
        scenario=started.scenario if started else "",
        size=started.size if started else "",
        outcome=ended.outcome if ended else RUNNING if alive else Outcome.ABORTED,
        started=started.wall if started else None,
        ended=ended.wall if ended else None,
        runner_pid=_runner_pid(folder) if alive and ended is None else None,
        cells_done=done,
        cells_planned=enough or (started.cells if started else 0),
        problem=problem,
        control=started is not None and started.control,
    )


def _runner_pid(folder: Path) -> int | None:
    noted = process_ids(folder)
    return noted.get("runner_pid", noted.get("launcher_pid"))


def resolve_run(reference: str) -> Path:
    """The store of the run that `reference` names; its parent is the run's folder.

    A reference is an id, a name that was given to a run, the unique beginning of an id, ``last``, or a path to a run's
    folder or store. The store of a run that has just begun may not exist yet. Raises UsageError, with one line, for
    anything else.
    """
    if "/" in reference or reference.endswith(".sqlite"):
        return _at_path(Path(reference))
    folders = run_folders()
    if (run := tagged(reference)) is not None:
        return _of_name(reference, run, folders)
    if not folders:
        raise UsageError(f"there are no runs in {runs_folder()} yet")
    if reference in LATEST:
        return folders[0] / STORE
    found = [f for f in folders if f.name == reference] or [f for f in folders if f.name.startswith(reference)]
    if not reference or not found:
        raise UsageError(f"no run is called {_shown(reference)}; `vmlab ls` lists them")
    if len(found) > 1:
        names = ", ".join(folder.name for folder in found[:3]) + (", …" if len(found) > 3 else "")
        raise UsageError(f"{_shown(reference)} may be any of {len(found)} runs: {names}")
    return found[0] / STORE


def _of_name(name: str, run: str, folders: Sequence[Path]) -> Path:
    """The store of the run of that name. Raises UsageError where it has gone, or a run has the name as its id."""
    if any(folder.name == name for folder in folders):
        raise UsageError(
            f"{name!r} is the id of one run and the name of {run}; `vmlab tag --rm {name}` removes the name"
        )
    if not any(folder.name == run for folder in folders):
        other = f"`vmlab tag RUN {name}` names another, `vmlab tag --rm {name}` removes the name"
        which = f"run {run}, which is not here any more" if run else "no run, as its file is damaged"
        raise UsageError(f"{name!r} names {which}; {other}")
    return runs_folder() / run / STORE


def name_run(reference: str, name: str) -> tuple[str, str | None]:
    """Give `name` to the run that `reference` names; its id, and that of the run that had the name before.

    Raises UsageError for a name that could be taken for something else, and for a run that is not in the state folder.
    """
    demand_name(name)
    folder = resolve_run(reference).parent
    folders = run_folders()
    if any(one.name.startswith(name) for one in folders):
        raise UsageError(f"{name!r} could be the id of a run that is here")
    if not any(one.samefile(folder) for one in folders):
        raise UsageError(f"{folder}: only runs in {runs_folder()} can have a name")
    run, before = folder.resolve().name, tagged(name)
    write_tag(name, run)
    return run, before


def _at_path(path: Path) -> Path:
    try:
        store = path / STORE if path.is_dir() else path
        if not store.exists():
            raise UsageError(f"{path}: no run is there")
    except OSError as error:
        raise UsageError(f"{_shown(str(path))}: {error.strerror}") from error
    return store


def _shown(reference: str) -> str:
    """A reference for a message, shortened if it is long."""
    return repr(reference if len(reference) <= _LONGEST_SHOWN else f"{reference[:_LONGEST_SHOWN]}…")
