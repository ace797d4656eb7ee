"""What users do with runs: they give them names, none of which may be a scenario's, and notes, and remove them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vmlab.analysis.comparison.nights import NightGate
from vmlab.lab.process.dead_runs import remove_run
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import UsageError
from vmlab.model.places import runs_folder
from vmlab.model.run import RUNNING
from vmlab.plan.scenario_file.loading import shipped_names
from vmlab.store.life import checked_note, note_of, write_note
from vmlab.store.run_list import list_runs
from vmlab.store.runs import (
    add_to_name,
    demand_unlike_ids,
    name_runs,
    named_sides,
    names_of_runs,
    resolve_run,
    tagged,
    take_name,
)


def demand_free(name: str) -> None:
    """Raises UsageError, with one line, for a name that no run can have."""
    if name in shipped_names():
        raise UsageError(f"{name!r} is the name of a scenario")
    demand_unlike_ids(name)


def give_name(run: str, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give `name` to the run or the runs of a reference; their ids, and those of the runs that had the name before.

    Raises UsageError for what names no whole run, and for a name that it cannot have.
    """
    (side,) = named_sides([run])
    if any(one.cell is not None for one in side.runs):
        raise UsageError(f"{run[:64]!r} is a cell; a name is of whole runs")
    return name_runs([one.store for one in side.runs], name)


def keep_night(found: NightGate, store: Path, *, accept: bool = False) -> NightGate:
    """Give tonight the name of the nights, unless it fails or has no figure; with `accept` in any case.

    It keeps the name where it had it; a run that is not in the folder of runs gets none. Raises OSError.
    """
    folder = store.absolute().parent
    here = folder.parent.resolve() == runs_folder().resolve()
    kept = here and folder.name in (tagged(found.baseline) or ())
    good = any(one.value is not None for one in found.figures) and not found.fails
    if here and not kept and (good or accept):
        add_to_name(found.baseline, folder.name)
        kept = True
    return replace(found, kept=found.baseline if kept else "")


def give_note(run: str, text: str) -> tuple[str, str, str]:
    """Note `text` of a run, nothing where it is empty; the run's id, its note, and the one that it had before.

    Raises UsageError for what names no run in the folder of runs, and for a note that cannot be kept; OSError.
    """
    note, folder = checked_note(text), resolve_run(run).absolute().parent
    if folder.parent.resolve() != runs_folder().resolve():
        raise UsageError(f"{folder}: only runs in {runs_folder()} can have a note")
    before = note_of(folder)
    write_note(folder, note)
    return folder.name, note, before


def removable(references: Sequence[str], *, named_too: bool) -> list[str]:
    """The ids of the runs that are named, once each.

    Raises UsageError for a cell, for a store outside the folder of runs, and unless `named_too` for a run that has a
    name.
    """
    found: dict[str, None] = {}
    for one in (one for side in named_sides(references) for one in side.runs):
        if one.cell is not None:
            raise UsageError(f"{one.name[:64]!r} is a cell; whole runs are removed")
        if one.store.parent.parent != runs_folder():
            raise UsageError(f"{one.store} is no run in {runs_folder()}; only these are removed")
        found[one.store.parent.name] = None
    names = names_of_runs()
    kept = [run for run in found if run in names and not named_too]
    if kept:
        raise UsageError(f"run {kept[0]} has the name {names[kept[0]][0]}; --tagged removes it, too")
    return list(found)


def older_runs(seconds: float, *, named_too: bool) -> list[str]:
    """The ids of runs that are over and began longer ago, those with a name only if `named_too`.

    Those whose beginning is not known stay.
    """
    now, names = time.time(), names_of_runs()
    over = (run for run in list_runs() if run.outcome != RUNNING and run.runner_pid is None)
    old = (run.id for run in over if run.started is not None and now - run.started > seconds)
    return [run for run in old if named_too or run not in names]


def remove_for_good(run: str) -> None:
    """Remove a run that is over, with its record and its names. Raises as `dead_runs.remove_run`."""
    names = names_of_runs().get(run, ())
    remove_run(RunFolder(run, runs_folder() / run))
    for name in names:
        take_name(name, run)
