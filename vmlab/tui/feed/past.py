"""Facts on a run besides its events: how long workloads took in earlier runs, and their entries in the scenario."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.cell_event import CellStarted, WorkloadEnded
from vmlab.model.checked import Keys, check_of
from vmlab.model.errors import VmlabError
from vmlab.model.event import RunStarted
from vmlab.model.sample import Sample, SampleNames
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE, by_time, run_folders
from vmlab.store.samples import series
from vmlab.tui.state.run_state import PastTimes, passed_times
from vmlab.tui.state.views import Axes, Intent, Part

_MOST_RUNS = 40
_WORD = str | None
_are_workloads = check_of(
    dict[str, Annotated[dict[str, Any], Keys({"kind": str, "from": _WORD, "to": _WORD, "on": _WORD})]]
)


def intent_of(reader: RunReader) -> Intent:
    """What the scenario that was kept in the store says of its workloads; {} where it was not kept."""
    try:
        workloads = json.loads(reader.documents().get("scenario", "{}")).get("workloads", {})
    except (ValueError, RecursionError, AttributeError):
        return {}
    if not _are_workloads(workloads):
        return {}
    return {
        name: Part(entry.get("from") or entry.get("on") or "", entry.get("to"))
        for name, entry in workloads.items()
        if "kind" in entry
    }


def planned_axes(folder: Path) -> tuple[Axes, ...]:
    """The axis values of all cells that the run in `folder` was started with; () where they are not known."""
    from vmlab.lab.process.prepared import plan_of
    from vmlab.lab.process.run_folder import RunFolder

    try:
        plan = plan_of(RunFolder(folder.name, folder))
    except (VmlabError, OSError, ValueError, TypeError, KeyError):
        return ()
    return tuple(tuple(cell.axes.items()) for cell in plan.cells)


def past_times(run: str, scenario: str, size: str) -> PastTimes:
    """The newest times of passed workloads of the same scenario and size, from runs older than `run`."""
    found: dict[tuple[str, int, Axes], float] = {}
    try:
        older = [folder for folder in run_folders() if by_time(folder.name) < by_time(run)]
    except VmlabError:
        return {}  # The list of runs shows the error.
    for folder in older[:_MOST_RUNS]:
        try:
            found = _times(folder / STORE, scenario, size) | found
        except VmlabError:
            continue  # The list of runs names a damaged store.
    return found


def _times(store: Path, scenario: str, size: str) -> dict[tuple[str, int, Axes], float]:
    with RunReader(store) as reader:
        started = next((event for _, event in reader.events(kinds=(RunStarted,))), None)
        if not isinstance(started, RunStarted) or (started.scenario, started.size) != (scenario, size):
            return {}
        timeline = RunTimeline.read(reader, (CellStarted, WorkloadEnded))
    times: dict[tuple[str, int, Axes], float] = {}
    for cell in timeline.cells.values():
        times |= passed_times(cell)
    return times


_NAMES = ("cpu_idle_percent", "cpu_iowait_percent", "disk_util_percent")
"""What the gauges of a host are made of."""
_LAYOUT = SampleNames.of(_NAMES)


def figures(reader: RunReader, since: float = float("-inf")) -> list[Sample]:
    """What the gauges of one host need, of each tick from `since` on (monotonic seconds): samples of these values."""
    known = {name: series(reader, name, since) for name in _NAMES}
    by_name = {name: dict(zip(one.mono, one.values, strict=True)) for name, one in known.items()}
    moments = sorted({mono for one in known.values() for mono in one.mono})
    nan = float("nan")
    return [Sample(0.0, mono, 1.0, 0.0, _LAYOUT, [by_name[name].get(mono, nan) for name in _NAMES]) for mono in moments]
