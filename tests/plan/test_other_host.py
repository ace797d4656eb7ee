"""Scenarios whose guests are on two hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.local_hosts import FACTS, LINKED
from vmlab.fleet.starting import demand_fleet_plan
from vmlab.lab.process.launch import start_run
from vmlab.model.errors import RefusedError, ScenarioError, UsageError
from vmlab.plan.other_host import demand_two_hosts, half_of, half_plan
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides, Plan

PRIMES = "kind: cpu, threads: 1, max_prime: 1000, events: 10"
LOOPED = LINKED.replace(
    "{net: {kind: iperf3, from: client, to: server, time: 1 s}}",
    f"{{one: {{{PRIMES}, on: client}}, two: {{{PRIMES}, on: server}}}}",
)


def _plan(text: str = LINKED, **said: object) -> Plan:
    return make_plan(read(Path("probe.yaml"), text), Overrides(**said), FACTS)  # type: ignore[arg-type]


def test_each_host_has_its_own_guests_and_knows_all_workloads() -> None:
    """And must have room for its own alone."""
    plan = _plan(tiles=(2,))
    assert plan.linked
    cell = plan.cells[0]
    here, other = half_of(cell, "here"), half_of(cell, "other")
    assert [guest.key for guest in here.guests] == ["t1-client", "t2-client"]
    assert [guest.key for guest in other.guests] == ["t1-server", "t2-server"]
    assert here.workloads == other.workloads == cell.workloads
    assert half_plan(plan, "other").memory_bytes == plan.memory_bytes // 2
    assert half_plan(plan, "here").guests == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("client: {memory: 128 MiB}", "client: {memory: 128 MiB, network: vxlan}", "joined by a link, which is plain"),
        ("host: other", "host: other, network: nat", "joined by a link, which is plain"),
        ("host: other", "host: other, bandwidth: 30 Mbit/s", "joined by a link, which is plain"),
        ("host: other", "host: other, image: mine", "start from the image debian"),
        ("host: other", "host: other, on: host", "guests on two hosts are virtual machines"),
        ("from: client", "from: host", "workloads run in guests alone"),
        ("host: other", "host: elsewhere", "host"),
    ],
)
def test_what_the_link_does_not_carry_is_refused_where_it_stands(old: str, new: str, words: str) -> None:
    """In one line each."""
    assert old in LINKED
    with pytest.raises(ScenarioError, match=words):
        _plan(LINKED.replace(old, new))


@pytest.mark.parametrize("hosts", [0, 1, 3])
def test_two_hosts_are_needed(hosts: int) -> None:
    """No more and no fewer."""
    with pytest.raises(UsageError, match="need two of them"):
        demand_two_hosts(_plan(), hosts)
    demand_two_hosts(_plan(), 2)


def test_a_cell_needs_a_guest_on_each() -> None:
    """Guests that no workload uses are not started."""
    text = LINKED.replace("{kind: iperf3, from: client, to: server, time: 1 s}", f"{{{PRIMES}, on: server}}")
    with pytest.raises(UsageError, match="a guest on each of the two hosts"):
        demand_two_hosts(_plan(text), 2)


def test_the_hosts_own_libvirt_has_no_link() -> None:
    with pytest.raises(UsageError, match="which qemu:///system cannot have"):
        demand_two_hosts(_plan(hypervisor="qemu:///system"), 2)


@pytest.mark.parametrize(
    ("text", "said", "words"),
    [
        (f"{LINKED}until: {{spread: 2 %}}\n", {}, "fixed number of repeats"),
        (LINKED, {"hosts": ("hv1", "hv2")}, "neither --together nor an axis host"),
        (LOOPED, {"loop": 60.0}, "--loop is for guests on one host"),
    ],
)
def test_what_a_fleet_does_not_do_with_them(text: str, said: dict[str, object], words: str) -> None:
    """Before anything starts."""
    with pytest.raises(UsageError, match=words):
        demand_fleet_plan(_plan(text, **said), FACTS)


def test_they_are_refused_on_one_host() -> None:
    """`vmlab run` without hosts, and `vmlab scale`, say what to do."""
    file = read(Path("probe.yaml"), LINKED)
    with pytest.raises(RefusedError, match="guests on two hosts"):
        start_run(file, Overrides(), make_plan(file, Overrides(), FACTS), FACTS)
