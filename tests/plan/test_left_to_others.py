"""What a plan leaves to guests that the host runs already, and says of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.lab.process.prepared import RunRequest, host_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.telemetry.domains.neighbours import Neighbour

GIB = 2**30
ALONE = HostFacts(8 * GIB, 16 * GIB, 2**40, 4, "kvm")
BESIDE = replace(ALONE, neighbours=(Neighbour("db", 4, 6 * GIB, 2 * GIB),))
TEXT = "name: x\nguests: {a: {memory: 7 GiB}}\nworkloads: {cpu: {kind: cpu, on: a, threads: 1}}\n"


def planned(host: HostFacts, *sets: str, equal: bool = False) -> Plan:
    return make_plan(read(Path("x.yaml"), TEXT), Overrides(sets=sets, allow_equal_weight=equal), host)


def test_nothing_is_said_or_left_where_the_host_runs_no_guest() -> None:
    alone = planned(ALONE)
    check_fit(alone, ALONE)
    assert alone.notes == ()


def test_a_tenth_of_the_memory_is_left_to_the_host_s_own_guests() -> None:
    beside = planned(BESIDE)
    words = r"1 guests need .* and the host has 8 GiB free, of which 1\.6 GiB are left to its own guests"
    with pytest.raises(RefusedError, match=words):
        check_fit(beside, BESIDE)
    check_fit(planned(BESIDE, "guests.a.memory=6 GiB"), BESIDE)
    assert beside.notes == (
        "this host runs 1 guest of its own (db): 4 vCPUs, 2 GiB of memory, which may grow by 4 GiB",
        "the lab leaves 1.6 GiB free, and the lab's guests together have half the usual CPU weight",
    )


def test_a_weight_is_not_promised_in_the_host_s_own_libvirt() -> None:
    plan = make_plan(read(Path("x.yaml"), TEXT), Overrides(hypervisor="qemu:///system"), BESIDE)
    words = "in the host's own libvirt its guests have the same CPU weight as they have"
    assert plan.notes[1] == f"the lab leaves 1.6 GiB free, and {words}"


def test_equal_terms_are_had_where_they_are_asked_for() -> None:
    equal = planned(BESIDE, equal=True)
    check_fit(equal, BESIDE)
    assert equal.notes[1].startswith("the lab takes CPU and memory on equal terms")


def test_a_run_knows_them_as_they_were_when_it_was_asked_for(tmp_path: Path) -> None:
    folder = RunFolder("x", tmp_path)
    write_request(folder, RunRequest("x", "x.yaml", Overrides(), 1), TEXT, BESIDE)
    assert host_of(folder).neighbours == BESIDE.neighbours
