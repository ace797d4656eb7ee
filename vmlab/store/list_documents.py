"""The lists of runs and of their names for other programs: ``vmlab.runs/1`` and ``vmlab.tags/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vmlab.model.moments import time_of_day
from vmlab.store.runs import RunSummary, run_names
from vmlab.store.tags import all_tags


def runs_document(
    runs: Sequence[RunSummary], sizes: Mapping[str, int], waiting: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """What `vmlab ls --json` prints of these runs; `sizes` are what each takes on the disk, in bytes by its id, and
    `waiting` are those that wait for their turn on this host.
    """
    return {
        "schema": "vmlab.runs/1",
        "runs": [_run_json(run, sizes[run.id]) for run in runs],
        "waiting": [dict(one) for one in waiting],
    }


def tags_document() -> dict[str, Any]:
    """What `vmlab tag --json` prints. Raises RefusedError where this user may not read the runs, and OSError."""
    here = set(run_names())
    entries = [
        {
            "name": name,
            "run": runs[0] if len(runs) == 1 else None,
            "runs": list(runs),
            "here": bool(runs) and here.issuperset(runs),
        }
        for name, runs in all_tags().items()
    ]
    return {"schema": "vmlab.tags/1", "tags": entries}


def _run_json(run: RunSummary, size: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": run.id,
        "scenario": run.scenario,
        "size": run.size,
        "outcome": run.outcome,
        "started": time_of_day(run.started),
        "ended": time_of_day(run.ended),
        "cells_done": run.cells_done,
        "cells_planned": run.cells_planned,
        "tags": list(run.tags),
        "control": run.control,
        "bytes": size,
        "cells_missed": run.cells_missed,
    }
    if run.runner_pid is not None:
        body["runner_pid"] = run.runner_pid
    if run.problem is not None:
        body["problem"] = run.problem
    return body
