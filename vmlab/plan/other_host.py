"""Cells whose guests run on two hosts that a link joins: what such a scenario may not have, and what each host runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vmlab.model.errors import UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.scenario_file.problems import Problem
from vmlab.plan.terms import CellPlan, Half, Plan


def unlinkable(scenario: Scenario) -> Iterator[Problem]:
    """What guests on two hosts cannot have: the link between them carries frames of plain guests, and nothing else."""
    if all(guest.host == "here" for guest in scenario.guests.values()):
        return
    for name, guest in scenario.guests.items():
        for key in guest.beyond_bridge:
            yield Problem(("guests", name, key), "guests on two hosts are joined by a link, which is plain", True)
        if guest.on_host:
            yield Problem(("guests", name, "on"), "guests on two hosts are virtual machines")
        if guest.image != LAB_IMAGE:
            yield Problem(("guests", name, "image"), f"guests on two hosts start from the image {LAB_IMAGE}")
    for name, entry in scenario.workloads.items():
        for key, place in (("from", entry.source), ("to", entry.target), ("on", entry.on)):
            if place == HOST_PLACE:
                yield Problem(("workloads", name, key), "with guests on two hosts, workloads run in guests alone")


def demand_two_hosts(plan: Plan, hosts: int) -> None:
    """Raise UsageError unless every cell of a linked plan has guests on both of two hosts, in libvirts of its own."""
    if plan.on_hosts_libvirt:
        raise UsageError("guests on two hosts are joined by a link of the lab's own, which qemu:///system cannot have")
    if hosts != 2:
        raise UsageError(f"guests on two hosts need two of them, as in --hosts hv1,hv2; {hosts} are given")
    for cell in plan.cells:
        if len({guest.other for guest in cell.guests}) != 2:
            raise UsageError("every cell needs a guest on each of the two hosts that any workload uses")


def half_of(cell: CellPlan, half: Half) -> CellPlan:
    """The same cell with the guests of one host alone; the workloads are all those of the cell."""
    guests = tuple(guest for guest in cell.guests if guest.other is (half == "other"))
    memory = sum(guest.resources.memory_bytes for guest in guests)
    return replace(cell, guests=guests, memory_bytes=memory)


def half_plan(plan: Plan, half: Half) -> Plan:
    """What one host must have room for."""
    cells = tuple(half_of(cell, half) for cell in plan.cells)
    return replace(
        plan,
        cells=cells,
        memory_bytes=max((cell.memory_bytes for cell in cells), default=0),
        guests=max((len(cell.guests) for cell in cells), default=0),
    )
