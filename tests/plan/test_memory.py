"""What guests need on the host, with QEMU's own, and where a plan stops to fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.errors import RefusedError
from vmlab.model.run import Accelerator
from vmlab.model.scenarios.guest import GuestResources
from vmlab.plan.estimate import guest_memory, memory_needed
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.terms import HostFacts, Overrides, Plan

MIB, GIB = 2**20, 2**30
HOST = HostFacts(
    memory_available_bytes=16 * GIB,
    memory_total_bytes=16 * GIB,
    disk_free_bytes=100 * GIB,
    cpus=2,
    accelerator_guess="tcg",
)
KVM = replace(HOST, accelerator_guess="kvm")
TILE = 3 * GIB
"""RAM of the four guests of a tile."""


@pytest.mark.parametrize(
    ("accelerator", "total", "own"),
    [
        ("kvm", 16 * GIB, 64 * MIB),
        ("kvm", GIB, 64 * MIB),
        ("tcg", 16 * GIB, 640 * MIB),
        ("tcg", 4 * GIB, 640 * MIB),
        ("tcg", 2 * GIB, 384 * MIB),
    ],
)
@pytest.mark.parametrize("vcpus", [1, 2])
@pytest.mark.parametrize("ram", [512 * MIB, GIB])
def test_a_guest_needs_its_ram_and_what_qemu_takes(
    accelerator: Accelerator, total: int, own: int, vcpus: int, ram: int
) -> None:
    host = replace(HOST, accelerator_guess=accelerator, memory_total_bytes=total)
    assert guest_memory(GuestResources(vcpus=vcpus, memory_bytes=ram), host) == ram + own


def planned(host: HostFacts) -> Plan:
    return make_plan(load("tile"), Overrides(size="smoke", tiles=(1, 2)), host)


@pytest.mark.parametrize(("host", "own"), [(HOST, 640 * MIB), (KVM, 64 * MIB)])
def test_a_plan_fits_to_the_last_byte(host: HostFacts, own: int) -> None:
    needed = 2 * TILE + 8 * own
    assert memory_needed(planned(host), host) == needed
    enough = replace(host, memory_available_bytes=needed)
    check_fit(planned(enough), enough)
    short = replace(host, memory_available_bytes=needed - 1)
    with pytest.raises(RefusedError, match="8 guests need") as caught:
        check_fit(planned(short), short)
    assert caught.value.exit_code == 3


def test_a_plan_that_fits_without_qemus_own_is_refused() -> None:
    host = replace(HOST, memory_available_bytes=2 * TILE)
    with pytest.raises(RefusedError, match=r"8 guests need 11 GiB of memory and the host has 6 GiB free"):
        check_fit(planned(host), host)


def test_the_plan_tells_guests_and_need_apart() -> None:
    plan = planned(HOST)
    assert "memory   11 GiB at most, 6 GiB of it for guests and the rest for QEMU, 16 GiB free" in plan_text(plan, HOST)
    document = plan_document(plan, HOST, None)["plan"]
    assert (document["memory_bytes"], document["memory_needed_bytes"]) == (2 * TILE, 11 * GIB)
    assert [cell["memory_needed_bytes"] for cell in document["cells"]] == [5.5 * GIB, 5.5 * GIB, 11 * GIB, 11 * GIB]


def test_work_on_the_host_alone_needs_no_guest_memory() -> None:
    plan = make_plan(load("cpu-overhead"), Overrides(size="smoke", sets=("axes.setup=[node]",)), HOST)
    assert memory_needed(plan, HOST) == 0
