"""Counters that are read before and after a span: kernel threads, heat, quotas; from files as kernels make them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.telemetry.host_counters import Between, HostCounters, host_counters
from vmlab.telemetry.source import Roots

TICKS = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count() or 1
KERNEL, USER = 0x00208040, 0x00400100


def task(roots: Roots, pid: int, name: str, seconds: float, flags: int = KERNEL, start: int = 7) -> None:
    """A process as /proc/PID/stat shows it."""
    folder = roots.host_proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    system = int(seconds * TICKS)
    rest = [str(flags), "0", "0", "0", "0", "0", str(system), "0", "0", "20", "0", "1", "0", str(start), "0"]
    (folder / "stat").write_text(" ".join([str(pid), f"({name})", "S", "2", "0", "0", "0", "-1", *rest]))


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "host")


def share(roots: Roots, before: HostCounters, seconds: float = 10.0) -> Between:
    now = host_counters(roots)
    return before.until(replace(now, mono=before.mono + seconds, neighbours={}))


def test_kernel_threads_alone_are_added_up_and_softirq_s_are_not(roots: Roots) -> None:
    for seconds in (1.0, 3.0):
        task(roots, 20, "kworker/u8:1-flush-254:0", seconds)
        task(roots, 21, "loop0", seconds)
        task(roots, 22, "ksoftirqd/0", seconds)
        task(roots, 23, "a (strange) name", seconds, USER)
        if seconds == 1.0:
            before = host_counters(roots)
    assert share(roots, before).kernel_threads_percent == pytest.approx(4.0 / 10 / CPUS * 100)


def test_a_thread_that_is_new_counts_whole_also_under_a_pid_that_another_one_had(roots: Roots) -> None:
    task(roots, 20, "kworker/0:1", 50.0, start=7)
    before = host_counters(roots)
    task(roots, 20, "kworker/0:2", 1.0, start=900)
    assert share(roots, before).kernel_threads_percent == pytest.approx(1.0 / 10 / CPUS * 100)


def test_caches_that_are_emptied_are_counted(roots: Roots) -> None:
    for pages, names in ((1, 2), (2, 2), (2, 3)):
        (roots.proc).mkdir(exist_ok=True)
        (roots.proc / "vmstat").write_text(f"nr_free_pages 7\ndrop_pagecache {pages}\ndrop_slab {names}\n")
        if pages == 1:
            before = host_counters(roots)
    assert share(roots, before).caches_dropped == 2


def test_time_in_which_the_host_slept_is_known_by_its_clocks(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    before, clock = host_counters(roots), time.clock_gettime
    assert share(roots, before).suspended == 0
    monkeypatch.setattr(time, "clock_gettime", lambda which: clock(which) + 25)
    assert share(roots, before).suspended == 25


def test_heat_is_every_throttling_of_cores_and_packages(roots: Roots) -> None:
    folder = roots.sys / "devices/system/cpu/cpu0/thermal_throttle"
    folder.mkdir(parents=True)
    for core, package in ((5, 1), (7, 2)):
        (folder / "core_throttle_count").write_text(f"{core}\n")
        (folder / "package_throttle_count").write_text(f"{package}\n")
        if core == 5:
            before = host_counters(roots)
    assert share(roots, before).heat == 3


def test_what_cannot_be_or_began_anew_is_not_counted_as_growth() -> None:
    """The rule: no thread gains more than passed, and a counter that went back counts from 0."""
    before = HostCounters(0.0, {(1, 1): 5.0, (2, 1): 5.0, (3, 1): 90.0}, {"a": 7, "b": 5}, {"x": 100.0, "y": 50.0})
    later = HostCounters(10.0, {(1, 1): 6.0, (2, 1): 500.0, (3, 1): 2.0}, {"a": 8, "b": 3}, {"x": 1e9, "y": 1.0})
    between = before.until(later)
    assert between.kernel_threads_percent == pytest.approx(3.0 / 10 / CPUS * 100)
    assert between.heat == 4
    assert between.held_back_percent == pytest.approx(1.0 / 10 / CPUS * 100)


def test_a_process_of_another_form_is_passed_over(roots: Roots) -> None:
    task(roots, 20, "loop0", 1.0)
    for pid, text in ((21, ""), (22, "22 (loop1) S 2"), (23, "23 (loop2) S 2 0 0 0 -1 x")):
        (roots.host_proc / str(pid)).mkdir()
        (roots.host_proc / str(pid) / "stat").write_text(text)
    assert list(host_counters(roots).kernel_threads) == [(20, 7)]


@pytest.mark.parametrize(
    ("line", "folder", "text"),
    [
        ("0::/lab.slice/run.scope", "fs/cgroup/lab.slice", "nr_throttled 3\nthrottled_usec {}\n"),
        ("0::/run", "fs/cgroup/unified/run", "throttled_usec {}\n"),
        ("4:cpu,cpuacct:/lab/run", "fs/cgroup/cpu,cpuacct/lab/run", "nr_periods 9\nthrottled_time {}000\n"),
    ],
)
def test_a_quota_is_found_on_each_cgroup_above(roots: Roots, line: str, folder: str, text: str) -> None:
    (roots.proc / "self").mkdir(parents=True)
    (roots.proc / "self/cgroup").write_text(f"{line}\n")
    (roots.sys / folder).mkdir(parents=True)
    for micros in (1_000_000, 3_000_000):
        (roots.sys / folder / "cpu.stat").write_text(text.format(micros))
        if micros == 1_000_000:
            before = host_counters(roots)
    assert share(roots, before).held_back_percent == pytest.approx(2.0 / 10 / CPUS * 100)


def test_a_host_without_any_of_it_has_none(roots: Roots) -> None:
    assert share(roots, host_counters(roots)) == Between()
    assert host_counters(roots).until(host_counters(roots)).kernel_threads_percent == 0


def test_this_host_has_kernel_threads_or_hides_them() -> None:
    seen = host_counters()
    assert all(seconds >= 0 for seconds in seen.kernel_threads.values())
