"""Guests' networks in a plan: what is said of them, what a kernel lacks, and a tunnel that nothing goes through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.cli.plan_text import plan_text
from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.terms import HostFacts, Overrides, Plan

FACTS = HostFacts(2**36, 2**36, 2**40, 4, "tcg")
LACKING = replace(FACTS, lacking={"vxlan": "no tunnels here", "bandwidth": "no limits here", "nat": "no rules here"})
FLOW = """\
name: flow
guests:
  near: {memory: 512 MiB}
  far:  {memory: 512 MiB, FAR}
workloads:
  flow: {kind: iperf3, from: near, to: far, time: 3 s}
"""


def planned(far: str = "disk: 8 GiB", more: str = "", facts: HostFacts = FACTS) -> Plan:
    text = FLOW.replace("FAR", far) + more
    return make_plan(read(Path("flow.yaml"), text), Overrides(size="full"), facts)


def test_a_plan_says_what_is_behind_a_tunnel_and_what_is_limited() -> None:
    text = plan_text(planned("network: vxlan, bandwidth: 1500 kbit/s"), FACTS)
    assert "far   1 vCPU  512 MiB  no role  behind vxlan  network 1.5 Mbit/s" in text
    assert "far   1 vCPU  512 MiB  no role  elastic address" in plan_text(planned("network: nat"), FACTS)
    assert "network" not in plan_text(planned(), FACTS)


def test_a_value_that_the_kernel_lacks_is_absent_with_its_reason() -> None:
    way = "axes: {way: {points: {plain: {}, tunnel: {guests.far.network: vxlan}, slow: {bandwidth: 2 Mbit/s}}}}\n"
    assert {cell.axes["way"] for cell in planned(more=way).cells} == {"plain", "tunnel", "slow"}
    plan = planned(more=way, facts=LACKING)
    assert [cell.axes["way"] for cell in plan.cells] == ["plain"]
    assert [(one.value, one.reason) for one in plan.absent] == [
        ("tunnel", "no tunnels here"),
        ("slow", "no limits here"),
    ]
    check_fit(plan, LACKING)


def test_an_attribute_that_is_an_axis_is_absent_where_it_lacks() -> None:
    axis = "axes: {of-far: {sets: guests.far.network, values: [plain, vxlan]}}\n"
    assert [cell.axes["of-far"] for cell in planned(more=axis, facts=LACKING).cells] == ["plain"]


@pytest.mark.parametrize(
    ("far", "why"),
    [
        ("network: vxlan", "guest far has network: vxlan, but no tunnels here"),
        ("network: nat", "guest far has network: nat, but no rules here"),
        ("bandwidth: 2 Mbit/s", "guest far has bandwidth: 2000000, but no limits here"),
    ],
)
def test_where_all_cells_need_it_the_run_is_refused(far: str, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        check_fit(planned(far, facts=LACKING), LACKING)
    check_fit(planned(far), FACTS)


class NobodyAsks(Mapping[str, str]):
    """Fails as soon as somebody wants to know."""

    def __getitem__(self, name: str) -> str:
        raise AssertionError(name)

    def __iter__(self) -> Iterator[str]:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError


def test_a_plan_with_plain_networks_asks_for_nothing() -> None:
    facts = replace(FACTS, lacking=NobodyAsks())
    axis = "axes: {memory: [512 MiB, 1 GiB], way: {points: {plain: {guests.far.network: plain}}}}\n"
    check_fit(planned(more=axis, facts=facts), facts)


@pytest.mark.parametrize(
    ("far", "why"),
    [
        ("network: bridged", r":4:36: guests\.far\.network: must be 'plain', 'vxlan' or 'nat'"),
        ("bandwidth: 100", r":4:38: guests\.far\.bandwidth: needs a number and a unit, such as 100 Mbit/s"),
        ("bandwidth: 10 kbit/s", r":4:38: guests\.far\.bandwidth: must be at least 1 Mbit/s"),
        (
            "network: nat, image: mine",
            ":4:36: guest far of an added image asks for its address on the lab's bridge, and cannot have nat",
        ),
        ("bandwidth: 20 Gbit/s", r":4:38: guests\.far\.bandwidth: must be at most 10 Gbit/s"),
    ],
)
def test_what_a_network_cannot_be_is_told_with_its_place(far: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        planned(far)


def test_a_tunnel_that_no_workload_goes_through_is_told() -> None:
    both = FLOW.replace("512 MiB}", "512 MiB, network: vxlan}").replace("FAR", "network: vxlan")
    with pytest.raises(ScenarioError, match="4:36: guest far is behind a tunnel, and no workload goes through it"):
        make_plan(read(Path("flow.yaml"), both), Overrides(size="full"), FACTS)
    make_plan(read(Path("flow.yaml"), both.replace("from: near", "from: host")), Overrides(size="full"), FACTS)


def test_the_published_ways_are_a_tunnel_and_two_elastic_addresses() -> None:
    plan = make_plan(load("network-vpc"), Overrides(size="smoke"), FACTS)
    ways = {cell.axes["path"]: [guest.resources.network for guest in cell.guests] for cell in plan.cells}
    assert ways == {"host-to-host": [], "vm-to-vm": ["plain", "vxlan"], "eip-to-eip": ["nat", "nat"]}
    absent = make_plan(load("network-vpc"), Overrides(size="smoke"), LACKING).absent
    assert [(one.value, one.reason) for one in absent] == [
        ("vm-to-vm", "no tunnels here"),
        ("eip-to-eip", "no rules here"),
    ]


def test_the_shipped_scenario_takes_every_way_with_and_without_a_limit() -> None:
    plan = make_plan(load("network-overlay"), Overrides(size="smoke"), FACTS)
    ways = {
        (cell.axes["way"], cell.axes["limit"]): {
            guest.guest: (guest.resources.network, guest.resources.bandwidth) for guest in cell.guests
        }
        for cell in plan.cells
    }
    plain = ("plain", None)
    assert ways == {
        ("plain", "unlimited"): {"near": plain, "far": plain},
        ("vxlan", "unlimited"): {"near": plain, "far": ("vxlan", None)},
        ("plain", "30-mbit"): {"near": plain, "far": ("plain", 30_000_000)},
        ("vxlan", "30-mbit"): {"near": plain, "far": ("vxlan", 30_000_000)},
    }
    assert len(make_plan(load("network-overlay"), Overrides(size="smoke"), LACKING).cells) == 1
