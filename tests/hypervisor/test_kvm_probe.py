"""KVM counts as usable only when a kernel has run under it."""

from pathlib import Path

import pytest

from vmlab.guests.image import ensure
from vmlab.hypervisor import kvm_probe
from vmlab.model.run import Accelerator


@pytest.mark.guests
def test_the_guests_kernel_runs_emulated_and_a_false_one_does_not(tmp_path: Path) -> None:
    kernel = ensure(lambda _text: None).kernel
    assert kvm_probe.kernel_runs(kernel, "tcg", 60)
    assert not kvm_probe.kernel_runs(kernel, "tcg", 0.2), "a kernel that is not there in time does not run"
    broken = tmp_path / "vmlinuz"
    broken.write_bytes(kernel.read_bytes()[:4096])
    assert not kvm_probe.kernel_runs(broken, "tcg", 3)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Accelerator]:
    """Probes that were made; each says that nothing runs. The device opens."""
    made: list[Accelerator] = []

    def probe(_kernel: Path, accelerator: Accelerator) -> bool:
        made.append(accelerator)
        return False

    (tmp_path / "kvm").touch()
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    monkeypatch.setattr(kvm_probe, "kernel_runs", probe)
    monkeypatch.setattr(kvm_probe, "_DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(kvm_probe, "EMULATOR", str(tmp_path / "kvm"))
    return made


def test_a_device_that_opens_proves_nothing_and_the_answer_is_kept(probes: list[Accelerator], tmp_path: Path) -> None:
    assert kvm_probe.usable_accelerator(tmp_path / "vmlinuz", tmp_path / "cache") == "tcg"
    assert kvm_probe.usable_accelerator(tmp_path / "vmlinuz", tmp_path / "cache") == "tcg"
    assert probes == ["kvm"]


def test_another_kernel_or_a_torn_memory_asks_again(probes: list[Accelerator], tmp_path: Path) -> None:
    kernel, cache = tmp_path / "vmlinuz", tmp_path / "cache"
    kvm_probe.usable_accelerator(kernel, cache)
    kernel.write_bytes(b"another")
    kvm_probe.usable_accelerator(kernel, cache)
    (cache / "kvm-probe.json").write_text('{"torn')
    kvm_probe.usable_accelerator(kernel, cache)
    assert probes == ["kvm"] * 3


def test_without_the_device_nothing_is_probed(
    probes: list[Accelerator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm_probe, "_DEVICE", tmp_path / "missing")
    assert kvm_probe.usable_accelerator(tmp_path / "vmlinuz", tmp_path / "cache") == "tcg"
    assert probes == []
