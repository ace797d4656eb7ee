"""Changes to the plan of a run under way: the cells to come, and the plan of a loop that gets another tile."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from vmlab.hypervisor.isolation.namespace import host_proc
from vmlab.lab.process.prepared import host_of, plan_of
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.run_request import RunRequest
from vmlab.model.axes import axes_words
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.run import CACHE_MODES
from vmlab.model.units import format_bytes
from vmlab.plan.left_to_others import left_free_bytes
from vmlab.plan.memory_needed import guest_memory
from vmlab.plan.planning import check_fit, make_plan, read_host_facts
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.terms import CellPlan, Overrides
from vmlab.telemetry.source import Roots


def replanned(folder: RunFolder, planned: Sequence[CellPlan], change: dict[str, Any]) -> list[CellPlan | None]:
    """Each of the `planned` cells with `change` (``cache``: a mode, ``tiles``: a count) applied to it.

    They keep their numbers. None stands for a cell that has no such point. Raises UsageError for a change that is not
    possible, and RefusedError for one that does not fit on the host.
    """
    request = RunRequest.of(folder)
    if "cache" in change:
        _check_one_mode(planned)
    host = host_of(folder)
    file = load(str(folder.scenario))
    plan = make_plan(file, _changed(request.overrides, change), host)
    check_fit(plan, host)
    # An axis that only one of the plans has is the changed one, or replaces axes that the scenario does not have.
    kept = plan.scenario.axes.keys() & make_plan(file, request.overrides, host).scenario.axes.keys() - change.keys()
    by_place = {_place(cell, kept): cell for cell in plan.cells}
    found = [by_place.get(_place(cell, kept)) for cell in planned]
    return [cell and replace(cell, index=before.index) for before, cell in zip(planned, found, strict=True)]


def widened(folder: RunFolder, cell: CellPlan, tiles: int) -> CellPlan:
    """The running cell with more tiles, which must fit beside what runs.

    Raises UsageError where it cannot have so many, and RefusedError where the host's memory or disk cannot hold them:
    all of them by what the host had before the run, and the new ones by what it has now.
    """
    (plan,) = replanned(folder, [cell], {"tiles": tiles})
    if plan is None:
        raise UsageError(f"the scenario has no such cell with {tiles} tiles")
    new = [guest for guest in plan.guests if guest.tile > cell.tiles]
    needed = sum(guest_memory(guest.resources, host_of(folder)) for guest in new)
    now = read_host_facts(folder.disks, Roots(host_proc=host_proc()))
    available = now.memory_available_bytes - left_free_bytes(now, plan_of(folder).scenario.allow)
    if needed > available:
        room = format_bytes(max(0, available))
        raise RefusedError(f"tile {tiles} needs {format_bytes(needed)} of memory and the host has {room} free now")
    if (written := plan.disk_bytes - cell.disk_bytes) > now.disk_free_bytes:
        room = format_bytes(now.disk_free_bytes)
        raise RefusedError(f"tile {tiles} will write {format_bytes(written)} and the disk has {room} free now")
    return plan


def _changed(overrides: Overrides, change: dict[str, Any]) -> Overrides:
    for name, value in change.items():
        match name, value:
            case "cache", mode if mode in CACHE_MODES:
                overrides = replace(overrides, cache=(mode,))
            case "tiles", int(count) if count >= 1 and not isinstance(count, bool):
                overrides = replace(overrides, tiles=(count,))
            case _:
                raise UsageError(f"the cells to come cannot have {axes_words({name: value})}")
    return overrides


def _check_one_mode(coming: Sequence[CellPlan]) -> None:
    """Guests with different modes in the scenario must not get the same mode by one key press."""
    for cell in coming:
        modes = {guest.guest: guest.resources.cache for guest in cell.guests}
        if len(set(modes.values())) > 1:
            told = ", ".join(f"{guest} {mode}" for guest, mode in modes.items())
            raise UsageError(f"the guests of the cells to come differ in cache mode ({told}) and keep theirs")


def _place(cell: CellPlan, kept: Collection[str]) -> tuple[object, ...]:
    """The cell's values of the axes that are `kept`."""
    values = sorted((name, str(value)) for name, value in cell.axes.items() if name in kept)
    return (cell.repeat, *values)
