"""Where virtual CPUs are pinned to: over all guests of a cell, by the host's cores or those of the ordered one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.plan.host_lacks import LABS_CPU
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.system.host_size import Cores

SINGLE: Cores = ((0,), (1,), (2,), (3,))
DOUBLE: Cores = ((0, 4), (1, 5), (2, 6), (3, 7))
SCENARIO = """\
name: pins
guests:
  a: {vcpus: 2, memory: 512 MiB, pin: spread}
  b: {vcpus: 1, memory: 512 MiB, pin: spread}
workloads:
  a: {kind: cpu, on: a, threads: 1}
  b: {kind: cpu, on: b, threads: 1}
"""


def host(cores: Cores | None) -> HostFacts:
    return HostFacts(2**40, 2**40, 2**44, 2 if cores is None else sum(map(len, cores)), "kvm", cores=cores)


def planned(text: str, cores: Cores | None = SINGLE) -> Plan:
    return make_plan(read(Path("pins.yaml"), text), Overrides(), host(cores))


def pins(text: str, cores: Cores | None = SINGLE) -> list[str]:
    return [guest.resources.pin for guest in planned(text, cores).cells[0].guests]


def test_spread_takes_a_core_for_each_virtual_cpu_of_all_guests() -> None:
    assert pins(SCENARIO) == ["3;2", "1"]
    assert pins(SCENARIO, DOUBLE) == ["3;2", "1"]
    assert pins(SCENARIO, ((0,), (1,))) == ["1;0", "1"]
    two = SCENARIO + "axes: {tiles: [2]}\n"
    assert pins(two, DOUBLE) == ["3;2", "1", "0;7", "6"]


def test_packed_takes_whole_cores() -> None:
    packed = SCENARIO.replace("spread", "packed")
    assert pins(packed, DOUBLE) == ["3;7", "2"]
    assert pins(packed.replace("vcpus: 2", "vcpus: 3"), DOUBLE) == ["3;7;2", "1"]
    assert pins(packed, ((0, 2), (1,))) == ["0;2", "1"]


def test_cpus_that_another_guest_names_are_taken_last() -> None:
    assert pins(SCENARIO.replace("pin: spread}", "pin: '2;3'}", 1)) == ["2;3", "1"]


def test_an_ordered_host_lends_its_own_cpus_alone() -> None:
    assert pins(SCENARIO + "host: {cpus: 2}\n") == ["3;2", "3"]
    named = SCENARIO.replace("pin: spread}", "pin: 1}", 1) + "host: {cpus: 2}\n"
    with pytest.raises(RefusedError, match="guest a has pin: 1, and there is no CPU 1 here; there are 2,3"):
        check_fit(planned(named), host(SINGLE))


def test_where_the_cores_are_not_known_the_words_stay() -> None:
    assert pins(SCENARIO, None) == ["spread", "spread"]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("pin: packed", "pin: packed, and packed is as spread where no core has two hardware threads, as on this host"),
        ("pin: '0;4'", "pin: 0;4, and there is no CPU 4 here; there are 0,1,2,3"),
        ("emulator_pin: 0-9", "emulator_pin: 0-9, and there is no CPU 4 here; there are 0,1,2,3"),
        ("vcpus: host, pin: '0;1'", "pin: 0;1, and 4 virtual CPUs here"),
    ],
)
def test_what_this_host_has_not_is_refused(written: str, why: str) -> None:
    text = SCENARIO.replace("vcpus: 2, ", "" if "vcpus" in written else "vcpus: 2, ").replace("pin: spread", written, 1)
    with pytest.raises(RefusedError) as refused:
        check_fit(planned(text), host(SINGLE))
    assert str(refused.value).startswith(f"guest a has {why}")


def test_values_of_an_axis_that_this_host_has_not_are_absent() -> None:
    text = SCENARIO.replace(", pin: spread", "") + "axes: {pin: [none, spread, packed, 1, 5]}\norder: as written\n"
    plan = planned(text)
    assert [cell.guests[0].resources.pin for cell in plan.cells] == ["none", "3;2", "1"]
    assert [str(one) for one in plan.absent] == [
        "pin packed is absent: packed is as spread where no core has two hardware threads, as on this host",
        "pin 5 is absent: there is no CPU 5 here; there are 0,1,2,3",
    ]
    check_fit(replace(plan), host(SINGLE))


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("pin: '0;1;2'", "pin has 3 sets of CPUs, and the guest 2 virtual CPUs; use one set for all, or as many"),
        ("pin: close", "needs none, spread, packed, or CPUs of the host"),
        ("pin: '0, 1'", "needs none, spread, packed, or CPUs of the host"),
        ("pin: 3-1", "3-1 ends before it begins"),
        ("emulator_pin: '0;1'", "needs none, or CPUs of the host as libvirt writes them, such as 0-1,4"),
        ("emulator_pin: true", "needs none, or CPUs of the host as libvirt writes them, such as 0-1,4"),
    ],
)
def test_a_wrong_value_is_one_line(written: str, why: str) -> None:
    with pytest.raises(ScenarioError) as wrong:
        planned(SCENARIO.replace("pin: spread", written, 1))
    (line,) = str(wrong.value).splitlines()
    assert line.startswith("pins.yaml:3:") and why in line


def test_a_processor_that_this_host_cannot_give_is_absent_or_refused() -> None:
    here = replace(host(SINGLE), lacking={"cpu EPYC": "emulation (TCG) cannot give it svm"})

    def made(text: str) -> Plan:
        return make_plan(read(Path("pins.yaml"), text), Overrides(), here)

    assert [str(one) for one in made(SCENARIO + "axes: {cpu: [max, EPYC]}\n").absent] == [
        "cpu EPYC is absent: emulation (TCG) cannot give it svm"
    ]
    with pytest.raises(RefusedError, match=r"guest a has cpu: EPYC, but emulation \(TCG\) cannot give it svm"):
        check_fit(made(SCENARIO.replace("pin: spread", "cpu: EPYC", 1)), here)
    check_fit(made(SCENARIO.replace("pin: spread", "cpu: EPYC -svm", 1)), here)


def test_a_processor_that_vmlabs_own_image_does_not_start_on_is_refused() -> None:
    here = replace(host(SINGLE), lacking={f"{LABS_CPU}486": "vmlab's own image has 64 bits"})
    text = SCENARIO.replace("pin: spread", "cpu: 486", 1)
    with pytest.raises(RefusedError, match="guest a has cpu: 486, but vmlab's own image has 64 bits"):
        check_fit(make_plan(read(Path("pins.yaml"), text), Overrides(), here), here)


@pytest.mark.parametrize(("key", "usual", "other"), [("machine", "q35", "pc"), ("firmware", "bios", "uefi")])
def test_board_and_firmware_have_a_snapshot_for_each_value_and_a_host_may_lack_them(
    key: str, usual: str, other: str
) -> None:
    axis = f"{SCENARIO}axes: {{{key}: [{usual}, {other}]}}\n"
    notes = make_plan(read(Path("pins.yaml"), axis), Overrides(), host(SINGLE)).notes
    assert f"each value of {key} has one snapshot, so that a difference is one a side; --cold has a verdict" in notes
    here = replace(host(SINGLE), lacking={f"{key} {other}": "it is not here"})
    assert [str(one) for one in make_plan(read(Path("pins.yaml"), axis), Overrides(), here).absent] == [
        f"{key} {other} is absent: it is not here"
    ]
    asked = read(Path("pins.yaml"), SCENARIO.replace("pin: spread", f"{key}: {other}", 1))
    with pytest.raises(RefusedError, match=f"guest a has {key}: {other}, but it is not here"):
        check_fit(make_plan(asked, Overrides(), here), here)


@pytest.mark.parametrize("cpu", ["EPYC  -svm", "EPYC,-svm", "-svm", "EPYC svm", "EPYC +svm -svm", "''", "true"])
def test_a_wrong_processor_is_one_line(cpu: str) -> None:
    with pytest.raises(ScenarioError) as wrong:
        planned(SCENARIO.replace("pin: spread", f"cpu: '{cpu}'" if cpu not in ("''", "true") else f"cpu: {cpu}", 1))
    (line,) = str(wrong.value).splitlines()
    assert line.startswith("pins.yaml:3:") and "needs host, max, host-model or a model of libvirt's" in line


def test_several_processors_have_a_snapshot_each() -> None:
    def notes(text: str) -> list[str]:
        return [note for note in planned(text).notes if "one a side" in note]

    (note,) = notes(SCENARIO + "axes: {cpu: [max, max -avx2]}\n")
    assert note.startswith("each value of cpu has one snapshot")
    assert notes(SCENARIO + "axes: {cpu: [max, max -avx2]}\nprovision: cold\n") == []
    # Guests may differ, where each is the same on both sides.
    assert notes(SCENARIO.replace("pin: spread", "cpu: max", 1) + "axes: {pin: [none, spread]}\n") == []
