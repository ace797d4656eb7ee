"""A plan for the host's own libvirt says that a KVM that does not work slows its starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.lab.process.prepared import RunRequest, host_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.plan.hosting import read_host_facts
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides
from vmlab.system import kvm_device

WORKS = HostFacts(2**34, 2**34, 2**40, 4, "tcg")
REFUSES = replace(WORKS, kvm_refuses=True)
TEXT = "name: x\nguests: {a: {memory: 1 GiB}}\nworkloads: {cpu: {kind: cpu, on: a, threads: 1}}\n"


def notes(host: HostFacts, hypervisor: str) -> tuple[str, ...]:
    return make_plan(read(Path("x.yaml"), TEXT), Overrides(hypervisor=hypervisor), host).notes


def test_it_is_said_of_the_host_s_own_libvirt_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.plan.planning.removal_command", lambda: "modprobe -r kvm_amd")
    (told,) = notes(REFUSES, "qemu:///system")
    assert told == f"{kvm_device.slow_start_words()}; without the device it does not: modprobe -r kvm_amd"
    assert notes(REFUSES, "embedded") == notes(WORKS, "qemu:///system") == ()


@pytest.mark.parametrize(
    ("opens", "may_work", "refuses"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_it_is_known_without_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens: bool, may_work: bool, refuses: bool
) -> None:
    monkeypatch.setattr(kvm_device, "opens", lambda: opens)
    monkeypatch.setattr(kvm_device, "may_work", lambda: may_work)
    facts = read_host_facts(tmp_path)
    assert facts.kvm_refuses is refuses
    assert facts.accelerator_guess == ("kvm" if may_work else "tcg")


def test_a_run_knows_it_as_it_was_when_it_was_asked_for(tmp_path: Path) -> None:
    folder = RunFolder("x", tmp_path)
    write_request(folder, RunRequest("x", "x.yaml", Overrides(), 1), TEXT, REFUSES)
    assert host_of(folder).kvm_refuses
