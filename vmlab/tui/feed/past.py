"""What is known of a run besides its events: how long workloads took before, and what its scenario says of them."""

from __future__ import annotations

import json
from pathlib import Path

from vmlab.model.errors import VmlabError
from vmlab.model.event import CellStarted, RunStarted, WorkloadEnded
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE, run_folders
from vmlab.tui.state.run_state import PastTimes
from vmlab.tui.state.views import Axes, Intent, Part

_MOST_RUNS = 40


def intent_of(reader: RunReader) -> Intent:
    """What the scenario that was kept in the store says of its workloads; {} where it was not kept."""
    try:
        workloads = json.loads(reader.documents().get("scenario", "{}")).get("workloads", {})
        return {
            name: Part(said["kind"], said.get("from") or said.get("on") or "", said.get("to"))
            for name, said in workloads.items()
        }
    except (ValueError, KeyError, AttributeError):
        return {}


def past_times(run: str, scenario: str, size: str) -> PastTimes:
    """The newest times of passed workloads of the same scenario and size, from runs older than `run`."""
    found: dict[tuple[str, int, Axes], float] = {}
    older = [folder for folder in run_folders() if folder.name < run]
    for folder in older[:_MOST_RUNS]:
        try:
            for key, seconds in _times(folder / STORE, scenario, size).items():
                found.setdefault(key, seconds)
        except VmlabError:
            continue  # A damaged store is told of in the list of runs.
    return found


def _times(store: Path, scenario: str, size: str) -> dict[tuple[str, int, Axes], float]:
    times: dict[tuple[str, int, Axes], float] = {}
    axes: Axes = ()
    with RunReader(store) as reader:
        for _, event in reader.events(kinds=(RunStarted, CellStarted, WorkloadEnded)):
            if isinstance(event, RunStarted) and (event.scenario, event.size) != (scenario, size):
                return {}
            if isinstance(event, CellStarted):
                axes = tuple(event.axes.items())
            elif isinstance(event, WorkloadEnded) and event.outcome == "passed":
                times[event.workload, event.tile, axes] = event.seconds
    return times
