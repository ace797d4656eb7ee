"""A plan as a page of text and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vmlab.analysis.comparison.repeats_needed import Detectable, GateNeeded, repeats_needed
from vmlab.analysis.figures.intent import table_document
from vmlab.analysis.statistics.sample_size import ALPHA
from vmlab.guests.image.layers import LayerState, layer_name
from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import jsonable, picked
from vmlab.model.ordered import EMULATED_DISK, LIMITED_HOST, size_words
from vmlab.model.quantities import about_seconds, format_bit_rate, format_bytes
from vmlab.model.scenarios.disk_profiles import DISK_PROFILES
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.model.scenarios.repetition import Until
from vmlab.model.visible import visible_line
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.control_cells import SIDE, SIDES
from vmlab.plan.estimate import cell_memory, disk_needed, freezing_seconds, memory_needed
from vmlab.plan.terms import CellPlan, GuestPlan, HostFacts, Plan, WorkloadPlan
from vmlab.report.words import order_words, plural
from vmlab.system.text_width import left, width_of

SCHEMA = "vmlab.plan/1"


_SHOWN_REPEATS = 2


def plan_document(
    plan: Plan,
    host: HostFacts,
    refusal: str | None,
    gate: Sequence[GateNeeded] = (),
    finds: Detectable | None = None,
    layers: Sequence[LayerState] = (),
) -> dict[str, Any]:
    """Everything that would run, in order; sizes in bytes, times in seconds. `refusal` is the reason why it would not
    start.
    """
    until = plan.scenario.until
    return {
        "schema": SCHEMA,
        "plan": {
            "scenario": plan.scenario.name,
            **picked(plan, "size", "seed"),
            "image": LAB_IMAGE,
            "layers": [
                {"packages": list(one.packages), "built": one.is_built, "bytes": one.bytes, "seconds": one.seconds}
                for one in layers
            ],
            "hypervisor": plan.scenario.hypervisor,
            "repeats": plan.scenario.repeats if until is None else until.at_least,
            "repeats_needed": jsonable(repeats_needed(plan.scenario)),
            "gate": [{"condition": one.condition.text, "repeats": one.repeats, "runs": one.runs} for one in gate],
            "detectable": jsonable(finds),
            "until": None if until is None else _until(until),
            "order": plan.scenario.order,
            "control": plan.control,
            **picked(plan.scenario, "warm_up", "warm"),
            "loop_seconds": plan.loop,
            "cells_at_least": len(plan.cells_at_least),
            "provision": plan.scenario.provision,
            **picked(plan, "guests", "memory_bytes"),
            "memory_needed_bytes": memory_needed(plan, host),
            "disk_bytes": plan.disk_bytes,
            "disk_needed_bytes": disk_needed(plan, host.layers),
            "estimated_seconds": round(plan.seconds, 1),
            "estimated_seconds_at_least": round(_least_seconds(plan), 1),
            "table": jsonable(table_document(plan.table.model_dump(mode="json"))),
            "notes": list(plan.notes),
            "fits": refusal is None,
            "refusal": refusal,
            "cells": [_cell(cell, host) for cell in plan.cells],
            "absent": [{"axes": {one.axis: one.value}, "reason": one.reason} for one in plan.absent],
            "unanswerable": [{"say": say, "because": list(why.because)} for say, why in plan.unanswerable.items()],
        },
        "host": {
            **picked(host, "cpus", "memory_available_bytes", "memory_total_bytes", "disk_free_bytes"),
            "accelerator_guess": host.accelerator_guess,
            "neighbours": [one._asdict() for one in host.neighbours],
        },
    }


def _until(until: Until) -> dict[str, Any]:
    looks = None if until.looks is None else list(until.looks)
    body = {"spread_percent": until.spread, "looks": looks, "at_least": until.at_least, "at_most": until.at_most}
    of_table = {"looks_at": "table"} if until.looks_at == "table" else {}
    return body | of_table | ({} if until.time is None else {"seconds": until.time})


def _cell(cell: CellPlan, host: HostFacts) -> dict[str, Any]:
    return {
        **picked(cell, "index", "axes", "repeat", "cache"),
        "tiles": cell.tiles,
        "settings": {**settings_of(cell), "host": cell.host.model_dump(exclude_none=True)},
        "memory_bytes": cell.memory_bytes,
        "memory_needed_bytes": cell_memory(cell, host),
        "disk_bytes": cell.disk_bytes,
        "estimated_seconds": round(cell.seconds, 1),
        "guests": [_guest(guest) for guest in (*cell.guests, *cell.bare)],
        "workloads": [_workload(workload) for workload in cell.workloads],
    }


def _guest(guest: GuestPlan) -> dict[str, Any]:
    return {
        **picked(guest, "key", "tile", "guest"),
        "roles": list(guest.roles),
        **guest.resources.model_dump(mode="json"),
    }


def _workload(workload: WorkloadPlan) -> dict[str, Any]:
    return {
        **picked(workload, "name", "tile", "kind", "source", "target"),
        "params": workload.params.model_dump(mode="json", by_alias=True),
    }


def plan_text(
    plan: Plan,
    host: HostFacts,
    gate: Sequence[GateNeeded] = (),
    finds: Detectable | None = None,
    layers: Sequence[LayerState] = (),
) -> str:
    """The plan for people: totals, the guests of the largest cell, the cells in order."""
    lines = [
        f"{plan.scenario.name} at size {plan.size}, seed {plan.seed}",
        *([f"  {plan.scenario.summary}"] if plan.scenario.summary else []),
        "",
        *_cells(plan, host, finds, layers),
        *(["", "what the gate takes at least"] if gate else []),
        *(f"  {one.condition.text}: {_gate(one)}" for one in gate),
        *(f"    -  {one}" for one in plan.absent),
        *_unanswerable(plan),
        *(f"note: {note}" for note in plan.notes),
    ]
    return "\n".join(map(visible_line, lines))


def _unanswerable(plan: Plan) -> Iterator[str]:
    """The claims that have no answer on this host at this size, and why."""
    if not plan.unanswerable:
        return
    claims = len(plan.scenario.claims)
    yield from ("", f"not answerable here: {len(plan.unanswerable)} of {plural(claims, 'claim')}")
    for because in dict.fromkeys(why.because for why in plan.unanswerable.values()):
        yield f"  {'; '.join(because)}"
        yield from (f"    {say}" for say, why in plan.unanswerable.items() if why.because == because)


def _gate(needed: GateNeeded) -> str:
    """How many repeats, and how many runs instead, a condition takes."""
    inside = f"{needed.repeats} repeats in one run (--repeats {needed.repeats}), or " if needed.repeats else ""
    return f"{inside}{needed.runs} runs{'' if needed.condition.level else ' a side'}"


def _cells(plan: Plan, host: HostFacts, finds: Detectable | None, layers: Sequence[LayerState]) -> list[str]:
    """Totals, the largest cell, and every cell; of absent points alone there is none of these."""
    if not plan.cells:
        return ["no cell to run"]
    largest = max(plan.cells, key=lambda cell: (len(cell.guests), cell.memory_bytes))
    written = disk_needed(plan, host.layers)
    return [
        f"cells    {_count(plan)}, one after another, {order_words(plan.scenario.order, plan.seed)}",
        *_control(plan),
        *_repeats(plan),
        *([_finds(finds)] if finds else []),
        f"guests   {plan.guests} at most, on {host.cpus} CPUs{_booted(plan)}",
        _memory(plan, host),
        f"disk     {format_bytes(written)} written at most, {format_bytes(host.disk_free_bytes)} free",
        *_ordered(plan),
        *map(_layer, layers),
        f"time     {_time(plan)}, an estimate{_accelerator(plan, host)}{_once(plan, host)}",
        "",
        *_largest(largest),
        "cells in order",
        *_in_order(plan),
    ]


def _layer(layer: LayerState) -> str:
    """What is known of a layer, by measured figures alone."""
    size = "" if layer.bytes is None else format_bytes(layer.bytes)
    if layer.is_built:
        state = f"{size}, built"
    else:
        time = "" if layer.seconds is None else f" in {about_seconds(layer.seconds)}, as the last one"
        state = f"{f'{size} or more' if size else ''}, built first{time}".removeprefix(", ")
    return f"image    {layer_name(layer.packages)}: {state}"


def _in_order(plan: Plan) -> list[str]:
    """A line for each cell; of a run that ends with its time, those of the first repeats."""
    if plan.scenario.time_limit is None:
        return [_line(cell) for cell in plan.cells]
    shown = [cell for cell in plan.cells if cell.repeat <= _SHOWN_REPEATS]
    return [*map(_line, shown), *(["  and so on, for as long as repeats fit"] if len(shown) < len(plan.cells) else [])]


def _ordered(plan: Plan) -> list[str]:
    """What stands in for a part of the host."""
    disk, size = plan.scenario.host.disk, plan.scenario.host.size
    lines = []
    if disk is not None:
        what = f"{EMULATED_DISK} {disk}: {DISK_PROFILES[disk].summary}"
        lines.append(f"         {what}; image and snapshots are copied to it")
    if size is not None:
        lines.append(f"host     {LIMITED_HOST} of {size_words(*size)}, for all guests together")
    return lines


def _count(plan: Plan) -> str:
    until = plan.scenario.until
    if until is None:
        return str(len(plan.cells))
    if until.looks is not None:
        of_table = until.looks_at == "table"
        if len(until.looks) == 1:
            what = "the table is" if of_table else "claims are"
            return f"{len(plan.cells)} ({what} analysed once, after {until.looks[0]} repeats)"
        what = "every difference of the table is proven" if of_table else "every claim has an answer"
        level = f", each time at {100 * ALPHA / len(until.looks):.4g} %" if of_table else ""
        wanted = f"repeats go on until {what}, analysed after {', '.join(map(str, until.looks))}{level}"
    else:
        wanted = _until_words(plan, until)
    return f"{len(plan.cells_at_least)} to {len(plan.cells)} ({wanted})"


def _until_words(plan: Plan, until: Until) -> str:
    """Up to which spread, or for how long, repeats go on."""
    known = "" if until.spread is None else f"until every metric is known to ± {until.spread:g} %"
    if until.time is None:
        return f"repeats go on {known}, {until.at_least} to {until.at_most}"
    limit = f"for {about_seconds(until.time)} at most: about {plan.repeats_expected} by the estimate"
    return f"repeats go on {known}, {limit}" if known else f"repeats go on {limit}"


def _control(plan: Plan) -> list[str]:
    """What a control run measures twice."""
    if not (plan.control and plan.cells):
        return []
    axes = {name: value for name, value in plan.cells[0].axes.items() if name != SIDE}
    sides, blocks = " and ".join(SIDES), plural(plan.repeats_at_least, "block")
    return [f"control  {axes_words(axes)} as both sides, {sides}, in {blocks}"]


def _finds(finds: Detectable) -> str:
    """How small a difference the repeats are likely to prove, with the host's speed and without."""
    best = finds.at_best_speed
    steady = "" if best is None else f", {best:.2g} % with the host's speed taken out"
    words = f"{finds.repeats} repeats are likely to prove a difference of {finds.percent:.2g} % as measured{steady}"
    return f"         {words}, by the spread in run {finds.run}"


def _repeats(plan: Plan) -> list[str]:
    """What so many repeats can prove, where cells are compared with one another."""
    places = {axes_words(cell.axes) for cell in plan.cells}
    if len(places) < 2:
        return []
    least, most, needed = plan.repeats_at_least, plan.cells[-1].repeat, repeats_needed(plan.scenario)
    if plan.scenario.time_limit is not None:
        least = most = plan.repeats_expected
    runs = f"{least}" if least == most else f"{least} to {most}"
    of = f" in one of {needed.figures} metrics" if needed.figures > 1 else ""
    words = f"to prove a difference{of} takes {needed.difference} at least"
    every = zip(plan.scenario.claims, needed.claims, strict=True)
    claims = [repeats for claim, repeats in every if claim.say not in plan.unanswerable]
    if claims:
        ends = dict.fromkeys((min(claims), max(claims)))
        words += f", to answer its claims {' to '.join(map(str, ends))}"
    enough = max(needed.difference, *claims, 0)
    option = f"--repeats {enough}" if plan.scenario.time_limit is None else "a longer --for"
    option = option if plan.scenario.table_looks == 1 else f"a first analysis after {enough}"
    asked = f" ({option})" if least < enough else ""
    lines = [f"repeats  {runs}; {words}{asked}"]
    if _guests_differ(plan):
        lines.append("         where each side's guests begin from a snapshot of its own, it takes --cold as well")
    return lines


def _guests_differ(plan: Plan) -> bool:
    """Whether a guest is not the same machine everywhere, and may be frozen in more than one way."""
    known = grouped((guest.key, guest.machine) for cell in plan.cells for guest in cell.guests)
    return not plan.cold and any(len(set(ways)) > 1 for ways in known.values())


def _time(plan: Plan) -> str:
    return " to ".join(dict.fromkeys((about_seconds(_least_seconds(plan)), about_seconds(plan.seconds))))


def _least_seconds(plan: Plan) -> float:
    return sum(cell.seconds for cell in plan.cells_at_least)


def _memory(plan: Plan, host: HostFacts) -> str:
    needed, free = format_bytes(memory_needed(plan, host)), format_bytes(host.memory_available_bytes)
    guests = format_bytes(plan.memory_bytes)
    return f"memory   {needed} at most, {guests} of it for guests and the rest for QEMU, {free} free"


def _booted(plan: Plan) -> str:
    return ", all of them booted (cold)" if plan.guests and not _freezes(plan) else ""


def _freezes(plan: Plan) -> bool:
    """Whether any cell starts from snapshots."""
    return not plan.cold and any(cell.guests and not cell.added_images for cell in plan.cells)


def _once(plan: Plan, host: HostFacts) -> str:
    if not _freezes(plan):
        return ""
    first = freezing_seconds((one for cell in plan.cells for one in cell.workloads), host.accelerator_guess)
    return f"; {about_seconds(first)} more when guests are frozen first"


def _accelerator(plan: Plan, host: HostFacts) -> str:
    """Empty where no cell has guests."""
    words = {"tcg": " for emulation (TCG)", "kvm": " for KVM, where it works"}[host.accelerator_guess]
    return words if any(cell.guests for cell in plan.cells) else ""


def _largest(cell: CellPlan) -> list[str]:
    if not cell.guests:
        return []
    first = [guest for guest in cell.guests if guest.tile == 1]
    width = max(width_of(guest.guest) for guest in first)
    return [
        f"guests of each tile, at most {plural(cell.tiles, 'tile')}",
        *(_guest_line(guest, width, alike=cell.cache is not None) for guest in first),
        "",
    ]


_WITH_WORDS = {"disk", "image", "cpu_shares", "emulator_shares", "cpu_quota", "network", "bandwidth", "queues", "cache"}
"""Keys of guests that have words of their own in a plan, or none: a disk takes only the room that is written."""


def _guest_line(guest: GuestPlan, width: int, *, alike: bool) -> str:
    """`alike` where all guests have one cache mode, which is then shown in the cells' lines."""
    given = guest.resources
    words = [f"{given.vcpus} vCPU", format_bytes(given.memory_bytes), ", ".join(guest.roles) or "no role"]
    if not given.is_labs:
        words.append(f"image {given.image}")
    if given.cpu_shares is not None:
        words.append(f"CPU shares {given.cpu_shares}")
    if given.emulator_shares is not None:
        words.append(f"emulator shares {given.emulator_shares}")
    if given.cpu_quota is not None:
        words.append(f"CPU quota {given.cpu_quota:g} %")
    if given.network != "plain":
        words.append("elastic address" if given.network == "nat" else f"behind {given.network}")
    if given.bandwidth is not None:
        words.append(f"network {format_bit_rate(given.bandwidth)}")
    if given.queues != 1:
        words.append(f"{given.queues} queues")
    if not alike:
        words.append(f"cache {given.cache}")
    words += [f"{key} {value}" for key, value in given.given().items() if key not in _WITH_WORDS]
    return f"  {left(guest.guest, width)}  {'  '.join(words)}"


def _line(cell: CellPlan) -> str:
    guests, repeat = plural(len(cell.guests), "guest"), repeat_words(cell.repeat)
    guests += f", {len(cell.bare)} more on the host itself" if cell.bare else ""
    return f"  {cell.index:>3}  {repeat}  {axes_words(cell.axes)}  {guests}  {about_seconds(cell.seconds)}"
