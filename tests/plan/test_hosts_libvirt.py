"""What a plan is refused for where its guests are to be in the host's own libvirt."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides

HOST = HostFacts(2**36, 2**36, 2**40, 8, "tcg")
PLAIN = """
name: small
{said}
guests:
  vm: {{vcpus: 1, memory: 512 MiB{guest}}}
workloads:
  primes: {{kind: cpu, on: {on}, threads: 1, max_prime: 20000, events: 20}}
"""


def refusal(said: str = "", guest: str = "", on: str = "vm", *, hypervisor: str | None = "qemu:///system") -> str:
    text = PLAIN.format(said=said, guest=guest, on=on)
    plan = make_plan(read(Path("small.yaml"), text), Overrides(hypervisor=hypervisor), HOST)
    try:
        check_fit(plan, HOST)
    except RefusedError as error:
        assert "\n" not in str(error)
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"said": "host: {disk: hdd-7200}"}, "the scenario has host.disk: hdd-7200"),
        ({"said": "host: {cpus: 2}"}, "the scenario orders a host with host.cpus or host.memory"),
        ({"said": "host: {memory: 4 GiB}"}, "the scenario orders a host with host.cpus or host.memory"),
        ({"guest": ", bandwidth: 10 Mbit/s"}, "guest vm has a bandwidth"),
        ({"guest": ", network: nat"}, "guest vm has network: nat"),
        ({"guest": ', data: 1 GiB, backing: "rbd:lab"'}, "guest vm has its data disk in a pool"),
        ({"guest": ", data: 1 GiB, backing: ext4"}, "guest vm has its data disk on a file system that is made for it"),
        ({"guest": ", on: host"}, "guest vm runs on the host"),
        ({"on": "host"}, "workload primes runs on the host"),
    ],
)
def test_what_needs_a_network_or_mounts_of_the_labs_own_is_refused(asked: dict[str, str], words: str) -> None:
    assert refusal(**asked) == f"{words}, which qemu:///system cannot have (--hypervisor embedded)"
    assert refusal(**asked, hypervisor="embedded") == ""


def test_a_scenario_says_it_too_and_an_option_has_the_last_word() -> None:
    said = 'hypervisor: "qemu:///system"\nhost: {cpus: 2}'
    assert "host.cpus" in refusal(said, hypervisor=None)
    assert refusal(said, hypervisor="embedded") == ""


@pytest.mark.parametrize("guest", ["", ", data: 1 GiB, backing: block", ", cpu_shares: 2000"])
def test_all_else_passes(guest: str) -> None:
    assert refusal(guest=guest) == ""


def test_other_places_are_no_hypervisor() -> None:
    with pytest.raises(ScenarioError, match="hypervisor"):
        refusal("hypervisor: qemu+ssh://elsewhere/system", hypervisor=None)
