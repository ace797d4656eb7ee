"""Where the runs are, what one line of their list says, and the ways in which a user may name one of them:
a name such as ``baseline`` is a small file in the state folder.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.errors import RefusedError, UsageError, unusable
from vmlab.model.grouping import grouped
from vmlab.model.places import runs_folder, state_folder
from vmlab.model.visible import quoted
from vmlab.system.given_file import put_in_place, read_given
from vmlab.system.removal import remove_file

STORE = "run.sqlite"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the list of runs; times are seconds since the epoch.

    `outcome` is one of `Outcome`, `RUNNING`, or `DAMAGED`; `problem` is the reason why a store cannot be read.
    `tags` are the names that a user gave to the run; `list_runs` has them, `summarise` has not. `control` tells a
    control run, which has one configuration on both sides. `cells_missed` is how many of its cells passed and missed a
    target; of more than a thousand cells it is 0.
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
    cells_missed: int = 0
    cells_aborted: int = 0
    """How many of the cells that ended were aborted, in a run of up to a thousand cells."""
    note: str = ""
    """What a user noted of the run; may hold any characters."""

    @property
    def cells(self) -> str:
        """``1/2``: cells that ended otherwise than aborted, of those planned."""
        return f"{self.cells_done - self.cells_aborted}/{self.cells_planned}"


def new_run_id(scenario: str) -> str:
    """A new id such as ``20261121-143015-tile-7f3a``: `by_time` sorts it, it is safe as a file name, and not taken.

    It begins with the second (UTC) and ends with the part of that second that is over, in 1/65536, in hexadecimal.
    """
    safe = re.sub(r"[^a-z0-9]+", "-", scenario.lower()).strip("-")[:32] or "run"
    while True:
        now = time.time()
        run = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{safe}-{int(now % 1 * 0x10000):04x}"
        if not (runs_folder() / run).exists():
            return run


def by_time(run: str) -> tuple[str, str, str]:
    """A key that sorts ids of runs by the time at which they began."""
    second = len("20261121-143015")
    return run[:second], run[-4:], run


def run_names() -> list[str]:
    """The ids of all runs, the newest first. Raises RefusedError where this user may not read them."""
    place = runs_folder()
    try:
        with os.scandir(place) as entries:
            return sorted((entry.name for entry in entries if entry.is_dir()), key=by_time, reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable(error, "read") from error


def run_folders() -> list[Path]:
    """The folders of all runs, the newest first. Raises RefusedError where this user may not read them."""
    place = runs_folder()
    return [place / name for name in run_names()]


def resolve_run(reference: str) -> Path:
    """The store of the run that `reference` names; its parent is the run's folder.

    A reference is an id, a name that was given to a run, the unique beginning of an id, ``last``, or a path to a run's
    folder or store. The store of a run that has just begun may not exist yet. Raises UsageError, with one line, for
    anything else.
    """
    if "/" in reference or reference.endswith(".sqlite"):
        return _at_path(Path(reference))
    runs = tagged(reference)
    if runs is None and (exact := _exact(reference)) is not None:
        return exact / STORE
    folders = run_folders()
    if runs is not None:
        if len(runs) > 1:
            words = "`vmlab compare`, `report` and `export` take them"
            raise UsageError(f"{quoted(reference)} names {len(runs)} runs: {words}")
        return _of_name(reference, runs[0] if runs else "", folders)
    if not folders:
        raise UsageError(f"there are no runs in {runs_folder()} yet")
    if reference in LATEST:
        return folders[0] / STORE
    found = [f for f in folders if f.name.startswith(reference)]
    if not reference or not found:
        raise UsageError(f"no run is called {quoted(reference)}; `vmlab ls` lists them")
    if len(found) > 1:
        names = ", ".join(folder.name for folder in found[:3]) + (", …" if len(found) > 3 else "")
        raise UsageError(f"{quoted(reference)} may be any of {len(found)} runs: {names}")
    return found[0] / STORE


def demand_id(run: str) -> None:
    """Raises UsageError, with one line, for an id under which no run may come here: it already means something else."""
    if run in LATEST:
        raise UsageError(f"a run cannot be called {run!r}, which is always the newest one")
    if (named := next((name for name in all_tags() if run == name or run.startswith(name)), None)) is not None:
        raise RefusedError(
            f"run {quoted(run)} cannot be told from the name {named}",
            remedy=f"`vmlab tag --rm {named}` removes the name",
        )


def _exact(run: str) -> Path | None:
    """The folder of the run with this id, found without a look at all others; None where there is none."""
    if run not in LATEST and run.strip("."):
        with suppress(OSError, ValueError):
            if (folder := runs_folder() / run).is_dir():
                return folder
    return None


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
    return store_of(run)


def store_of(run: str) -> Path:
    """The store of the run with this id, whether or not there is one."""
    return runs_folder() / run / STORE


def demand_unlike_ids(name: str) -> None:
    """Raises UsageError, with one line, for a name that no run can have, or that could be the id of one."""
    demand_name(name)
    if any(one.name.startswith(name) for one in run_folders()):
        raise UsageError(f"{name!r} could be the id of a run that is here")


def runs_named(reference: str) -> tuple[str, ...]:
    """The ids of the runs where `reference` is the name of several; else itself."""
    runs = tagged(reference)
    return runs if runs is not None and len(runs) > 1 else (reference,)


def name_runs(stores: Sequence[Path], name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give `name` to the runs with these stores; their ids, and those of the runs that had the name before.

    Raises UsageError for a name that could be taken for something else, for a run that is not in the state folder, and
    for one that is named twice.
    """
    demand_unlike_ids(name)
    found = [store.parent for store in stores]
    folders = run_folders()
    for folder in found:
        if not any(one.samefile(folder) for one in folders):
            raise UsageError(f"{folder}: only runs in {runs_folder()} can have a name")
    runs, before = tuple(folder.resolve().name for folder in found), tagged(name) or ()
    if len(set(runs)) < len(runs):
        raise UsageError("a run is named twice; each counts once")
    if len(runs) > MOST_RUNS:
        raise UsageError(f"a name has at most {MOST_RUNS} runs")
    write_tag(name, *runs)
    return runs, before


def _at_path(path: Path) -> Path:
    try:
        store = path / STORE if path.is_dir() else path
        if not store.exists():
            raise UsageError(f"{path}: no run is there")
    except OSError as error:
        raise UsageError(f"{quoted(str(path))}: {error.strerror}") from error
    return store


_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run as the user named it, with its store, and its one cell or None for all."""

    name: str
    store: Path
    cell: int | None


@dataclass(frozen=True, slots=True)
class NamedSide:
    """One side: the reference that the user gave, and its runs."""

    label: str
    runs: tuple[NamedRun, ...]


def named_sides(references: Sequence[str], cell: int | None = None) -> list[NamedSide]:
    """A side for each reference, of its one `cell` unless it names another. Raises UsageError for what names no run."""
    return [NamedSide(reference, tuple(_run(name, cell) for name in _runs_of(reference))) for reference in references]


def _run(reference: str, cell: int | None) -> NamedRun:
    run, named = split_cell(reference)
    return NamedRun(reference, resolve_run(run), cell if named is None else named)


def _runs_of(reference: str) -> list[str]:
    """The runs of a reference to several, by commas or by their common name; a path may have commas, too."""
    try:
        resolve_run(split_cell(reference)[0])
    except UsageError:
        return [run for part in reference.split(",") for run in runs_named(part)]
    return [reference]


def split_cell(reference: str) -> tuple[str, int | None]:
    """``last:2`` to ``("last", 2)``."""
    run, colon, cell = reference.rpartition(":")
    numbered = colon and cell.isascii() and cell.isdigit() and len(cell) <= _MOST_DIGITS
    return (run, int(cell)) if numbered else (reference, None)


LATEST = ("last", "latest")
"""What names the newest run, and so is no tag."""
LONGEST = 64
"""Characters of the longest name."""
_CHANGES = ("skip", "planned", "end")
"""Words of `vmlab set`, after which a run of that name could not be named there."""
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9._-]{{0,{LONGEST - 1}}}", re.ASCII)
_FILES = (".sqlite", ".yaml", ".yml", ".vmlab")
"""What ends so is taken for a file."""
_RULE = f"use letters from a to z and A to Z, digits, '.', '_' and '-', a letter first, {LONGEST} at most"
_LONGEST_RUN = 255
MOST_RUNS = 256
"""Runs that one name may have."""
_LONGEST_FILE = MOST_RUNS * (_LONGEST_RUN + 1)


def tags_folder() -> Path:
    """The folder of the files."""
    return state_folder() / "tags"


def demand_name(name: str) -> None:
    """Raises UsageError, with one line, for a name that could be taken for something else, or that is not plain."""
    if len(name) > LONGEST:
        raise UsageError(f"a name has at most {LONGEST} characters; {name[:LONGEST]!r}… has {len(name)}; {_RULE}")
    if name[:1].isdigit():
        raise UsageError(f"{name!r} could be the id of a run; a name begins with a letter: {_RULE}")
    if name in LATEST:
        raise UsageError(f"{name!r} is always the newest run, and names no other")
    if name in _CHANGES:
        raise UsageError(f"{name!r} is a word of `vmlab set`, and names no run")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name: {_RULE}")
    if name.lower().endswith(_FILES):
        raise UsageError(f"{name!r} could be a file; a name does not end in {', '.join(_FILES)}")


def all_tags() -> dict[str, tuple[str, ...]]:
    """The ids of the runs of each name, by name; () for one whose file is damaged. Raises OSError."""
    try:
        names = sorted(path.name for path in tags_folder().iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return {}
    found = ((name, tagged(name)) for name in names)
    return {name: run for name, run in found if run is not None}


def tagged(name: str) -> tuple[str, ...] | None:
    """The ids of the runs of that name; None where there is no such name, () where its file is damaged or no file."""
    if not _NAME.fullmatch(name):
        return None
    path = tags_folder() / name
    if not os.path.lexists(path):
        return None
    try:
        runs = os.fsdecode(read_given(path, _LONGEST_FILE, follow=False)).removesuffix("\n").split("\n")
    except UsageError:
        return ()
    return tuple(runs) if len(runs) <= MOST_RUNS and all(map(_plain, runs)) else ()


def names_of_runs() -> dict[str, list[str]]:
    """The names of each run that has any, by its id. Raises OSError."""
    return grouped((run, name) for name, runs in all_tags().items() for run in runs)


def tags_of(folder: Path) -> list[str]:
    """The names of the run in `folder`; none of a folder that is elsewhere. Raises OSError."""
    return names_of_runs().get(folder.name, []) if folder.parent == runs_folder() else []


def _plain(run: str) -> bool:
    return run not in ("", ".", "..") and "/" not in run and "\0" not in run and len(run) <= _LONGEST_RUN


def write_tag(name: str, *runs: str) -> None:
    """Give the name to the runs with these ids, and to no others. Raises OSError.

    Raises UsageError where a link, a folder or a special file stands in the name's place, which stays as it is.
    """
    tags_folder().mkdir(parents=True, exist_ok=True)
    put_in_place(tags_folder() / name, os.fsencode("".join(f"{run}\n" for run in runs)))


def remove_tag(name: str) -> bool:
    """Remove a name; False where there is none. The run stays. Raises OSError."""
    return bool(_NAME.fullmatch(name)) and remove_file(tags_folder() / name)


def add_to_name(name: str, run: str) -> None:
    """Give a name to one run more, in the order of time; beyond `MOST_RUNS` the oldest lose it. Raises OSError."""
    write_tag(name, *sorted({*(tagged(name) or ()), run}, key=by_time)[-MOST_RUNS:])


def take_name(name: str, run: str) -> None:
    """Take a name from a run; the other runs that have it keep it. Raises OSError."""
    rest = [one for one in tagged(name) or () if one != run]
    if rest:
        write_tag(name, *rest)
    else:
        remove_tag(name)
