"""What doctor looks at: every failing check that a lab needs names what mends it."""

import shutil

import pytest

from tests.fakes.hypervisor import FakeHypervisor
from vmlab.hypervisor import kvm_probe
from vmlab.hypervisor.checks import Check, checks
from vmlab.hypervisor.contract import Hypervisor
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.kvm_probe import Answer


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program, path=None: None)
    found = {check.name: check for check in checks()}
    assert not found["qemu-img"].ok
    assert found["qemu-img"].remedy == "apt-get install --no-install-recommends qemu-utils"


def test_everything_required_has_a_remedy() -> None:
    found = checks()
    assert all(check.remedy for check in found if check.required)
    assert len({check.name for check in found}) == len(found)
    optional = {"KVM", "KSM", "RAPL", "CPU speed", "cgroups", "host.ksm", "host.thp", "host.read_ahead"}
    optional |= {
        "host.disk",
        "host.cpus",
        "host.memory",
        "pyfuse3",
        "matplotlib",
        "pyarrow",
        "textual-serve",
        "distributed",
        "qemu:///system",
        "other guests",
    }
    assert optional == {check.name for check in found if not check.required}


def both_fulfil_the_contract(real: EmbeddedHypervisor, fake: FakeHypervisor) -> list[Hypervisor]:
    """For the type checker alone."""
    return [real, fake]


def kvm_check(monkeypatch: pytest.MonkeyPatch, answer: Answer | None) -> Check:
    monkeypatch.setattr(kvm_probe, "without_device", lambda: None)
    monkeypatch.setattr(kvm_probe, "remembered", lambda _cache: answer)
    return next(check for check in checks() if check.name == "KVM")


def test_the_line_about_kvm_is_the_last_probe_s_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = kvm_check(monkeypatch, Answer(False, "a kernel printed nothing for 4 s", lasting=True))
    assert not silent.ok
    assert silent.detail == Answer(False, "a kernel printed nothing for 4 s").sentence
    assert kvm_check(monkeypatch, Answer(True)).ok
    assert "the next run tries" in kvm_check(monkeypatch, None).detail
