"""From a scenario file and the command line's overrides to cells in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from vmlab.model.run import AxisValue, CacheMode
from vmlab.model.scenario import Guest, Scenario, Table
from vmlab.model.units import format_bytes
from vmlab.plan.axes import Point, place_axes, points
from vmlab.plan.changes import apply_overrides, apply_size
from vmlab.plan.checking import Checked, read_cell, read_scenario
from vmlab.plan.document import Document
from vmlab.plan.estimate import cell_disk, cell_seconds, footprint
from vmlab.plan.hosting import check_fit, memory_needed, read_host_facts
from vmlab.plan.loading import ScenarioFile
from vmlab.plan.problems import Problem
from vmlab.plan.terms import CellPlan, GuestPlan, HostFacts, Overrides, Plan, TableSpec, WorkloadPlan

__all__ = [
    "CellPlan",
    "GuestPlan",
    "HostFacts",
    "Overrides",
    "Plan",
    "TableSpec",
    "WorkloadPlan",
    "check_fit",
    "make_plan",
    "read_host_facts",
]

MOST_CELLS = 2000
MOST_GUESTS = 250
"""In one cell; a scenario that asks for more has surely slipped a digit."""
_DEFAULT_CACHE: CacheMode = "writeback"


def make_plan(file: ScenarioFile, overrides: Overrides, host: HostFacts) -> Plan:
    """Every cell of a scenario, in order: repeats outermost, then the axes as they are written.

    The same file, overrides and host give the same plan. Raises ScenarioError, or UsageError that names an option.
    """
    has_size = overrides.size == "full" or overrides.size in file.scenario.sizes
    size = overrides.size if has_size else "full"
    document = apply_overrides(apply_size(file.document, size), overrides)
    if not document.value.get("axes"):
        # A figure carries its configuration, so even a scenario that varies nothing says its cache mode.
        document = document.assigned([("axes",)], {"cache": [_DEFAULT_CACHE]}, ())
    scenario = read_scenario(document)
    cells = _cells(document, scenario, host, cold=overrides.cold)
    table = _table(scenario)
    layout = Table(columns=table.columns, rows=table.rows, baseline=table.baseline)
    plan = Plan(
        scenario=scenario.model_copy(update={"table": layout}),
        size=size,
        seed=scenario.seed,
        cells=cells,
        seconds=sum(cell.seconds for cell in cells),
        memory_bytes=max(cell.memory_bytes for cell in cells),
        disk_bytes=max(cell.disk_bytes for cell in cells),
        guests=max(len(cell.guests) for cell in cells),
        table=table,
        notes=(),
    )
    return replace(plan, notes=tuple(_notes(plan, overrides, host)))


def _cells(document: Document, scenario: Scenario, host: HostFacts, *, cold: bool) -> tuple[CellPlan, ...]:
    axes = place_axes(document, scenario)
    once = [_cell(point, host, cold=cold) for point in points(document, axes)]
    count = len(once) * scenario.repeats
    if count > MOST_CELLS:
        message = f"{scenario.repeats} repeats of {len(once)} cells are {count}; at most {MOST_CELLS} are allowed"
        raise document.error(Problem(("repeats",), message))
    every = [replace(cell, repeat=repeat) for repeat in range(1, scenario.repeats + 1) for cell in once]
    return tuple(replace(cell, index=index) for index, cell in enumerate(every, start=1))


def _cell(point: Point, host: HostFacts, *, cold: bool) -> CellPlan:
    checked = read_cell(point.document)
    tiles = cast(int, point.values.get("tiles", 1))
    guests = tuple(guest for tile in range(1, tiles + 1) for guest in _guests(checked.scenario, tile, host))
    if len(guests) > MOST_GUESTS:
        message = f"{tiles} tiles are {len(guests)} guests; at most {MOST_GUESTS} are allowed"
        raise point.document.error(Problem(("axes", "tiles"), message))
    workloads = tuple(workload for tile in range(1, tiles + 1) for workload in _workloads(checked, tile))
    footprints = [footprint(workload, host.accelerator_guess) for workload in workloads]
    return CellPlan(
        index=1,
        axes=point.values,
        repeat=1,
        cache=cast(CacheMode, point.values.get("cache", _DEFAULT_CACHE)),
        tiles=tiles,
        guests=guests,
        workloads=workloads,
        memory_bytes=sum(guest.memory_bytes for guest in guests),
        disk_bytes=cell_disk(len(guests), footprints),
        seconds=cell_seconds(len(guests), footprints, host, cold=cold),
    )


def _key(tile: int, guest: str) -> str:
    return f"t{tile}-{guest}"


def _guests(scenario: Scenario, tile: int, host: HostFacts) -> Iterator[GuestPlan]:
    """The guests of one tile that a workload needs; others are not started."""
    needed = {place for entry in scenario.workloads.values() for place in entry.places}
    for name, guest in scenario.guests.items():
        if name in needed:
            yield _guest(name, guest, tile, host)


def _guest(name: str, guest: Guest, tile: int, host: HostFacts) -> GuestPlan:
    return GuestPlan(
        key=_key(tile, name),
        tile=tile,
        guest=name,
        roles=tuple(guest.role),
        vcpus=host.cpus if guest.vcpus == "host" else guest.vcpus,
        memory_bytes=guest.memory,
        disk_bytes=guest.disk,
        queues=guest.queues,
        cpu_shares=guest.cpu_shares,
    )


def _workloads(checked: Checked, tile: int) -> Iterator[WorkloadPlan]:
    for name, entry in checked.scenario.workloads.items():
        place = str(entry.source or entry.on)
        yield WorkloadPlan(
            name=name,
            tile=tile,
            kind=entry.kind,
            params=checked.params[name],
            source=place if place == "host" else _key(tile, place),
            target=None if entry.target is None else _key(tile, entry.target),
        )


def _table(scenario: Scenario) -> TableSpec:
    """The scenario's own layout; else workloads down the side and the last axis that varies across the top."""
    axes = scenario.axes
    if scenario.table is not None:
        columns, rows, baseline = scenario.table.columns, scenario.table.rows, scenario.table.baseline
    else:
        varied = [name for name, axis in axes.items() if len(axis.values) > 1] or list(axes)
        columns, rows, baseline = varied[-1], "workloads", None
    heads: tuple[AxisValue, ...] = axes[columns].values if columns in axes else tuple(scenario.workloads)
    if not any(baseline is head or (type(baseline) is type(head) and baseline == head) for head in heads):
        baseline = heads[0] if scenario.table is None else None
    return TableSpec(columns, rows, baseline)


def _notes(plan: Plan, overrides: Overrides, host: HostFacts) -> Iterator[str]:
    if plan.size != overrides.size:
        yield f"the scenario has no size {overrides.size}: it runs as it is written, which is full"
    needed = memory_needed(plan)
    if needed > host.memory_available_bytes and plan.scenario.allow.memory_overcommit:
        yield (
            f"memory is overcommitted on purpose: {format_bytes(needed)} for guests, "
            f"{format_bytes(host.memory_available_bytes)} free"
        )
    if any(cell.cache == "unsafe" for cell in plan.cells):
        yield "cache mode unsafe is among the cells: what it writes need not survive a crash of the host"
