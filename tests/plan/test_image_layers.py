"""Packages of guests and of their workloads in a plan: which layers follow, what is known of them, what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.guests.image.layers import LayerState
from vmlab.model.errors import ScenarioError
from vmlab.plan.estimate import IMAGE_BYTES, disk_needed
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan

GIB = 2**30
HOST = HostFacts(16 * GIB, 16 * GIB, 100 * GIB, 2, "tcg")
SCENARIO = """\
name: trial
guests:
  a: {memory: 512 MiB, packages: [redis-tools, zip]}
  b: {memory: 512 MiB}
  c: {memory: 512 MiB}
workloads:
  one: {kind: command, from: a, to: b, run: redis-cli, packages: [redis-server]}
  two: {kind: cpu, on: c, threads: 1}
"""


def planned(text: str = SCENARIO, host: HostFacts = HOST) -> Plan:
    return make_plan(read(Path("x.yaml"), text), Overrides(size="full"), host)


def of_guests(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {guest.guest: guest.resources.packages for guest in plan.cells[0].guests}


def test_a_guest_has_its_own_packages_and_those_of_its_workloads() -> None:
    plan = planned()
    assert of_guests(plan) == {"a": ("redis-server", "redis-tools", "zip"), "b": ("redis-server",), "c": ()}
    assert plan.layers == (("redis-server", "redis-tools", "zip"), ("redis-server",))
    assert not plan.cells[0].added_images, "its guests are frozen"


def test_one_set_of_packages_is_one_layer_however_it_is_written() -> None:
    other = SCENARIO.replace("[redis-tools, zip]", "[zip, redis-server, zip, redis-tools]")
    assert planned(other).layers == planned().layers
    assert [guest.machine for guest in planned(other).cells[0].guests] == [
        guest.machine for guest in planned().cells[0].guests
    ]


def test_a_guest_without_packages_is_the_machine_that_it_was_before_there_were_any() -> None:
    (guest,) = (one for one in planned().cells[0].guests if one.guest == "c")
    assert "packages" not in guest.resources.seen()


def test_packages_are_an_axis_whose_sides_begin_from_a_snapshot_each() -> None:
    text = SCENARIO.replace(", packages: [redis-tools, zip]", "").replace(", packages: [redis-server]", "")
    plan = planned(f"{text}axes: {{packages: [redis-server, zip]}}\norder: as written\n")
    assert [cell.guests[0].resources.packages for cell in plan.cells] == [("redis-server",), ("zip",)]
    assert any("each value of packages has one snapshot" in note for note in plan.notes)


def test_a_plan_says_what_was_measured_of_its_layers_and_nothing_else() -> None:
    plan = planned()
    built = LayerState(plan.layers[1], True, 1100 * 2**20, 25.0)
    first = LayerState(plan.layers[0], False, None, None)
    next_one = replace(first, bytes=2**30, seconds=25.0)
    name = "image    debian with redis-server, redis-tools, zip: "
    assert "image    debian with redis-server: 1.07 GiB, built" in plan_text(plan, HOST, layers=[built]).splitlines()
    assert f"{name}built first" in plan_text(plan, HOST, layers=[first]).splitlines()
    told = plan_text(plan, HOST, layers=[next_one]).splitlines()
    assert f"{name}1 GiB or more, built first in about 20 s, as the last one" in told
    assert "image    " not in plan_text(plan, HOST)
    document = plan_document(plan, HOST, None, layers=[built, first])["plan"]
    assert document["layers"] == [
        {"packages": ["redis-server"], "built": True, "bytes": 1100 * 2**20, "seconds": 25.0},
        {"packages": ["redis-server", "redis-tools", "zip"], "built": False, "bytes": None, "seconds": None},
    ]


def test_an_emulated_disk_has_a_copy_of_each_layer() -> None:
    on_disk = f"{SCENARIO}host: {{disk: hdd-7200}}\n"
    plain = on_disk.replace(", packages: [redis-tools, zip]", "").replace(", packages: [redis-server]", "")
    assert disk_needed(planned(on_disk)) == disk_needed(planned(plain)) + 2 * IMAGE_BYTES


def test_a_layer_that_is_built_takes_the_room_that_it_has() -> None:
    plan = planned(f"{SCENARIO}host: {{disk: hdd-7200}}\n")
    host = replace(HOST, layers={"redis-server": 990 * 2**20, "redis-server redis-tools zip": 2**30})
    written = disk_needed(plan) - 2 * IMAGE_BYTES
    assert disk_needed(plan, host.layers) == written + 990 * 2**20 + 2**30
    assert plan_document(plan, host, None)["plan"]["disk_needed_bytes"] == written + 990 * 2**20 + 2**30
    check_fit(plan, replace(host, disk_free_bytes=written + 990 * 2**20 + 2**30))


def test_a_package_that_does_not_exist_is_one_line_with_its_place() -> None:
    lacking = {"package zip": "no such package"}
    with pytest.raises(ScenarioError) as found:
        planned(host=replace(HOST, lacking=lacking))
    assert str(found.value) == "x.yaml:3:48: no such package"
    with pytest.raises(ScenarioError) as found:
        planned(host=replace(HOST, lacking={"package redis-server": "no such package"}))
    assert str(found.value) == "x.yaml:7:67: no such package" and found.value.exit_code == 2
