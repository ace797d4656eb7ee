"""KVM counts as usable only when a kernel has run under it, however long that takes on a slow host."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vmlab.guests.image.building import ensure
from vmlab.hypervisor import kvm_probe
from vmlab.hypervisor.kvm_probe import Answer, kernel_runs, probe_kvm
from vmlab.hypervisor.platform_facts import PlatformFacts
from vmlab.model.run import Accelerator
from vmlab.system import kvm_device

PANIC = "echo '[    1.9] Kernel panic - not syncing: VFS: Unable to mount root fs'"
SLOW = f'for i in $(seq 50); do echo "[    0.$i] still booting"; sleep 0.15; done; {PANIC}'
"""Takes eight seconds, and is never silent for longer than the sixth of one."""

Emulator = Callable[[str], None]


@pytest.mark.guests
@pytest.mark.usefixtures("image")
@pytest.mark.timeout(1200)
def test_the_guests_kernel_runs_emulated_and_a_false_one_does_not(tmp_path: Path) -> None:
    kernel = ensure(lambda _text: None).kernel
    assert kernel_runs(kernel, "tcg", patience=60).runs
    assert not kernel_runs(kernel, "tcg", limit=0.2).runs, "a kernel that is not there in time does not run"
    broken = tmp_path / "vmlinuz"
    broken.write_bytes(kernel.read_bytes()[:4096])
    assert not kernel_runs(broken, "tcg", patience=3).runs


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Emulator:
    """Puts a shell script in the place of QEMU, on a host with a KVM device that opens, with patience."""
    (tmp_path / "kvm").touch()
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    (tmp_path / "modules").mkdir()
    monkeypatch.setattr(kvm_probe, "DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(kvm_device, "DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(kvm_device, "_MODULES", tmp_path / "modules")
    monkeypatch.setattr(kvm_probe, "EMULATOR", str(tmp_path / "qemu"))
    monkeypatch.setattr(kvm_probe, "PATIENCE", 60.0)
    monkeypatch.setattr(kvm_probe, "_SLOWNESS", 0.0)

    def install(script: str) -> None:
        (tmp_path / "qemu").write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && exit\necho . >> {tmp_path}/made\n{script}\n'
        )
        (tmp_path / "qemu").chmod(0o755)

    return install


@pytest.fixture
def impatient(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is silent for half a second has hung."""
    monkeypatch.setattr(kvm_probe, "PATIENCE", 0.5)


OPENS = "{}/kvm opens, but no guest boots with it"
BUILT = "this host's KVM (kvm_pvm) runs only kernels built for it (CONFIG_PVM_GUEST)"


def did_not_boot(folder: Path, seen: str, *, lasting: bool = False) -> Answer:
    return Answer(False, OPENS.format(folder), lasting, seen)


def probe(folder: Path) -> Answer:
    return probe_kvm(folder / "vmlinuz", folder / "cache")


def made(folder: Path) -> int:
    return len((folder / "made").read_text().split())


def test_a_kernel_that_boots_slowly_but_goes_on_talking_runs(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm_probe, "PATIENCE", 6.0)
    emulator(SLOW)
    assert probe(tmp_path) == Answer(True, lasting=True)


def test_a_kernel_that_talks_for_ever_is_given_up(emulator: Emulator, tmp_path: Path) -> None:
    emulator("while echo booting; do sleep 0.05; done")
    answer = kernel_runs(tmp_path / "vmlinuz", "kvm", limit=1)
    assert answer == did_not_boot(tmp_path, "a kernel was still booting after 1 s")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("first", ["", "echo SeaBIOS; ", "echo loud >&2; "])
def test_a_kernel_that_falls_silent_has_hung(emulator: Emulator, tmp_path: Path, first: str) -> None:
    emulator(f"{first}exec sleep 100")
    assert probe(tmp_path) == did_not_boot(tmp_path, "a kernel printed nothing for 0 s", lasting=True)


@pytest.mark.usefixtures("impatient")
def test_a_slow_host_has_more_patience(emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe, "_SLOWNESS", 20.0)
    emulator(f"sleep 0.8; {PANIC}")
    script = (tmp_path / "qemu").read_text()
    (tmp_path / "qemu").write_text(script.replace("&& exit", "&& sleep 1 && exit"))
    assert probe(tmp_path).runs


def test_an_emulator_that_dies_is_quoted_and_asked_again(emulator: Emulator, tmp_path: Path) -> None:
    emulator("echo 'qemu: failed to set MSR 0x10a' >&2; echo >&2; exit 1")
    for _ in range(2):
        assert probe(tmp_path) == did_not_boot(tmp_path, "QEMU ended: qemu: failed to set MSR 0x10a")
    emulator("kill -9 $$")
    assert probe(tmp_path) == did_not_boot(tmp_path, "QEMU ended with status -9")
    assert kvm_probe.remembered(tmp_path / "cache") == probe(tmp_path), "for vmlab doctor"
    emulator(PANIC)
    assert probe(tmp_path).runs
    assert kvm_probe.remembered(tmp_path / "cache") == Answer(True, lasting=True)
    (tmp_path / "vmlinuz").write_bytes(b"another")
    emulator("kill -9 $$")
    assert probe(tmp_path) == kvm_probe.remembered(tmp_path / "cache")
    assert made(tmp_path) == 6


def test_a_kvm_for_kernels_built_for_it_is_called_so(emulator: Emulator, tmp_path: Path) -> None:
    (tmp_path / "modules" / "kvm_pvm").mkdir()
    emulator("echo 'kvm.c:3183: Assertion failed.' >&2; kill -6 $$")
    answer = probe(tmp_path)
    assert answer == Answer(False, BUILT, seen="QEMU ended: kvm.c:3183: Assertion failed.")
    assert answer.sentence == f"guests are emulated (TCG): {BUILT}"
    emulator(PANIC)
    assert probe(tmp_path).runs, "a kernel that was built for it"


def test_an_emulator_that_cannot_be_started_means_no_kvm(emulator: Emulator, tmp_path: Path) -> None:
    assert "could not be probed" in probe(tmp_path).why
    emulator("")
    (tmp_path / "qemu").chmod(0o644)
    assert "could not be probed" in probe(tmp_path).why


def test_a_cache_that_cannot_be_written_takes_no_answer_away(emulator: Emulator, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    emulator(PANIC)
    assert probe(tmp_path).runs


@pytest.mark.usefixtures("impatient")
def test_a_device_that_opens_proves_nothing_and_the_answer_is_kept(emulator: Emulator, tmp_path: Path) -> None:
    emulator("exec sleep 100")
    assert kvm_probe.remembered(tmp_path / "cache") is None
    first = probe(tmp_path)
    assert not first.runs
    assert probe(tmp_path) == first == kvm_probe.remembered(tmp_path / "cache")
    assert made(tmp_path) == 1


def test_another_kernel_or_a_torn_memory_asks_again(emulator: Emulator, tmp_path: Path) -> None:
    emulator(PANIC)
    probe(tmp_path)
    (tmp_path / "vmlinuz").write_bytes(b"another")
    probe(tmp_path)
    memory = tmp_path / "cache" / "kvm-probe.json"
    for torn in ('{"torn', "[1]", memory.read_text().replace('""', "7")):
        memory.write_text(torn)
        probe(tmp_path)
    assert made(tmp_path) == 5


def test_without_the_device_nothing_is_probed(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm_probe, "DEVICE", tmp_path / "missing")
    assert "there is no" in probe(tmp_path).why
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("script", "deadline", "expected", "words"),
    [
        (PANIC, 60.0, "kvm", None),
        ("echo no such luck >&2; exit 1", 60.0, "tcg", "kvm opens, but no guest boots with it"),
        ("sleep 3", 0.2, "tcg", "probing KVM took longer than 0.2 s"),
    ],
)
async def test_a_run_goes_on_whatever_the_probe_finds(
    emulator: Emulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    script: str,
    deadline: float,
    expected: Accelerator,
    words: str | None,
) -> None:
    emulator(script)
    monkeypatch.setattr(kvm_probe, "DEADLINE", deadline)
    monkeypatch.setattr(kvm_probe, "PATIENCE", 60.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    notices: list[str] = []
    facts = PlatformFacts(lambda: None, notices.append, tmp_path / "vmlinuz", "embedded")
    assert await facts.accelerator() == expected
    assert not notices, "a run without guests does not say how they would run"
    facts.say_emulated()
    facts.say_emulated()
    assert [words in notice for notice in notices if words] == ([True] if words else [])
    assert len(notices) == (1 if words else 0)
    assert not any("luck" in notice for notice in notices), "that reads like an error"
    assert ("KVM is not used: QEMU ended: no such luck" in caplog.text) is ("luck" in script)
