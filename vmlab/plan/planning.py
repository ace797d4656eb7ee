"""From a scenario file and the command line's overrides to cells in order.

A scenario is valid that makes a plan of every size, as far as that can be known without a host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.model.grouping import grouped
from vmlab.model.names import HOST_PLACE, guest_key
from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.model.run import MOST_CELLS, WARM_UP, AxisValue
from vmlab.model.scenarios.axis import Axis, AxisPoint
from vmlab.model.scenarios.reference import claims_name, named_values
from vmlab.model.scenarios.repetition import Until
from vmlab.model.scenarios.scenario import SIZES, Scenario
from vmlab.model.scenarios.table import Table
from vmlab.plan.changes import apply_overrides, apply_size
from vmlab.plan.checking import Checked, check_given, not_applicable, read_cell, read_scenario, with_looks
from vmlab.plan.claim_needs import check_amounts, claims_without_answer
from vmlab.plan.control_cells import controlled
from vmlab.plan.estimate import cell_disk, cell_seconds, footprint, memory_needed
from vmlab.plan.host_lacks import (
    COPIED_BYTES,
    cores_of,
    of_lacked_programs,
    of_windows,
    on_this_host,
    without_lacking,
)
from vmlab.plan.hosting import neighbour_words
from vmlab.plan.image_layers import of_unknown_packages, packages_of
from vmlab.plan.ordering import looped, ordered
from vmlab.plan.pinning import pinned
from vmlab.plan.placing import PlacedAxis, Point, absent_points, place_axes, points
from vmlab.plan.scenario_file.loading import ScenarioFile, load
from vmlab.plan.scenario_file.problems import Problem
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.plan.terms import CellPlan, GuestPlan, HostFacts, Overrides, Plan, WorkloadPlan, repeats_within
from vmlab.system.kvm_device import removal_command, slow_start_words
from vmlab.workloads.registry import kinds
from vmlab.workloads.target_limits import Configured, targets_of

_LEAST_ATTEMPTS = 2
MOST_GUESTS = 250
"""In one cell; a larger number is most likely a typing error."""
_MEASURED = ("order",)
"""What a size that measures nothing by its figures may choose, and what repeats for claims leave as it is written."""


def make_plan(file: ScenarioFile, overrides: Overrides, host: HostFacts) -> Plan:
    """Every cell of a scenario, in order: repeats outermost, and in each of them as `ordered` says.

    The same file, overrides and host give the same plan. Raises ScenarioError, or UsageError that names an option.
    """
    size = overrides.size if overrides.size in file.scenario.sizes else "full"
    sized = apply_size(file.document, size) if overrides.looks is None else _at_claimed_places(file, size)
    document = apply_overrides(sized, overrides)
    scenario = read_scenario(document)
    if not scenario.axes:
        # Problems are reported where they are written, before an axis copies them to other places.
        read_cell(document)
        # A figure needs its configuration, so even a scenario that varies nothing shows its cache mode.
        document = document.assigned([("axes",)], _only_point(scenario), ())
        scenario = read_scenario(document)
    scenario = with_looks(document, scenario)
    placed = place_axes(document, scenario)
    axes = without_lacking(placed, scenario, host)
    if overrides.control:
        scenario, axes = controlled(document, scenario, axes, overrides.least_repeats)
    document.raise_problems(list(check_amounts(scenario)))
    once = _once(document, scenario, axes, host, overrides.looks is not None)
    absent = absent_points(axes)
    left_open = claims_without_answer(scenario, once, absent, host)
    if overrides.looks is not None:
        asked = [claim for claim in scenario.claims if claim.say not in left_open]
        once = [cell for cell in once if claims_name(asked, cell.axes)]
    cells = _repeated(document, scenario, once)
    if axes == placed and overrides.looks is None and not _is_narrowed(document, scenario):
        document.raise_problems(list(check_given(scenario, cells)))
    cells = cells if overrides.loop is None else looped(cells, overrides)
    if overrides.targets and not any(one.applicable for cell in cells for one in cell.targets):
        raise UsageError(f"--targets: {scenario.name} defines no targets for what would run")
    table = _table(scenario, axes)
    plan = Plan(
        scenario=scenario.model_copy(update={"table": table, "axes": _absent_here(scenario.axes, axes)}),
        size=size,
        seed=scenario.seed,
        cells=cells,
        seconds=_seconds(scenario, cells),
        memory_bytes=max((cell.memory_bytes for cell in cells), default=0),
        disk_bytes=max((cell.disk_bytes for cell in cells), default=0),
        guests=max((len(cell.guests) for cell in cells), default=0),
        table=table,
        notes=(),
        absent=absent,
        control=overrides.control,
        loop=overrides.loop,
        targets_decide=overrides.targets,
        again=_attempts(scenario, cells, overrides),
        again_failed=overrides.again_failed,
        waits=not overrides.no_wait,
        unanswerable=left_open,
    )
    return replace(plan, notes=tuple(_notes(plan, overrides, host)))


def _seconds(scenario: Scenario, cells: Sequence[CellPlan]) -> float:
    every = sum(cell.seconds for cell in cells)
    return every if scenario.time_limit is None else min(every, scenario.time_limit)


def _attempts(scenario: Scenario, cells: Sequence[CellPlan], overrides: Overrides) -> int:
    """How many times cells may be measured again; never in a loop, whose values do not count."""
    if overrides.loop is not None:
        return 0
    within = scenario.time_limit
    most = MOST_CELLS if within is None else repeats_within(within, [cell for cell in cells if cell.repeat == 1])
    counted = sum(WARM_UP < cell.repeat <= most for cell in cells)
    return max(_LEAST_ATTEMPTS, math.ceil(counted / 4)) if scenario.again is None else scenario.again


def _at_claimed_places(file: ScenarioFile, size: str) -> Document:
    """The scenario at a size, where an axis that lacks a place of a claim is that of the next larger size with all.

    Amounts are those of the size, and the order is the scenario's own. Raises ScenarioError.
    """
    sized = read_scenario(apply_size(file.document, size))
    larger = SIZES[SIZES.index(size) + 1 :] if size in SIZES else ()
    axes_of = {}
    for axis, found in sized.axes.items():
        wanted = named_values(file.scenario.claims, axis)
        if not wanted <= {*found.values}:
            axes_of[axis] = next((one for one in larger if wanted <= _values(file, one, axis)), SIZES[-2])
    return apply_size(file.document, size, axes_of, _MEASURED)


def _values(file: ScenarioFile, size: str, axis: str) -> set[object]:
    return {*read_scenario(apply_size(file.document, size)).axes[axis].values}


def _absent_here(said: dict[str, Axis], placed: list[PlacedAxis]) -> dict[str, Axis]:
    """The axes with the points that this host cannot have marked as absent, as they are stored with the results."""
    found = dict(said)
    for axis in placed:
        points = found[axis.name].points
        lacking = {
            str(one.value): AxisPoint(absent=one.absent)
            for one in axis.values
            if one.absent is not None and str(one.value) in points and points[str(one.value)].absent is None
        }
        if lacking:
            found[axis.name] = found[axis.name].model_copy(update={"points": {**points, **lacking}})
    return found


def _is_narrowed(document: Document, scenario: Scenario) -> bool:
    """Whether a size or an option has another choice of points than the text; others may give other metrics."""
    chosen = [name for name in scenario.axes if name not in ("tiles", "cache")]
    return any(document.is_changed(("axes", name, *key)) for name in chosen for key in ((), ("values",), ("points",)))


def _only_point(scenario: Scenario) -> dict[str, list[AxisValue]]:
    """Axes of one point that change nothing: the guests' cache mode, or one tile where they have no common one."""
    modes = {guest.cache for guest in scenario.guests.values() if not guest.on_host}
    return {"cache": [*modes]} if len(modes) == 1 else {"tiles": [1]}


def _once(
    document: Document, scenario: Scenario, axes: list[PlacedAxis], host: HostFacts, for_claims: bool
) -> list[CellPlan]:
    """One cell of every point of the axes, or of those that claims name."""
    host = replace(host, cpus=scenario.host.cpus or host.cpus)
    cold = scenario.provision == "cold"
    chosen = (one for one in points(document, axes) if not for_claims or claims_name(scenario.claims, one.values))
    return [_cell(point, host, cold=cold) for point in chosen]


def _repeated(document: Document, scenario: Scenario, once: Sequence[CellPlan]) -> tuple[CellPlan, ...]:
    """All cells, in order."""
    repeats = scenario.repeats if scenario.until is None else _most_repeats(scenario.until, once)
    count = len(once) * repeats
    if count > MOST_CELLS:
        message = f"{repeats} repeats of {len(once)} cells are {count}; at most {MOST_CELLS} are allowed"
        raise document.error(Problem(("repeats",) if scenario.until is None else ("until",), message))
    every = ordered(once, repeats, scenario)
    return tuple(replace(cell, index=index) for index, cell in enumerate(every, start=1))


_ROOM = 3
"""How many times as many repeats are planned as would fit into a run's time by the estimate."""


def _most_repeats(until: Until, once: Sequence[CellPlan]) -> int:
    if until.time is None or not once:
        return until.at_most
    fitting = repeats_within(until.time, once)
    return min(until.at_most, max(1, MOST_CELLS // len(once)), _ROOM * fitting)


def _cell(point: Point, host: HostFacts, *, cold: bool) -> CellPlan:
    checked = read_cell(point.document)
    point.document.raise_problems(
        [
            *on_this_host(checked.scenario, host.images),
            *of_lacked_programs(checked.scenario, host.lacked_programs),
            *of_windows(checked.scenario, checked.params, host.windows_images),
            *of_unknown_packages(checked.scenario, checked.params, host.lacking),
        ]
    )
    tiles = point.tiles
    every = tuple(guest for tile in range(1, tiles + 1) for guest in _guests(checked, tile, host))
    if len(every) > MOST_GUESTS:
        message = f"{tiles} tiles are {len(every)} guests; at most {MOST_GUESTS} are allowed"
        raise point.document.error(Problem(("axes", "tiles"), message))
    virtual = [guest for guest in every if not guest.resources.on_host]
    guests = pinned(virtual, cores_of(host, checked.scenario.host.cpus))
    bare = tuple(guest for guest in every if guest.resources.on_host)
    workloads = tuple(workload for tile in range(1, tiles + 1) for workload in _workloads(checked, tile, host))
    on_host = {guest.key for guest in bare}
    footprints = [footprint(workload, host.accelerator_guess, on_host) for workload in workloads]
    first = {one.name: Configured(one.kind, one.params.model_dump()) for one in workloads if one.tile == 1}
    cold = cold or any(not guest.resources.is_labs for guest in guests)
    return CellPlan(
        index=1,
        axes=point.values,
        host=checked.scenario.host,
        warm=checked.scenario.warm,
        targets=tuple(targets_of(checked.scenario.targets, first)),
        repeat=1,
        tiles=tiles,
        guests=guests,
        workloads=workloads,
        memory_bytes=sum(guest.resources.memory_bytes for guest in guests),
        disk_bytes=cell_disk(guests, workloads, host.accelerator_guess, on_host) + len(bare) * COPIED_BYTES,
        bare=bare,
        seconds=cell_seconds(guests, footprints, host, cold=cold or not guests),
    )


def _guests(checked: Checked, tile: int, host: HostFacts) -> Iterator[GuestPlan]:
    """The guests of one tile that a workload needs; others are not started."""
    scenario = checked.scenario
    needed = {place for entry in scenario.workloads.values() for place in entry.places}
    for name, guest in scenario.guests.items():
        if name in needed:
            packages = packages_of(name, scenario, checked.params)
            resources = guest.resources(host.cpus).model_copy(update={"packages": packages})
            yield GuestPlan(guest_key(tile, name), tile, name, tuple(guest.role), resources)


def _workloads(checked: Checked, tile: int, host: HostFacts) -> Iterator[WorkloadPlan]:
    for name, entry in checked.scenario.workloads.items():
        place = str(entry.source or entry.on)
        form = kinds()[entry.kind].asset
        yield WorkloadPlan(
            name=name,
            tile=tile,
            kind=entry.kind,
            params=checked.params[name],
            source=_place_key(tile, place),
            target=None if entry.target is None else _place_key(tile, entry.target),
            asset=None if form is None else (host.assets or {}).get(form.name),
        )


def _place_key(tile: int, place: str) -> str:
    return place if place == HOST_PLACE else guest_key(tile, place)


def _table(scenario: Scenario, axes: list[PlacedAxis]) -> Table:
    """The scenario's own layout; else workloads down the side and the last axis that varies across the top."""
    table = scenario.table
    if table is None:
        # An absent point has no figure for a comparison.
        present = {axis.name: [value.value for value in axis.values if value.absent is None] for axis in axes}
        varied = [name for name in present if len(present[name]) > 1] or [name for name in present if present[name]]
        across = (varied or list(present))[-1]
        return Table(columns=(across,), baseline=next(iter(present[across]), None))
    if isinstance(table.baseline, dict) or not table.is_simple:
        return table
    (columns,) = table.columns
    axis = scenario.axes.get(columns)
    heads: tuple[AxisValue, ...] = axis.values if axis else tuple(scenario.workloads)
    known = any(type(table.baseline) is type(head) and table.baseline == head for head in heads)
    return table if known else table.model_copy(update={"baseline": None})


def _notes(plan: Plan, overrides: Overrides, host: HostFacts) -> Iterator[str]:
    if plan.size != overrides.size and (plan.scenario.sizes or overrides.size != Overrides().size):
        yield f"the scenario has no size {overrides.size}: it runs as it is written, which is full"
    least = overrides.least_repeats
    if least is not None and plan.repeats_at_least < least:
        yield f"a control run of this scenario shows noise from {least} repeats on; fewer than that show none"
    needed = memory_needed(plan, host)
    if needed > host.memory_available_bytes and plan.scenario.allow.memory_overcommit:
        yield (
            f"memory is overcommitted on purpose: {format_bytes(needed)} for guests and QEMU, "
            f"{format_bytes(host.memory_available_bytes)} free"
        )
    yield from neighbour_words(host, plan.scenario.allow, own_weight=not plan.on_hosts_libvirt)
    if plan.on_hosts_libvirt and host.kvm_refuses:
        yield f"{slow_start_words()}; without the device it does not: {removal_command()}"
    if plan.scenario.allow.noise:
        yield "the host's other work is reported and invalidates no cell (allow.noise)"
    if plan.loop is not None:
        yield f"workloads start again for {format_seconds(plan.loop)} of each cell; values of a loop do not count"
    for key in () if plan.cold else _one_a_side(plan.cells):
        yield f"each value of {key} has one snapshot, so that a difference is one a side; --cold has a verdict"
    yield from not_applicable(plan.scenario, plan.cells)
    if plan.added_images:
        names = ", ".join(plan.added_images)
        yield f"guests of an added image ({names}) are not frozen: where there is one, all guests of the cell boot"
    if any("unsafe" in guest.resources.cache_modes for cell in plan.cells for guest in cell.guests):
        yield "cache mode unsafe is among the cells: what it writes need not survive a crash of the host"


_SEEN = ("cpu", "machine", "firmware", "packages", "libvirt_settings")
"""Keys of guests that change what a saved guest fits, and nothing that the scenario's other sides can have alike."""


def _one_a_side(cells: Sequence[CellPlan]) -> Iterator[str]:
    """Those that any guest has with several values."""
    for key in _SEEN:
        found = grouped((one.guest, getattr(one.resources, key)) for cell in cells for one in cell.guests)
        if any(len(set(values)) > 1 for values in found.values()):
            yield key.removesuffix("_settings")


_ANY_HOST = HostFacts(
    memory_available_bytes=2**60, memory_total_bytes=2**60, disk_free_bytes=2**60, cpus=1, accelerator_guess="tcg"
)


@dataclass(frozen=True, slots=True)
class Valid:
    """A scenario in order; `cells` counts them by size."""

    path: Path
    name: str
    cells: dict[str, int]


def validate_all(
    file: ScenarioFile,
    lacked_programs: Mapping[str, Sequence[str]] | None = None,
    windows_images: tuple[str, ...] | None = None,
) -> Valid:
    """Plan every size for a host that holds anything. Raises ScenarioError for the first that fails.

    `lacked_programs` and `windows_images` are what is known of added images, as in `HostFacts`.
    """
    host = replace(_ANY_HOST, lacked_programs=lacked_programs or {}, windows_images=windows_images)
    sizes = [size for size in reversed(SIZES) if size == "full" or size in file.scenario.sizes]
    cells = {size: len(make_plan(file, Overrides(size=size), host).cells) for size in sizes}
    return Valid(file.path, file.scenario.name, cells)


def load_valid(reference: str, variables: Mapping[str, str] | None = None) -> ScenarioFile:
    """As `loading.load`, with every size checked: a mistake that the chosen size covers is a mistake still."""
    file = load(reference, variables or {})
    validate_all(file)
    return file
