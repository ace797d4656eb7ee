"""What real guests are given of CPU and memory is read back; what is changed behind a run's back makes a cell invalid;
huge pages are the host's again after any end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Home, wait_until
from vmlab.hypervisor.levers.qemu_offers import uefi_loader
from vmlab.telemetry.setting_files import pool_of

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]

POOL = Path("/sys") / pool_of(2**21)
SCENARIO = """
name: given
guests: {vm: {vcpus: 2, memory: 256 MiB}}
workloads: {primes: {kind: cpu, on: vm, threads: 1, max_prime: 2000, events: 100}}
axes: {way: {points: {POINTS}}}
limits: {clock_drift_percent: 100}
allow: {noise: true}
order: as written
"""
WAYS = """
    usual: {guests.vm.memory_lock: false, guests.vm.ksm: true, guests.vm.huge_pages: transparent},
    pinned: {guests.vm.pin: 0, guests.vm.emulator_pin: 0, guests.vm.ksm: false},
    pages: {guests.vm.pin: spread, guests.vm.huge_pages: 2 MiB}
"""
ONE = "one: {guests.vm.pin: 0, guests.vm.huge_pages: 2 MiB}"
BOARDS = "usual: {}, pc: {guests.vm.machine: pc}, uefi: {guests.vm.firmware: uefi}"
COLD = "max: {guests.vm.cpu: max -avx2}, other: {guests.vm.cpu: qemu64 -svm}"


def _reserved() -> int:
    return int(POOL.read_text())


def _written(folder: Path, points: str, more: str = "") -> str:
    scenario = folder / "given.yaml"
    scenario.write_text(SCENARIO.replace("POINTS", points.replace("\n", " ")) + more)
    return str(scenario)


def _cells(home: Home) -> dict[str, dict[str, Any]]:
    return {cell["axes"]["way"]: cell for cell in home.show()["cells"]}


def _found(cell: dict[str, Any]) -> dict[str, str]:
    assert all(one["agrees"] for one in cell["lever_proof"]), cell["lever_proof"]
    return {one["lever"]: one["found"] for one in cell["lever_proof"]}


@pytest.mark.skipif(not POOL.exists(), reason="this kernel has no huge pages of 2 MiB")
def test_each_is_read_back_and_frozen_guests_have_any_of_them(home: Home, tmp_path: Path) -> None:
    before = _reserved()
    done = home.vmlab("run", _written(tmp_path, WAYS), "--wait")
    assert done.returncode == 0, done.stderr
    cells = _cells(home)
    usual, pinned, pages = (_found(cells[name]) for name in ("usual", "pinned", "pages"))
    assert (usual["pin"], usual["emulator_pin"], usual["memory_lock"]) == ("none", "none", "false")
    assert (pinned["pin"], pinned["emulator_pin"], pinned["ksm"]) == ("0", "0", "false")
    assert (len(pages["pin"].split(";")), pages["huge_pages"]) == (min(2, os.cpu_count() or 1), "2 MiB")
    assert len({*(next(iter(cell["provision"]["snapshots"].values())) for cell in cells.values())}) == 1
    assert _reserved() == before and home.leftovers() == []


def test_a_processor_is_found_in_the_guest_too(home: Home, tmp_path: Path) -> None:
    done = home.vmlab("run", _written(tmp_path, COLD, "provision: cold\n"))
    assert done.returncode == 0, done.stderr
    for cell in _cells(home).values():
        by_qemu, inside = cell["lever_proof"]
        assert by_qemu["agrees"] and inside["agrees"]
        assert inside["by"] == "/proc/cpuinfo of the guest" and inside["found"].startswith("QEMU ")


@pytest.mark.skipif(uefi_loader() is None, reason="the package ovmf is not installed")
@pytest.mark.parametrize("provision", [pytest.param("provision: cold\n", marks=pytest.mark.nightly), ""])
def test_boards_and_firmware_are_found_in_the_guest_too(home: Home, tmp_path: Path, provision: str) -> None:
    done = home.vmlab("run", _written(tmp_path, BOARDS, provision))
    assert done.returncode == 0, done.stderr
    cells = _cells(home)
    for way, board, firmware in (("usual", "q35", "bios"), ("pc", "pc", "bios"), ("uefi", "q35", "uefi")):
        proofs = [(one["lever"], one["found"], one["agrees"]) for one in cells[way]["lever_proof"]]
        assert proofs == [("machine", board, True), ("firmware", firmware, True)] * 2
    assert home.leftovers() == []


@contextmanager
def _meanwhile(step: Callable[[], object]) -> Iterator[None]:
    """Do it again and again while the block runs."""
    ended = threading.Event()

    def until_ended() -> None:
        while not ended.wait(0.02):
            with suppress(OSError):
                step()

    thread = threading.Thread(target=until_ended)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _let_loose(home: Home) -> None:
    """Have the virtual CPUs of this home's guests run anywhere."""
    for pid in home.processes():
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().startswith("CPU "):
                os.sched_setaffinity(int(task.name), range(os.cpu_count() or 1))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one CPU")
def test_threads_that_were_let_loose_make_the_cell_invalid(home: Home, tmp_path: Path) -> None:
    with _meanwhile(lambda: _let_loose(home)):
        done = home.vmlab("run", _written(tmp_path, "one: {guests.vm.pin: 0}"))
    assert done.returncode == 4, done.stderr
    (cell,) = home.show()["cells"]
    assert cell["outcome"] == "invalid"
    assert cell["reasons"][0].startswith("vm: pin is 0,1") and "not 0 as was asked" in cell["reasons"][0]


@pytest.mark.skipif(not POOL.exists(), reason="this kernel has no huge pages of 2 MiB")
@pytest.mark.parametrize("victim", ["runner", pytest.param("stop", marks=pytest.mark.nightly)])
def test_huge_pages_are_given_back_after_any_end(home: Home, tmp_path: Path, victim: str) -> None:
    before = _reserved()
    running = home.spawn("run", _written(tmp_path, ONE), "--wait", "--set", "workloads.primes.events=1000000")
    wait_until(lambda: [one for one in home.events() if one["kind"] == "WorkloadStarted"], 300, "the workload")
    assert _reserved() == before + 128
    if victim == "runner":
        (runner,) = [pid for pid in home.processes() if b"vmlab.lab.run.runner" in _command(pid)]
        os.kill(runner, signal.SIGKILL)
    else:
        assert home.vmlab("stop").returncode == 0
    running.communicate(timeout=200)
    assert _reserved() == before and home.leftovers() == []


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
