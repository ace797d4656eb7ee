"""What a plan says of a limited host, and when it is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.cli.plan_text import plan_text
from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.plan.hosting import DoesNotFit, check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan

GIB = 2**30
FACTS = HostFacts(16 * GIB, 16 * GIB, 2**40, 4, "kvm")
JOB = "name: job\nguests: {vm: {memory: 960 MiB}}\nworkloads: {job: {kind: cpu, on: vm, threads: 1}}\n"


def planned(host: str, *, overcommit: bool = False, facts: HostFacts = FACTS) -> Plan:
    overrides = Overrides(size="full", tiles=(1, 2), allow_overcommit=overcommit)
    return make_plan(read(Path("job.yaml"), f"{JOB}host: {{{host}}}\n"), overrides, facts)


def test_the_plan_names_it_and_fits_to_the_last_byte() -> None:
    plan = planned("cpus: 2, memory: 2 GiB")
    check_fit(plan, FACTS)
    assert "host     limited host of 2 CPUs and 2 GiB of memory, for all guests together" in plan_text(plan, FACTS)
    assert "host     limited host of 1 CPU, for" in plan_text(planned("cpus: 1"), FACTS)
    assert "limited host" not in plan_text(planned("ksm: off"), FACTS)


def test_guests_that_cannot_start_in_it_are_refused_unless_overcommit_is_allowed() -> None:
    with pytest.raises(DoesNotFit, match=r"2 guests need 2 GiB of memory and the limited host has") as refused:
        check_fit(planned("memory: 2044 MiB"), FACTS)
    assert refused.value.exit_code == 3
    check_fit(planned("memory: 2044 MiB", overcommit=True), FACTS)
    with pytest.raises(DoesNotFit):
        check_fit(planned("memory: 2044 MiB", overcommit=True), FACTS, overcommit=False)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("cpus: 5", "a limited host of 5 CPUs is larger than the host, which has 4"),
        ("memory: 17 GiB", "a limited host with 17 GiB of memory is larger than the host, which has 16 GiB"),
    ],
)
def test_one_that_is_larger_than_the_host_is_refused(host: str, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        check_fit(planned(host), FACTS)
    check_fit(planned(host.replace("5", "4").replace("17", "16")), FACTS)


@pytest.mark.parametrize(("host", "key"), [("cpus: 2", "cpus"), ("memory: 4 GiB", "memory")])
def test_a_missing_controller_refuses_what_needs_it_alone(host: str, key: str) -> None:
    lacking = replace(FACTS, unsettable={key: "the cgroup controller is missing"})
    with pytest.raises(RefusedError, match=rf"sets host\.{key}, and the cgroup controller is missing"):
        check_fit(planned(host, facts=lacking), lacking)
    check_fit(planned("ksm: off", facts=lacking), lacking)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("host: {cpus: 0}", "host.cpus"),
        ("host: {memory: 5000 B}", "host.memory"),
        ("host: {memory: 4}", "host.memory"),
        ("axes: {host.cpus: [1, 2]}", r"host\.cpus' is the same in all cells of a run, so no axis varies it"),
        ("axes: {host.memory: [1 GiB]}", r"host\.memory' is the same in all cells of a run"),
    ],
)
def test_what_cannot_be_ordered_is_told_with_its_place(lines: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        make_plan(read(Path("job.yaml"), f"{JOB}{lines}\n"), Overrides(size="full"), FACTS)


def test_guests_with_as_many_processors_as_the_host_have_those_of_the_ordered_one() -> None:
    text = JOB.replace("memory: 960 MiB", "vcpus: host, memory: 960 MiB")
    for host, vcpus in (("cpus: 2", 2), ("memory: 4 GiB", FACTS.cpus)):
        plan = make_plan(read(Path("job.yaml"), f"{text}host: {{{host}}}\n"), Overrides(size="full"), FACTS)
        assert {guest.resources.vcpus for cell in plan.cells for guest in cell.guests} == {vcpus}


def test_the_size_published_orders_a_host_and_may_allow_overcommit() -> None:
    sizes = "sizes: {published: {host: {cpus: 2, memory: 1 GiB}, allow: {memory_overcommit: true}}}\n"
    file = read(Path("job.yaml"), JOB + sizes)
    published, full = (make_plan(file, Overrides(size=size), FACTS) for size in ("published", "full"))
    assert (published.scenario.host.cpus, published.scenario.allow.memory_overcommit) == (2, True)
    assert (full.scenario.host.cpus, full.scenario.allow.memory_overcommit) == (None, False)
    check_fit(published, FACTS)
    with pytest.raises(RefusedError, match="a limited host of 2 CPUs is larger than the host, which has 1"):
        check_fit(published, replace(FACTS, cpus=1))
