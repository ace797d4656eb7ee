"""A plan as a page of text and as a JSON document."""

from __future__ import annotations

from typing import Any

from vmlab.model.units import format_bytes, format_seconds
from vmlab.plan.terms import CellPlan, GuestPlan, HostFacts, Plan, WorkloadPlan

SCHEMA = "vmlab.plan/1"


def plan_document(plan: Plan, host: HostFacts, refusal: str | None) -> dict[str, Any]:
    """Everything that would run, in order; sizes in bytes, times in seconds. `refusal` tells why it would not start."""
    return {
        "schema": SCHEMA,
        "plan": {
            "scenario": plan.scenario.name,
            "size": plan.size,
            "seed": plan.seed,
            "image": plan.scenario.image,
            "hypervisor": plan.scenario.hypervisor,
            "repeats": plan.scenario.repeats,
            "guests": plan.guests,
            "memory_bytes": plan.memory_bytes,
            "disk_bytes": plan.disk_bytes,
            "estimated_seconds": round(plan.seconds, 1),
            "table": {"columns": plan.table.columns, "rows": plan.table.rows, "baseline": plan.table.baseline},
            "notes": list(plan.notes),
            "fits": refusal is None,
            "refusal": refusal,
            "cells": [_cell(cell) for cell in plan.cells],
        },
        "host": {
            "cpus": host.cpus,
            "memory_available_bytes": host.memory_available_bytes,
            "memory_total_bytes": host.memory_total_bytes,
            "disk_free_bytes": host.disk_free_bytes,
            "accelerator_guess": host.accelerator_guess,
        },
    }


def _cell(cell: CellPlan) -> dict[str, Any]:
    return {
        "index": cell.index,
        "axes": cell.axes,
        "repeat": cell.repeat,
        "cache": cell.cache,
        "tiles": cell.tiles,
        "memory_bytes": cell.memory_bytes,
        "disk_bytes": cell.disk_bytes,
        "estimated_seconds": round(cell.seconds, 1),
        "guests": [_guest(guest) for guest in cell.guests],
        "workloads": [_workload(workload) for workload in cell.workloads],
    }


def _guest(guest: GuestPlan) -> dict[str, Any]:
    return {
        "key": guest.key,
        "tile": guest.tile,
        "guest": guest.guest,
        "roles": list(guest.roles),
        "vcpus": guest.vcpus,
        "memory_bytes": guest.memory_bytes,
        "disk_bytes": guest.disk_bytes,
        "queues": guest.queues,
        "cpu_shares": guest.cpu_shares,
    }


def _workload(workload: WorkloadPlan) -> dict[str, Any]:
    return {
        "name": workload.name,
        "tile": workload.tile,
        "kind": workload.kind,
        "source": workload.source,
        "target": workload.target,
        "params": workload.params.model_dump(mode="json", by_alias=True),
    }


def plan_text(plan: Plan, host: HostFacts, *, cold: bool) -> str:
    """The plan for people: totals, what the largest cell holds, the cells in order."""
    largest = max(plan.cells, key=lambda cell: (len(cell.guests), cell.memory_bytes))
    lines = [
        f"{plan.scenario.name} at size {plan.size}, seed {plan.seed}",
        *([f"  {plan.scenario.summary}"] if plan.scenario.summary else []),
        "",
        f"cells    {len(plan.cells)}, one after another",
        f"guests   {plan.guests} at most, on {host.cpus} CPUs",
        f"memory   {format_bytes(plan.memory_bytes)} at most, {format_bytes(host.memory_available_bytes)} free",
        f"disk     {format_bytes(plan.disk_bytes)} written at most, {format_bytes(host.disk_free_bytes)} free",
        f"time     about {_about(plan.seconds)}, an estimate for {_accelerator(host)}{_once(plan, cold=cold)}",
        "",
        *_largest(largest),
        "cells in order",
        *(_line(cell) for cell in plan.cells),
        *(f"note: {note}" for note in plan.notes),
    ]
    return "\n".join(lines)


def _once(plan: Plan, *, cold: bool) -> str:
    return "" if cold or not plan.guests else "; about a minute more when guests are frozen first"


def _accelerator(host: HostFacts) -> str:
    return {"tcg": "emulation (TCG)", "kvm": "KVM, where it works"}[host.accelerator_guess]


def _about(seconds: float) -> str:
    """Estimates are no finer than minutes, from a minute on."""
    return format_seconds(60 * round(seconds / 60)).replace(" 00 s", "") if seconds >= 90 else format_seconds(seconds)


def _largest(cell: CellPlan) -> list[str]:
    if not cell.guests:
        return []
    first = [guest for guest in cell.guests if guest.tile == 1]
    width = max(len(guest.guest) for guest in first)
    return [
        f"guests of a tile, of which there are {cell.tiles} at most",
        *(_guest_line(guest, width) for guest in first),
        "",
    ]


def _guest_line(guest: GuestPlan, width: int) -> str:
    words = [f"{guest.vcpus} vCPU", format_bytes(guest.memory_bytes), ", ".join(guest.roles) or "no role"]
    if guest.cpu_shares is not None:
        words.append(f"CPU shares {guest.cpu_shares}")
    if guest.queues != 1:
        words.append(f"{guest.queues} queues")
    return f"  {guest.guest:<{width}}  {'  '.join(words)}"


def _line(cell: CellPlan) -> str:
    axes = "  ".join(f"{name}={value}" for name, value in cell.axes.items())
    guests = "1 guest" if len(cell.guests) == 1 else f"{len(cell.guests)} guests"
    return f"  {cell.index:>3}  repeat {cell.repeat}  {axes}  {guests}  about {_about(cell.seconds)}"
