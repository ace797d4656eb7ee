"""Values that must not change while workloads run: real cgroups, threads and files of the kernel's form."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lab.faked import until
from tests.telemetry.conftest import running
from vmlab.system.mounts import Mount, cpu_list, hierarchies, mount_of
from vmlab.telemetry.source import Roots
from vmlab.telemetry.steady_values import LabValues, SteadyValues, Throttled, setting_files


def test_a_value_that_is_changed_and_put_back_is_told_with_its_time(tmp_path: Path) -> None:
    setting, steady = tmp_path / "setting", tmp_path / "steady"
    setting.write_text("always [madvise] never\n")
    steady.write_text("7\n")
    values = SteadyValues()
    for file in (setting, steady):
        values.add(file.name, file.read_bytes)
    values.look(0.0)
    setting.write_text("[always] madvise never\n")
    values.look(1.0)
    values.look(2.0)
    setting.write_text("always [madvise] never\n")
    values.look(3.5)
    values.look(9.0)
    (found,) = values.changed(9.0)
    assert (found.what, found.was, found.became, found.seconds) == ("setting", "madvise", "always", 2.5)


def test_a_value_that_stays_changed_lasts_until_the_end_and_one_that_goes_is_no_change(tmp_path: Path) -> None:
    stays, goes = tmp_path / "stays", tmp_path / "goes"
    stays.write_text("1")
    goes.write_text("1")
    values = SteadyValues()
    for file in (stays, goes, tmp_path / "never"):
        values.add(file.name, file.read_bytes)
    stays.write_text("")
    goes.unlink()
    values.look(1.0)
    assert [(one.what, one.became, one.seconds) for one in values.changed(4.0)] == [("stays", "empty", 3.0)]


def looked_at(values: LabValues, now: float, pid: int, cgroups: bytes = b"") -> None:
    values.look(now, [(pid, pid, cgroups)])


def test_what_a_group_and_those_above_it_are_given_is_compared_and_quotas_are_counted(tmp_path: Path) -> None:
    """Files of the kernel's form, of both versions; the group that is above this process is `host_counters`' matter."""
    first, second, proc = tmp_path / "cpu", tmp_path / "unified", tmp_path / "proc"
    guest, slice_ = first / "machine/guest/vcpu0", second / "machine.slice"
    for folder in (guest, slice_, proc / "self", tmp_path / "sys"):
        folder.mkdir(parents=True)
    (proc / "self/cgroup").write_text("1:cpu:/\n0::/\n")
    (first / "machine/cpu.shares").write_text("1024\n")
    (first / "machine/cpu.stat").write_text("nr_periods 0\nnr_throttled 0\nthrottled_time 0\n")
    (guest / "cpu.stat").write_text("nr_periods 9\nnr_throttled 0\nthrottled_time 500000000\n")
    (slice_ / "cpu.stat").write_text("usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n")
    (slice_ / "cpu.max").write_text("max 100000\n")
    (first / "cpu.stat").write_text("throttled_time 1\n")
    mounts = [Mount(first, frozenset({"cpu"}), 1), Mount(second, frozenset({"cpuacct"}), 2)]
    values = LabValues(mounts, (), Roots(proc, tmp_path / "sys", proc))
    cgroups = b"4:memory:/elsewhere\n1:cpu:/machine/guest/vcpu0\n0::/machine.slice\n"
    looked_at(values, 0.0, os.getpid(), cgroups)
    assert values.throttled() == [] and values.changed(0.0) == []
    (first / "machine/cpu.shares").write_text("2\n")
    (slice_ / "cpu.max").write_text("15000 100000\n")
    (slice_ / "cpu.stat").write_text("usage_usec 5\nnr_throttled 50\nthrottled_usec 4250000\n")
    (guest / "cpu.stat").write_text("nr_periods 9\nnr_throttled 1\nthrottled_time 1500000000\n")
    (first / "cpu.stat").write_text("throttled_time 9000000000\n")
    looked_at(values, 1.0, os.getpid(), cgroups)
    changed = [(one.what, one.was, one.became) for one in values.changed(3.0)]
    assert sorted(changed) == [
        (str(first / "machine/cpu.shares"), "1024", "2"),
        (str(slice_ / "cpu.max"), "max 100000", "15000 100000"),
    ]
    pids = frozenset({os.getpid()})
    assert sorted(values.throttled(), key=lambda one: one.seconds) == [
        Throttled(guest, pids, 1.0),
        Throttled(slice_, pids, 4.25),
    ]


def test_a_real_quota_is_counted() -> None:
    mount = mount_of("cpu", hierarchies())
    if mount is None or not os.access(mount.root, os.W_OK):
        pytest.skip("no cgroup with the cpu controller that can be written")
    group = mount.root / f"vmlab-test-{os.getpid()}"
    group.mkdir()
    try:
        with running(["sh", "-c", "while :; do :; done"]) as busy:
            (group / "cgroup.procs").write_text(str(busy))
            cgroups = Path(f"/proc/{busy}/cgroup").read_bytes()
            values = LabValues([mount], ())
            looked_at(values, 0.0, busy, cgroups)
            quota = group / ("cpu.cfs_quota_us" if mount.version == 1 else "cpu.max")
            quota.write_text("2000")

            def is_throttled() -> bool:
                looked_at(values, 1.0, busy, cgroups)
                return bool(values.throttled())

            until(is_throttled, "that it is held back")
        (throttled,) = values.throttled()
        assert throttled.group == group and throttled.seconds > 0
        assert [one.what for one in values.changed(1.0)] == [str(quota)]
    finally:
        until(lambda: _removed(group), "that the group is empty")


def _removed(group: Path) -> bool:
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority again")
@pytest.mark.parametrize("sign", [1, -1])
def test_what_a_thread_of_a_qemu_is_given_is_compared_and_that_of_another_program_is_not(qemu: int, sign: int) -> None:
    """Also of one outside of this PID namespace, whose number is less than 0."""
    with running(["sleep", "600"]) as other:
        threads = [(sign * pid, sign * pid, b"") for pid in (qemu, other)]
        values = LabValues([], ())
        values.look(0.0, threads)
        usual = os.getpriority(os.PRIO_PROCESS, qemu)
        low = 19 if usual < 19 else 18
        for pid in (qemu, other):
            os.setpriority(os.PRIO_PROCESS, pid, low)
        values.look(1.0, threads)
        for pid in (qemu, other):
            os.setpriority(os.PRIO_PROCESS, pid, usual)
        values.look(3.0, threads)
        (found,) = values.changed(4.0)
        assert (found.pid, found.seconds) == (sign * qemu, 2.0)
        cpus = f"CPUs {cpu_list(os.sched_getaffinity(qemu))}, policy 0, nice"
        assert (found.was, found.became) == (f"{cpus} {usual}", f"{cpus} {low}")


def test_cpus_of_a_thread_outside_of_this_pid_namespace_are_those_of_the_hosts_proc(tmp_path: Path) -> None:
    task = tmp_path / "host/7/task/8"
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").touch()
    task.mkdir(parents=True)
    (tmp_path / "host/7/stat").write_text("7 (qemu-system-x86) S 1\n")
    (task / "comm").write_text("CPU 0/KVM\n")
    (task / "stat").write_text(f"8 (CPU 0/KVM) S {' 0' * 15} -5 {' 0' * 21} 3 0 0\n")
    values = LabValues([], (), Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "host"))
    for now, cpus in ((0.0, "0-2"), (1.0, "1,3")):
        (task / "status").write_text(
            f"Name:\tCPU 0/KVM\nCpus_allowed:\tf\nCpus_allowed_list:\t{cpus}\nMems_allowed:\t1\n"
        )
        values.look(now, [(-7, -8, b"")])
    (found,) = values.changed(2.0)
    assert (found.what, found.pid) == ("its thread CPU 0/KVM (8)", -7)
    assert (found.was, found.became) == ("CPUs 0,1,2, policy 3, nice -5", "CPUs 1,3, policy 3, nice -5")


def test_a_qemu_that_is_moved_to_another_cgroup_is_a_change_and_another_program_is_none(qemu: int) -> None:
    with running(["sleep", "600"]) as other:
        values, own = LabValues([], ()), b"5:blkio:/machine\n4:cpu:/machine\n"
        for now, cgroups in ((0.0, own), (1.0, b"5:blkio:/slow\n4:cpu:/machine\n"), (3.0, own)):
            values.look(now, [(qemu, qemu, cgroups), (other, other, cgroups)])
        (found,) = values.changed(4.0)
        assert (found.pid, found.was, found.became, found.seconds) == (qemu, "its own", "5:blkio:/slow", 2.0)


def test_what_a_quota_kept_from_running_before_the_workloads_counts_for_nothing(tmp_path: Path) -> None:
    group, proc = tmp_path / "cpu/guest", tmp_path / "proc"
    for folder in (group, proc / "self", tmp_path / "sys"):
        folder.mkdir(parents=True)
    (proc / "self/cgroup").write_text("1:cpu:/\n")
    values = LabValues([Mount(tmp_path / "cpu", frozenset({"cpu"}), 1)], (), Roots(proc, tmp_path / "sys", proc))
    for now, nanoseconds in ((0.0, 0), (1.0, 3_000_000_000)):
        (group / "cpu.stat").write_text(f"throttled_time {nanoseconds}\n")
        looked_at(values, now, os.getpid(), b"1:cpu:/guest\n")
    values.begin()
    assert values.throttled() == []
    (group / "cpu.stat").write_text("throttled_time 4000000000\n")
    looked_at(values, 2.0, os.getpid(), b"1:cpu:/guest\n")
    assert [one.seconds for one in values.throttled()] == [1.0]


def test_the_swappiness_of_a_group_of_version_1_is_compared(tmp_path: Path) -> None:
    group, proc = tmp_path / "memory/guest", tmp_path / "proc"
    for folder in (group, proc / "self", tmp_path / "sys"):
        folder.mkdir(parents=True)
    (proc / "self/cgroup").write_text("1:memory:/\n")
    values = LabValues([Mount(tmp_path / "memory", frozenset({"memory"}), 1)], (), Roots(proc, tmp_path / "sys", proc))
    for now, swappiness in ((0.0, 60), (1.0, 0), (3.0, 60)):
        (group / "memory.swappiness").write_text(f"{swappiness}\n")
        looked_at(values, now, os.getpid(), b"1:memory:/guest\n")
    (found,) = values.changed(4.0)
    assert (found.what, found.was, found.became) == (str(group / "memory.swappiness"), "60", "0")


def test_settings_are_those_of_the_host_and_of_the_disk_below_the_lab(tmp_path: Path) -> None:
    names = {str(path) for path in setting_files([tmp_path])}
    assert {
        "/sys/kernel/mm/ksm/run",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/proc/sys/vm/swappiness",
    } <= names
    roots = Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "proc")
    device = tmp_path.stat().st_dev
    number = roots.sys / f"dev/block/{os.major(device)}:{os.minor(device)}"
    (roots.sys / "block/sda/queue/iosched").mkdir(parents=True)
    (roots.sys / "block/sda/queue/iosched/read_expire").touch()
    number.parent.mkdir(parents=True)
    number.symlink_to(roots.sys / "block/sda")
    found = {path.name for path in setting_files([tmp_path], roots) if "sda" in path.parts}
    assert {"read_ahead_kb", "scheduler", "read_expire", "suspended"} <= found
    for below in ("sdb", "sdc"):
        (roots.sys / "block" / below / "queue").mkdir(parents=True)
        (roots.sys / "block/sda/slaves").mkdir(exist_ok=True)
        (roots.sys / "block/sda/slaves" / below).symlink_to(roots.sys / "block" / below)
    found = {path.parts[-3] for path in setting_files([tmp_path], roots) if path.name == "scheduler"}
    assert found == {"sda", "sdb", "sdc"}, "an array has its scheduler on each of its disks"


def test_settings_that_decide_how_guests_are_run_are_compared(tmp_path: Path) -> None:
    roots = Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "proc")
    files = [
        "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
        "module/kvm/parameters/halt_poll_ns",
        "devices/system/cpu/cpuidle/current_governor",
        "devices/system/cpu/cpu0/cpuidle/state1/disable",
        "devices/system/cpu/cpufreq/boost",
        "devices/system/cpu/intel_pstate/no_turbo",
    ]
    for file in files:
        (roots.sys / file).parent.mkdir(parents=True, exist_ok=True)
        (roots.sys / file).write_text("0\n")
    found = {str(path.relative_to(roots.sys)) for path in setting_files([], roots) if path.is_relative_to(roots.sys)}
    assert set(files) <= found
    (roots.sys / files[0]).with_name("nr_overcommit_hugepages").write_text("512\n")
    assert roots.sys / files[0] not in setting_files([], roots), "such pages come with what processes touch"


@pytest.mark.parametrize(("advisor", "compared"), [("[none] scan-time", True), ("none [scan-time]", False)])
def test_what_the_kernel_changes_by_itself_is_not_compared(advisor: str, compared: bool, tmp_path: Path) -> None:
    ksm = tmp_path / "sys/kernel/mm/ksm"
    ksm.mkdir(parents=True)
    (ksm / "advisor_mode").write_text(f"{advisor}\n")
    found = setting_files([], Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "proc"))
    assert (ksm / "pages_to_scan" in found) is compared
