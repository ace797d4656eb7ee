"""Changes to the cells to come, asked for while a run is under way. The running cell stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from vmlab.lab.folder import RunFolder, RunRequest
from vmlab.lab.prepared import host_of
from vmlab.model.errors import UsageError
from vmlab.model.run import CacheMode
from vmlab.plan.loading import load
from vmlab.plan.planning import check_fit, make_plan
from vmlab.plan.terms import CellPlan, Overrides


def replanned(folder: RunFolder, coming: Sequence[CellPlan], change: dict[str, Any]) -> list[CellPlan]:
    """The cells to come with `change` (``cache``: a mode, or ``tiles``: a count) put into all of them.

    Cells that thereby become the same are run once; the order stays. Raises UsageError for a change that makes no
    sense, and RefusedError for one that does not fit on the host.
    """
    if not coming:
        raise UsageError("no cell is to come; the running one stays as it is")
    request = RunRequest.from_json(folder.request.read_text())
    host = host_of(folder)
    plan = make_plan(load(str(folder.scenario)), _changed(request.overrides, change), host)
    check_fit(plan, host)
    by_place = {_place(cell, change): cell for cell in plan.cells}
    wanted = dict.fromkeys(_place(cell, change) for cell in coming)
    first = coming[0].index
    found = [by_place[place] for place in wanted if place in by_place]
    if not found:
        raise UsageError("the cells to come have no such point")
    return [replace(cell, index=first + n) for n, cell in enumerate(found)]


def _changed(overrides: Overrides, change: dict[str, Any]) -> Overrides:
    match change:
        case {"cache": mode} if mode in get_args(CacheMode):
            return replace(overrides, cache=(mode,))
        case {"tiles": int(count)} if count >= 1:
            return replace(overrides, tiles=(count,))
    raise UsageError(f"cannot change the cells to come by {change}; give a cache mode or a number of tiles")


def _place(cell: CellPlan, change: dict[str, Any]) -> tuple[object, ...]:
    """Where a cell stands, but for the axis that is changed."""
    kept = sorted((name, str(value)) for name, value in cell.axes.items() if name not in change)
    return (cell.repeat, *kept)
