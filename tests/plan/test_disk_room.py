"""What a run takes on the host's disk, with what lies on an emulated one, and where a plan stops to fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.errors import RefusedError
from vmlab.plan.estimate import FILE_SYSTEM_BYTES, IMAGE_BYTES, SNAPSHOT_BYTES, disk_needed, emulated_disk_size
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.tui.state.load_map import plan_lines

GIB = 2**30
HOST = HostFacts(2**36, 2**36, 2**40, 4, "kvm")
ORDERED = "host.disk=hdd-7200"
FILLED = """\
name: filled
guests: {vm: {memory: 512 MiB, data: 20 GiB, allocation: full}}
workloads: {job: {kind: cpu, on: vm, threads: 1}}
repeats: 4
"""


def tile(*sets: str, tiles: tuple[int, ...] = (1,), cold: bool = False) -> Plan:
    return make_plan(load("tile"), Overrides(size="smoke", tiles=tiles, sets=sets, cold=cold), HOST)


def test_on_the_hosts_own_disk_each_cell_gives_back_what_it_wrote() -> None:
    plan = tile()
    assert len(plan.cells) == 2
    assert disk_needed(plan) == plan.disk_bytes == max(cell.disk_bytes for cell in plan.cells)


def test_an_emulated_disk_has_all_that_was_ever_written_and_copies_of_image_and_snapshots() -> None:
    plan = tile(ORDERED)
    written = sum(cell.disk_bytes for cell in plan.cells)
    assert [cell.cache for cell in plan.cells] == ["none", "writeback"]
    assert disk_needed(plan) == FILE_SYSTEM_BYTES + IMAGE_BYTES + 4 * SNAPSHOT_BYTES + written


def test_guests_that_are_other_machines_have_snapshots_of_their_own() -> None:
    two = FILLED.replace("repeats: 4", "axes: {memory: [512 MiB, 1 GiB]}").replace("20 GiB", "1 GiB")
    plan = make_plan(read(Path("two.yaml"), two), Overrides(sets=(ORDERED,)), HOST)
    written = sum(cell.disk_bytes for cell in plan.cells)
    assert disk_needed(plan) == FILE_SYSTEM_BYTES + IMAGE_BYTES + 2 * SNAPSHOT_BYTES + written


def test_all_tiles_share_the_snapshots_and_guests_that_boot_have_none() -> None:
    three, cold = tile(ORDERED, tiles=(3,)), tile(ORDERED, cold=True)
    for plan, snapshots in ((three, 4), (cold, 0)):
        written = sum(cell.disk_bytes for cell in plan.cells)
        assert disk_needed(plan) == FILE_SYSTEM_BYTES + IMAGE_BYTES + snapshots * SNAPSHOT_BYTES + written


def test_it_is_never_more_than_the_disk_has() -> None:
    plan = make_plan(read(Path("filled.yaml"), FILLED), Overrides(sets=(ORDERED,)), HOST)
    assert 20 * GIB < plan.disk_bytes < 21 * GIB
    assert disk_needed(plan) == emulated_disk_size(plan.disk_bytes) == 64 * GIB


@pytest.mark.parametrize(("written", "size"), [(0, 32), (16 * GIB, 32), (16 * GIB + 1, 64), (100 * GIB, 224)])
def test_the_disk_has_room_for_twice_what_a_cell_writes(written: int, size: int) -> None:
    assert emulated_disk_size(written) == size * GIB


def test_a_plan_fits_to_the_last_byte() -> None:
    plan = tile(ORDERED)
    enough = replace(HOST, disk_free_bytes=disk_needed(plan))
    check_fit(plan, enough)
    short = replace(enough, disk_free_bytes=disk_needed(plan) - 1)
    with pytest.raises(RefusedError, match="a run on an emulated disk will write") as refused:
        check_fit(plan, short)
    assert int(refused.value.exit_code) == 3
    # On the host's own disk the same work fits.
    check_fit(tile(), short)


def test_plan_and_console_tell_the_room() -> None:
    plan = make_plan(read(Path("filled.yaml"), FILLED), Overrides(sets=(ORDERED,)), HOST)
    told = plan_text(plan, HOST)
    assert "disk     64 GiB written at most, 1 TiB free\n         emulated disk hdd-7200: one SATA disk" in told
    assert plan_document(plan, HOST, None)["plan"]["disk_needed_bytes"] == 64 * GIB
    assert dict(plan_lines(plan, HOST))["disk"] == "64 GiB written, of 1 TiB free"
    small = replace(HOST, disk_free_bytes=63 * GIB)
    assert dict(plan_lines(plan, small))["disk"] == "64 GiB written, MORE than the 63 GiB free"
