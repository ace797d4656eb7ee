"""What tunnels and limits carried against what workloads moved: within bounds, and beyond each of them by one byte."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.hypervisor import FakeHypervisor
from tests.lab.runs import MemoryRun
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.overlay_network.guest_networks import bucket_bytes
from vmlab.lab.cell.counter_proofs import NetworkCheck, fault_of, moved_bytes
from vmlab.model.cell_event import NetworkProved
from vmlab.model.results import NetworkCounts, NetworkProof
from vmlab.model.scenarios.guest import GuestResources, Network

MBIT = 10**6
MOVED = 1000


@dataclass
class Moved:
    """As much of an instance as the check asks for."""

    kind: str
    source: str
    target: str | None
    values: dict[str, float] | None

    @property
    def plan(self) -> Any:
        return self

    @property
    def collected(self) -> Any:
        return None if self.values is None else self


FLOW: Any = Moved("iperf3", "t1-near", "t1-far", {"bytes": float(MOVED)})


def guest(name: str, network: Network = "plain", bandwidth: int | None = None) -> DomainSpec:
    given = GuestResources(vcpus=1, memory_bytes=2**29, network=network, bandwidth=bandwidth)
    return DomainSpec(name=f"t1-{name}", guest=name, tile=1, resources=given, mac="")


async def checked(
    specs: list[DomainSpec], before: NetworkCounts, after: NetworkCounts, lasted: float = 1.0, *flows: Any
) -> list[NetworkProof]:
    hypervisor = FakeHypervisor(counts=[before, after], running={spec.name: spec for spec in specs})
    check = NetworkCheck(hypervisor, specs)
    await check.begin()
    await check.end(time.monotonic() - lasted)
    return list(check.proofs(flows or [FLOW]))


@pytest.mark.parametrize(("short", "device"), [("tunnel", "tunnel"), ("cable", "cable"), ("", None)])
async def test_the_tunnel_and_its_cable_carry_at_least_what_arrived(short: str, device: str | None) -> None:
    tunnel, cable = (70 + MOVED - (name == short) for name in ("tunnel", "cable"))
    grown = NetworkCounts(tunnel, cable, {})
    proofs = await checked([guest("near"), guest("far", "vxlan")], NetworkCounts(70, 70, {}), grown)
    assert [(one.device, one.least_bytes, one.most_bytes) for one in proofs] == [
        ("tunnel", MOVED, None),
        ("cable", MOVED, None),
    ]
    assert [one.device for one in proofs if not one.agrees] == ([device] if device else [])


async def test_a_workload_of_which_no_bytes_are_known_must_at_least_be_seen_in_the_tunnel() -> None:
    copy = Moved("filecopy", "t1-near", "t1-far", {"run_time": 1.0})
    specs = [guest("near"), guest("far", "vxlan")]
    nothing = NetworkCounts(70, 70, {})
    assert [one.agrees for one in await checked(specs, nothing, nothing, 1.0, copy)] == [False, False]
    assert [one.agrees for one in await checked(specs, nothing, NetworkCounts(71, 71, {}), 1.0, copy)] == [True, True]


async def test_what_stays_on_one_side_is_not_expected_in_the_tunnel() -> None:
    beside = Moved("iperf3", "t1-far", "t1-other", {"bytes": 9e9})
    specs = [guest("near"), guest("far", "vxlan"), guest("other", "vxlan")]
    (tunnel, _) = await checked(specs, NetworkCounts(0, 0, {}), NetworkCounts(MOVED, MOVED, {}), 1.0, beside, FLOW)
    assert tunnel.least_bytes == MOVED


NEAR, FAR = "t1-near", "t1-far"


def translations(**carried: tuple[int, int]) -> NetworkCounts:
    """What rules have counted to and from each guest of tile 1."""
    return NetworkCounts(None, None, {}, {f"t1-{guest}": ends for guest, ends in carried.items()})


@pytest.mark.parametrize(
    ("near", "far", "faults"),
    [
        ((5 + 9, 6 + MOVED - 9), (5 + MOVED - 9, 6 + 9), []),
        ((5 + 9, 6 + MOVED - 10), (5 + MOVED - 9, 6 + 9), [(NEAR, "both")]),
        ((5, 6 + MOVED), (5 + MOVED, 6 + 1), [(NEAR, "to")]),
        ((5 + 1, 6 + MOVED), (5 + MOVED, 6), [(FAR, "from")]),
    ],
)
async def test_what_goes_between_elastic_addresses_is_translated_at_both_ends_and_both_ways(
    near: tuple[int, int], far: tuple[int, int], faults: list[tuple[str, str]]
) -> None:
    specs = [guest("near", "nat"), guest("far", "nat")]
    proofs = await checked(specs, translations(near=(5, 6), far=(5, 6)), translations(near=near, far=far))
    assert [(one.device, one.guest, one.direction, one.least_bytes, one.most_bytes) for one in proofs] == [
        ("nat", guest, direction, least, None)
        for guest in (NEAR, FAR)
        for direction, least in (("to", 1), ("from", 1), ("both", MOVED))
    ]
    assert [(one.guest, one.direction) for one in proofs if not one.agrees] == faults


async def test_only_a_guest_with_an_elastic_address_must_have_been_translated_and_only_if_it_was_used() -> None:
    specs = [guest("near"), guest("far", "nat"), guest("idle", "nat")]
    nothing = translations(far=(0, 0), idle=(0, 0))
    proofs = await checked(specs, nothing, nothing)
    assert [(one.guest, one.agrees) for one in proofs] == [(FAR, False)] * 3
    assert [fault_of(one) for one in proofs] == [
        "t1-far: 0 B had its address translated, to it, while workloads moved 1 B",
        "t1-far: 0 B had its address translated, from it, while workloads moved 1 B",
        "t1-far: 0 B had its address translated, both ways, while workloads moved 1000 B",
    ]
    gone = await checked(specs, NetworkCounts(None, None, {}), NetworkCounts(None, None, {}))
    assert not any(one.agrees for one in gone)


async def test_a_workload_of_one_side_needs_no_translation() -> None:
    alone = Moved("cpu", FAR, None, {"run_time": 1.0})
    nothing = translations(far=(0, 0))
    assert await checked([guest("far", "nat")], nothing, nothing, 1.0, alone) == []


@pytest.mark.parametrize("direction", ["to", "from"])
async def test_a_limit_lets_its_rate_pass_and_a_bucket_more(direction: str) -> None:
    most = round(1.05 * MBIT / 8 * 10) + bucket_bytes(MBIT)
    # The clock goes on between the two looks, so that the exact bound is not known here.
    within, beyond = most - 1, 10**12
    for carried in (within, beyond):
        ends = (carried, MOVED) if direction == "to" else (MOVED, carried)
        after = NetworkCounts(None, None, {"t1-far": (5 + ends[0], 6 + ends[1])})
        before = NetworkCounts(None, None, {"t1-far": (5, 6)})
        proofs = await checked([guest("near"), guest("far", bandwidth=MBIT)], before, after, 10.0)
        assert [one.direction for one in proofs] == ["to", "from", "both"]
        assert [one.direction for one in proofs if not one.agrees] == ([direction] if carried == beyond else [])


async def test_a_limit_that_carries_less_than_arrived_is_not_in_the_way() -> None:
    before, limited = NetworkCounts(None, None, {"t1-far": (0, 0)}), [guest("near"), guest("far", bandwidth=MBIT)]
    *_, enough = await checked(limited, before, NetworkCounts(None, None, {"t1-far": (MOVED - 9, 9)}))
    *_, less = await checked(limited, before, NetworkCounts(None, None, {"t1-far": (MOVED - 9, 8)}))
    assert (enough.agrees, less.agrees) == (True, False)
    assert fault_of(enough) is None
    assert fault_of(less) == "t1-far: its limit carried 999 B, but its workloads moved 1000 B"


async def test_a_limit_of_which_nothing_was_counted_is_told() -> None:
    nothing = NetworkCounts(None, None, {})
    *_, both = await checked([guest("near"), guest("far", bandwidth=MBIT)], nothing, nothing)
    assert not both.agrees


async def test_plain_networks_are_not_asked() -> None:
    specs = [guest("near"), guest("far")]
    hypervisor = FakeHypervisor(running={spec.name: spec for spec in specs})
    check = NetworkCheck(hypervisor, specs)
    await check.begin()
    await check.end(time.monotonic())
    assert (list(check.proofs([FLOW])), hypervisor.calls) == ([], [])


def test_a_failed_workload_and_one_that_counts_nothing_moved_nothing() -> None:
    failed: Any = Moved("iperf3", "t1-near", "t1-far", None)
    copied: Any = Moved("filecopy", "t1-near", "t1-far", {"run_time": 3.0})
    assert [moved_bytes(one) for one in (FLOW, failed, copied)] == [MOVED, 0, 0]


@pytest.mark.usefixtures("own_folders")
@pytest.mark.parametrize(("carried", "outcome"), [(10, "passed"), (10**12, "invalid")])
async def test_a_cell_whose_limit_did_not_hold_is_invalid(carried: int, outcome: str) -> None:
    run = MemoryRun("axes: {bandwidth: [10 Gbit/s]}\n")
    guests = [guest.key for guest in run.plan.cells[0].guests]
    run.hypervisor.counts = [NetworkCounts(None, None, dict.fromkeys(guests, (at, at))) for at in (0, carried)]
    await run.run()
    ((ended, reasons),) = run.outcomes()
    assert ended == outcome, reasons
    assert {event.proof.guest for event in run.of(NetworkProved)} == set(guests)
    assert all("where its limit lets" in reason for reason in reasons)
    assert run.hypervisor.calls.count("network_counts") == 2
