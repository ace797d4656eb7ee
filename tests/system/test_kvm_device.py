"""What is known of KVM before a kernel has booted, over files in place of the host's."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from vmlab.system import kvm_device

WITH, WITHOUT = "flags\t\t: fpu svm sse2\n", "flags\t\t: fpu hypervisor sse2\n"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An x86 host whose device opens, and whose processor has its extension for KVM."""
    for name, place in (("DEVICE", "kvm"), ("CPUINFO", "cpuinfo"), ("_MODULES", "module")):
        monkeypatch.setattr(kvm_device, name, tmp_path / place)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    (tmp_path / "kvm").touch()
    (tmp_path / "cpuinfo").write_text(WITH)
    (tmp_path / "module").mkdir()
    return tmp_path


def test_kvm_needs_its_device_and_the_processor_s_extension(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kvm_device.opens() and kvm_device.may_work()
    (host / "cpuinfo").write_text(WITHOUT)
    assert kvm_device.opens() and not kvm_device.may_work()
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    assert kvm_device.may_work()
    (host / "kvm").unlink()
    assert not kvm_device.opens() and not kvm_device.may_work()


def test_a_module_is_unloaded_and_what_is_built_in_loses_its_device(host: Path) -> None:
    (host / "module/kvm_amd").mkdir()
    assert kvm_device.removal_command() == f"rm {host / 'kvm'}"
    (host / "module/kvm_amd/initstate").write_text("live\n")
    assert kvm_device.removal_command() == "modprobe -r kvm_amd"
