"""Guests with an elastic address: what their domains, their neighbours and the workloads are told."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.shell import FakeShell
from tests.lab.one_cell import HOST, Lab
from vmlab.hypervisor.domain_spec import Translated
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides, Plan

FLOW = """\
name: flow
guests:
  near: {memory: 512 MiB, network: nat}
  far:  {memory: 512 MiB}
workloads:
  out:  {kind: iperf3, from: near, to: far}
  back: {kind: iperf3, from: far, to: near}
  home: {kind: iperf3, from: near, to: host}
"""


def plan() -> Plan:
    return make_plan(read(Path("flow.yaml"), FLOW), Overrides(size="full"), HOST)


def test_others_know_a_guest_by_its_elastic_address_and_its_domain_has_both(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "", plan())
    guests = GuestSet("run", lab.plan.cells[0], FakeHypervisor(), lab.image, lambda _guest, _state: None)
    assert [spec.translated for spec in guests.specs] == [Translated("198.18.1.10", "198.19.1.10"), None]
    assert (guests.reached_at("t1-near"), guests.reached_at("t1-far")) == ("198.19.1.10", "198.18.1.11")
    near, far = (guests._identity(guest) for guest in guests.guests)
    assert (near.address, far.address) == ("198.18.1.10", "198.18.1.11"), "the guest itself has its own alone"
    assert near.hosts == far.hosts == "198.19.1.10 t1-near\n198.18.1.11 t1-far\n"


def test_a_workload_is_given_the_address_that_reaches_its_target(tmp_path: Path) -> None:
    cell = Lab(tmp_path, "", plan()).cell()
    for key in ("t1-near", "t1-far"):
        cell._guests.shells[key] = FakeShell(key, cell._guests._addresses[key])  # type: ignore[assignment]
    cell._host.shell = lambda _tile: FakeShell("host", "198.18.0.1")  # type: ignore[method-assign, assignment]
    contexts = [one.context for one in cell._instances.made(cell.plan.workloads)]
    assert {one.workload: (one.source.address, one.peer_address) for one in contexts} == {
        "out": ("198.18.1.10", "198.18.1.11"),
        "back": ("198.18.1.11", "198.19.1.10"),
        "home": ("198.18.1.10", "198.18.0.1"),
    }
