"""The lab's own CPU, and what the host did beside it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.telemetry.recorded import STAT, RecordedHost
from vmlab.telemetry.host.host_cpu import CpuShares
from vmlab.telemetry.lab_cpu import HostsProcesses, NamespaceCpu, OutsideLab

INIT = "1 (an init) with) brackets) S 0 1 1 0 -1 4 5 6 7 8 10 20 30 40 20 0 1 0 1 1 1\n"


class Clocks:
    """CPU clocks of made-up processes by pid, in nanoseconds."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}

    def __call__(self, clock: int) -> int:
        pid = ~(clock >> 3)
        if pid not in self.used:
            raise OSError
        return self.used[pid]


@pytest.fixture
def clocks(host: RecordedHost) -> Clocks:
    host.proc("1/stat", INIT)
    for pid in (100, 101):
        (host.root / "proc" / str(pid)).mkdir()
    made = Clocks()
    made.used = {4194305: 0, 1: 5_000_000, 100: 2_000_000_000, 101: 3_000_000_000}
    return made


def test_all_processes_and_what_init_reaped_are_the_lab(host: RecordedHost, clocks: Clocks) -> None:
    lab = NamespaceCpu(host.roots, clocks)
    children = os.times().children_user + os.times().children_system
    assert lab() == pytest.approx(5.005 + (30 + 40) / os.sysconf("SC_CLK_TCK") + children)


def test_a_process_that_comes_is_found_by_the_last_pid(host: RecordedHost, clocks: Clocks) -> None:
    lab = NamespaceCpu(host.roots, clocks)
    before = lab()
    (host.root / "proc/102").mkdir()
    clocks.used[102] = 7_000_000_000
    assert lab() == before
    host.proc("loadavg", "0.87 0.51 0.20 3/120 4712\n")
    assert lab() == pytest.approx(before + 7)


def test_a_process_that_ended_moves_to_who_reaped_it(host: RecordedHost, clocks: Clocks) -> None:
    lab = NamespaceCpu(host.roots, clocks)
    before = lab()
    del clocks.used[101]
    (host.root / "proc/101").rmdir()
    reaped = 300 * os.sysconf("SC_CLK_TCK") // 100
    host.proc("1/stat", INIT.replace("30 40", f"{30 + reaped} 40"))
    assert lab() == pytest.approx(before)
    assert lab() == pytest.approx(before)


_A_REAL_CHILD = """
import subprocess, sys
from vmlab.telemetry.lab_cpu import HostsProcesses, NamespaceCpu
from vmlab.telemetry.source import Roots

lab = NamespaceCpu(Roots())
before = lab()
spin = "import time\\nwhile time.process_time() < 0.5: pass\\nprint(flush=True)\\ninput()"
with subprocess.Popen([sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
    child.stdout.readline()
    running = lab()
    child.communicate(b"\\n")
print(running - before, lab() - before)
"""


def test_a_real_child_counts_while_it_runs_and_after_it_ended() -> None:
    # In a PID namespace of its own, as a lab has one: other processes of this host come and go.
    argv = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", _A_REAL_CHILD]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    assert all(float(seconds) > 0.45 for seconds in done.stdout.split())


def test_nothing_counts_twice_where_this_process_is_init(
    host: RecordedHost, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    children = os.times().children_user + os.times().children_system
    assert NamespaceCpu(host.roots, clocks)() == pytest.approx(5.005 + children)


def test_other_work_is_all_work_less_the_labs(host: RecordedHost, clocks: Clocks) -> None:
    cpu = CpuShares(host.roots)
    outside = OutsideLab(host.roots, cpu, "namespace")
    outside._lab = NamespaceCpu(host.roots, clocks)
    for group in (cpu, outside):
        group.read(0.0, 1.0)
    host.proc("stat", STAT.replace("cpu0 100 10 60 1000", "cpu0 150 10 60 1000").replace("60 1000", "60 1050", 2))
    clocks.used[100] += 500_000_000
    cpu.read(1.0, 1.0)
    other, lab = outside.read(1.0, 1.0)
    assert lab == pytest.approx(25.0), "half a second of two CPUs"
    assert other == pytest.approx(cpu.busy_percent - 25.0)


def test_the_process_of_an_emulated_disk_is_neither_the_labs_work_nor_others(
    host: RecordedHost, clocks: Clocks
) -> None:
    cpu = CpuShares(host.roots)
    outside = OutsideLab(host.roots, cpu, "namespace", apart=101)
    namespace = NamespaceCpu(host.roots, clocks, apart=101)
    outside._lab, outside._apart = namespace, namespace.apart_seconds
    assert outside.names[2] == "cpu_emulated_disk_percent"
    for group in (cpu, outside):
        group.read(0.0, 1.0)
    host.proc("stat", STAT.replace("cpu0 100 10 60 1000", "cpu0 150 10 60 1000").replace("60 1000", "60 1050", 2))
    clocks.used[100] += 100_000_000
    clocks.used[101] += 400_000_000
    cpu.read(1.0, 1.0)
    other, lab, apart = outside.read(1.0, 1.0)
    assert [lab, apart] == pytest.approx([5.0, 20.0]), "of two CPUs"
    assert other == pytest.approx(cpu.busy_percent - 25.0)
    del clocks.used[101]
    cpu.busy_percent = 40.0
    other, lab, apart = outside.read(2.0, 1.0)
    assert math.isnan(apart), "one that has ended has no figure"
    assert other + lab == pytest.approx(40.0)


def test_without_an_emulated_disk_there_is_no_figure_of_it(host: RecordedHost) -> None:
    assert OutsideLab(host.roots, CpuShares(host.roots), "namespace").names == (
        "cpu_outside_lab_percent",
        "cpu_lab_percent",
    )


def test_a_shortfall_is_taken_off_the_next_ticks(host: RecordedHost) -> None:
    cpu = CpuShares(host.roots)
    used = iter([0.0, 0.21, 0.39, 0.59])
    outside = OutsideLab(host.roots, cpu, "process")
    outside._lab = lambda: next(used)
    cpu.count = 1
    shares = []
    for _ in range(4):
        cpu.busy_percent = 20.0
        shares.append(outside.read(time.monotonic(), 1.0)[0])
    assert shares[1:] == pytest.approx([0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("used", "lab"),
    [(10.5, 50.0), (11.0, 100.0), (10.0 - 1e-3, 0.0), (8.0, math.nan), (12.5, math.nan), (math.nan, math.nan)],
)
def test_a_lab_that_used_less_than_before_or_more_than_all_cpus_is_unknown(
    host: RecordedHost, used: float, lab: float
) -> None:
    cpu = CpuShares(host.roots)
    readings = iter([10.0, used])
    outside = OutsideLab(host.roots, cpu, "process")
    outside._lab = lambda: next(readings)
    cpu.count, cpu.busy_percent = 1, 100.0
    outside.read(0.0, 1.0)
    assert outside.read(1.0, 1.0) == pytest.approx([100.0 - lab, lab], nan_ok=True)


def stat_of(user: int, system: int) -> str:
    return f"7 (qemu) bar) S 1 1 1 0 -1 4194560 1 2 3 4 {user} {system} 0 0 20 0 3 0 100 1 1"


def test_guests_outside_of_the_namespace_count_as_the_labs_own_also_when_they_have_ended(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    pids = [7, 8]
    for pid, user in ((7, ticks), (8, 3 * ticks)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(stat_of(user, ticks))
    used = HostsProcesses(tmp_path, lambda: pids)
    assert used() == pytest.approx(6)
    (tmp_path / "7" / "stat").write_text(stat_of(2 * ticks, ticks))
    pids.remove(8)
    assert used() == pytest.approx(7), "what a guest has used stays used"
    (tmp_path / "7" / "stat").unlink()
    assert used() == pytest.approx(7)
