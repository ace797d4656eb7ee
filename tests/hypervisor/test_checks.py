"""What doctor looks at: every failing check that a lab needs names what mends it."""

import shutil
from pathlib import Path

import pytest

from tests.fakes.hypervisor import FakeHypervisor
from vmlab.hypervisor import checks as doctor
from vmlab.hypervisor import kvm_probe
from vmlab.hypervisor.checks import Check, checks
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.kvm_probe import Answer
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.system import kvm_device

SLOW = "starts in qemu:///system"


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
        "host.scheduler",
        "host.nr_requests",
        "host.swappiness",
        "host.dirty_ratio",
        "host.disk",
        "host.cpus",
        "host.memory",
        "pyfuse3",
        "matplotlib",
        "polars",
        "pyarrow",
        "textual-serve",
        "distributed",
        "qemu:///system",
        "other guests",
        "guests on the host",
    }
    # The last one is there on some hosts alone.
    assert optional == {check.name for check in found if not check.required} - {SLOW}


def both_fulfil_the_contract(real: EmbeddedHypervisor, fake: FakeHypervisor) -> list[Hypervisor]:
    """For the type checker alone."""
    return [real, fake]


def kvm_check(monkeypatch: pytest.MonkeyPatch, answer: Answer | None) -> Check:
    monkeypatch.setattr(kvm_probe, "without_device", lambda: None)
    monkeypatch.setattr(kvm_probe, "remembered", lambda _cache: answer)
    return next(check for check in checks() if check.name == "KVM")


def test_the_line_about_kvm_is_the_last_probe_s_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kvm_device, "_MODULES", tmp_path)
    silent = kvm_check(monkeypatch, Answer.of_kernel("a kernel printed nothing for 4 s", lasting=True))
    assert not silent.ok
    why = "guests are emulated (TCG): /dev/kvm opens, but no guest boots with it"
    assert silent.detail == f"{why}; a kernel printed nothing for 4 s"
    assert kvm_check(monkeypatch, Answer(True)).detail == "guests run under KVM"
    before = kvm_check(monkeypatch, None)
    assert before.ok and before.detail == "/dev/kvm opens; the next run tries whether a kernel boots under it"
    (tmp_path / "kvm_pvm").mkdir()
    only = "this host's KVM (kvm_pvm) runs only kernels built for it (CONFIG_PVM_GUEST)"
    before = kvm_check(monkeypatch, None)
    assert not before.ok and before.detail == f"{only}; the next run tries whether a kernel boots under it"
    ended = kvm_check(monkeypatch, Answer.of_kernel("QEMU ended: Assertion failed.", lasting=False))
    assert ended.detail == f"guests are emulated (TCG): {only}; QEMU ended: Assertion failed."


@pytest.mark.parametrize(
    ("answer", "may_work", "told"),
    [
        (Answer(False, "a kernel printed nothing for 4 s", lasting=True), True, True),
        (Answer(True, lasting=True), False, False),
        (None, False, True),
        (None, True, False),
    ],
)
def test_a_device_without_kvm_slows_starts_in_the_host_s_own_libvirt(
    monkeypatch: pytest.MonkeyPatch, answer: Answer | None, may_work: bool, told: bool
) -> None:
    monkeypatch.setattr(doctor, "missing", lambda: None)
    monkeypatch.setattr(kvm_device, "may_work", lambda: may_work)
    monkeypatch.setattr(kvm_device, "removal_command", lambda: "modprobe -r kvm_amd")
    kvm_check(monkeypatch, answer)
    found = [check for check in checks() if check.name == SLOW]
    assert [(check.ok, check.required, check.command) for check in found] == [(False, False, ())] * told
    for check in found:
        assert check.detail == kvm_device.slow_start_words()
        assert check.detail.endswith("a start is given up after 120 s")
        assert check.remedy == "modprobe -r kvm_amd, where nothing else uses it"


def test_hosts_without_a_libvirt_or_without_the_device_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    kvm_check(monkeypatch, Answer(False, "a kernel printed nothing for 4 s", lasting=True))
    monkeypatch.setattr(doctor, "missing", lambda: "libvirtd")
    assert SLOW not in {check.name for check in checks()}
    monkeypatch.setattr(doctor, "missing", lambda: None)
    monkeypatch.setattr(kvm_probe, "without_device", lambda: Answer(False, "there is no /dev/kvm"))
    assert SLOW not in {check.name for check in checks()}
