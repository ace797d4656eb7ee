"""What stands still in part, or is held back or changed from outside, while the workloads of a cell run."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.row import Act, Rows
from tests.faults.rows.b_kills import disk_server
from tests.faults.world import READING_EMULATED, SCENARIO, STRUCK, TWO_CELLS, World, beside, on_a_disk
from vmlab.system.mounts import hierarchies, mount_of

ROWS = Rows()
Harm = Callable[[World], object]
"""Does it, and undoes it."""
_LONG = SCENARIO.replace("events: 2500", "events: 6000")
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
"""Requests of ptrace(2)."""


def _row(name: str, done: str, told: str, text: str = _LONG) -> Callable[[Harm], Harm]:
    """A row whose harm makes the second cell invalid, for a reason with `told` in it."""

    def kept(harm: Harm) -> Harm:
        ROWS.add(name, done, "cell 2 invalid, with cause and duration", 240)(_act(harm, told, text))
        return harm

    return kept


def _act(harm: Harm, told: str, text: str) -> Act:
    def act(world: World) -> str:
        running = world.run(text)
        world.wait_for("WorkloadStarted", cell=STRUCK)
        world.strike()
        harm(world)
        words = world.end_of(running, 240)
        world.is_over()
        said = world.reason()
        assert running.returncode == 4, (running.returncode, words)
        assert told in said, said
        return said

    return act


def _vcpu(world: World) -> int:
    """The thread of the guest's only virtual CPU."""
    for task in Path(f"/proc/{world.qemu}/task").iterdir():
        if (task / "comm").read_text().startswith("CPU 0/"):
            return int(task.name)
    raise AssertionError("QEMU has no thread of a virtual CPU")


def _cpu_group(pid: int) -> Path:
    """The folder of a process's cgroup that has its CPU shares."""
    mount = mount_of("cpu", hierarchies())
    assert mount is not None, "no cgroups count CPU time here"
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, inner = line.split(":", 2)
        if ("cpu" in controllers.split(",")) if mount.version == 1 else not controllers:
            return mount.root / inner.lstrip("/")
    raise AssertionError(f"process {pid} is in no such cgroup")


def _partition(pid: int) -> Path:
    group = _cpu_group(pid)
    return next(one for one in (group, *group.parents) if one.parent in {mount.root for mount in hierarchies()})


@contextmanager
def _with(file: Path, value: str, was: str | None = None) -> Iterator[None]:
    """The file has this value meanwhile."""
    before = file.read_text().strip() if was is None else was
    file.write_text(value)
    try:
        yield
    finally:
        file.write_text(before)


@_row("vcpu-frozen", "a cgroup freezes only the thread of a virtual CPU, for 2.5 s", "frozen by its cgroup for")
def vcpu_frozen(world: World) -> None:
    mount = mount_of("freezer", [one for one in hierarchies() if one.version == 1])
    assert mount is not None, "no freezer that takes single threads here"
    thread, group = _vcpu(world), mount.root / f"vmlab-fault-{os.getpid()}-{world.folder.name}"
    group.mkdir()
    try:
        (group / "tasks").write_text(str(thread))
        with _with(group / "freezer.state", "FROZEN", "THAWED"):
            time.sleep(2.5)
        (mount.root / "tasks").write_text(str(thread))
    finally:
        group.rmdir()


def _ptrace(request: int, thread: int) -> None:
    assert ctypes.CDLL(None).ptrace(request, thread, None, None) == 0, f"ptrace {request:#x} is refused"


def _trace(thread: int, seconds: float) -> None:
    _ptrace(_SEIZE, thread)
    _ptrace(_INTERRUPT, thread)
    stat = Path(f"/proc/{thread}/task/{thread}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "t":
        time.sleep(0.001)
    time.sleep(seconds)
    _ptrace(_DETACH, thread)


@_row("vcpu-traced", "a debugger stops only the thread of a virtual CPU, for 2.5 s", "stopped by a debugger for")
def vcpu_traced(world: World) -> None:
    _trace(_vcpu(world), 2.5)


@_row(
    "vcpu-traced-often",
    "a debugger stops the thread of a virtual CPU 50 ms of each 100 ms, for 5 s",
    "stopped by a debugger for",
)
def vcpu_traced_often(world: World) -> None:
    thread, end = _vcpu(world), time.monotonic() + 5
    while time.monotonic() < end:
        _trace(thread, 0.05)
        time.sleep(0.05)


@_row(
    "disk-stopped-often",
    "SIGSTOP of the emulated disk's process for 90 ms of each 100 ms, for 5 s, while the guest reads from it",
    "disk's process was stopped for",
    READING_EMULATED,
)
def disk_stopped_often(world: World) -> None:
    victim, end = disk_server(), time.monotonic() + 5
    while time.monotonic() < end:
        os.kill(victim, signal.SIGSTOP)
        time.sleep(0.09)
        os.kill(victim, signal.SIGCONT)
        time.sleep(0.01)


def _throttled(group: Path) -> None:
    mount = mount_of("cpu", hierarchies())
    assert mount is not None
    file, none = ("cpu.cfs_quota_us", "-1") if mount.version == 1 else ("cpu.max", "max")
    with _with(group / file, "15000", none):
        time.sleep(5)


@_row("guest-throttled", "a CPU quota of 15 % on the guest's cgroup for 5 s", "was changed from")
def guest_throttled(world: World) -> None:
    _throttled(_cpu_group(world.qemu).parent)


@_row("partition-throttled", "a CPU quota of 15 % on the cgroup above all guests for 5 s", "was changed from")
def partition_throttled(world: World) -> None:
    _throttled(_partition(world.qemu))


@_row("weight-changed", "the CPU weight of the guest's cgroup is set to the minimum for 3 s", "was changed from")
def weight_changed(world: World) -> None:
    group = _cpu_group(world.qemu).parent
    file = group / "cpu.shares"
    with _with(file, "2") if file.exists() else _with(group / "cpu.weight", "1"):
        time.sleep(3)


@_row("cpus-changed", "the thread of a virtual CPU is bound to one CPU for 3 s", "was changed from CPUs")
def cpus_changed(world: World) -> None:
    thread = _vcpu(world)
    usual = os.sched_getaffinity(thread)
    os.sched_setaffinity(thread, {min(usual)})
    time.sleep(3)
    os.sched_setaffinity(thread, usual)


@_row("qemu-moved", "QEMU is moved to a new cgroup of the disk controller for 3 s", "was changed from its own to")
def qemu_moved(world: World) -> None:
    mount = mount_of("blkio", hierarchies()) or next(one for one in hierarchies() if one.version == 2)
    inner = next(
        line.rpartition(":")[2]
        for line in Path(f"/proc/{world.qemu}/cgroup").read_text().splitlines()
        if mount.version == 2 or "blkio" in line
    )
    usual, group = mount.root / inner.lstrip("/"), mount.root / f"vmlab-fault-{os.getpid()}-{world.folder.name}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(world.qemu))
        time.sleep(3)
        (usual / "cgroup.procs").write_text(str(world.qemu))
    finally:
        group.rmdir()


_STRICT = _LONG.replace("allow: {noise: true}\n", "").replace(
    "limits: {", "limits: {host_other_percent: 100, host_steal_percent: 100, memory_pressure_percent: 100, "
)
"""What else the machine does spoils no cell, and what empties its caches does."""


@_row("caches-dropped", "the host's page cache is emptied by another program", "caches were emptied", _STRICT)
def caches_dropped(_world: World) -> None:
    Path("/proc/sys/vm/drop_caches").write_text("1")


@ROWS.add(
    "setting-changed",
    "the read-ahead of the run's disk is changed for 3 s by another program",
    "cell 2 invalid, with cause and duration",
    240,
)
def setting_changed(world: World) -> str:
    # A disk of the row's own: no setting of the machine itself is changed.
    world.small_disk(world.home.state, 800)
    device = world.home.state.stat().st_dev
    (setting,) = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue").glob("read_ahead_kb")

    def harm(_world: World) -> None:
        with _with(setting, "64"):
            time.sleep(3)

    return _act(harm, "read_ahead_kb was changed from", _LONG)(world)


@_row("tap-down", "the guest's tap is down for 3 s", "the state of link")
def tap_down(world: World) -> None:
    inside = ["nsenter", "-t", str(world.runner["runner_pid"]), "-n", "ip"]
    shown = subprocess.run([*inside, "-o", "link", "show", "type", "tun"], capture_output=True, text=True, check=True)
    tap = shown.stdout.split(": ")[1]
    for state, seconds in (("down", 3), ("up", 0)):
        subprocess.run([*inside, "link", "set", tap, state], check=True)
        time.sleep(seconds)


ROWS.add(
    "client-stopped",
    "SIGSTOP of the client inside its guest for 3 s, then SIGCONT",
    "cell 2 invalid, with the duration",
    240,
)(
    _act(
        lambda _world: None,
        "its client was stopped inside its guest for",
        beside("sleep 1; pkill -STOP sysbench; sleep 3; pkill -CONT sysbench"),
    )
)

_FREEZE = "mkdir /sys/fs/cgroup/cold; cd /sys/fs/cgroup/cold; pgrep sysbench >cgroup.procs; echo 1 >cgroup.freeze"
ROWS.add(
    "client-frozen",
    "the client is moved to a new cgroup inside its guest, which is frozen for 3 s",
    "cell 2 invalid, with the duration",
    240,
)(
    _act(
        lambda _world: None,
        "was frozen inside its guest for",
        beside(f"sleep 1; {_FREEZE}; sleep 3; echo 0 >cgroup.freeze"),
    )
)

_SLOW = (
    "cd /sys/fs/cgroup; echo +cpu >cgroup.subtree_control; mkdir slow; pgrep sysbench >slow/cgroup.procs;"
    ' echo "15000 100000" >slow/cpu.max; sleep 4; echo max >slow/cpu.max'
)
ROWS.add(
    "client-throttled",
    "a CPU quota of 15 % on the client's cgroup inside its guest, for 4 s",
    "cell 2 invalid, with the duration",
    240,
)(_act(lambda _world: None, "slow was throttled inside its guest for", beside(f"sleep 1; {_SLOW}")))

_ONLINE = "/sys/devices/system/cpu/cpu1/online"
ROWS.add(
    "cpu-offline",
    "a virtual CPU is taken offline inside its guest for 3 s",
    "cell 2 invalid, with the duration",
    240,
)(
    _act(
        lambda _world: None,
        "a processor was offline inside its guest for",
        beside(f"sleep 1; echo 0 >{_ONLINE}; sleep 3; echo 1 >{_ONLINE}").replace("vcpus: 1", "vcpus: 2"),
    )
)


@ROWS.add(
    "file-system-frozen",
    "fsfreeze of the file system of the guest's data disk for 3 s, while the guest writes to it",
    "cell 2 invalid, with cause and duration",
    240,
)
def file_system_frozen(world: World) -> str:
    place = world.folder / "disks"
    world.small_disk(place, 200)

    def harm(_world: World) -> None:
        # fio itself takes a while to start.
        time.sleep(2)
        subprocess.run(["fsfreeze", "--freeze", place], check=True)
        try:
            time.sleep(3)
        finally:
            subprocess.run(["fsfreeze", "--unfreeze", place], check=True)

    writing = on_a_disk("rw: randwrite, size: 16 MiB, time: 8 s").replace("data:", f'backing: "folder:{place}", data:')
    return _act(harm, "stopped by a frozen file system for", writing)(world)


_SERVED = f"""\
name: struck
guests: {{near: {{vcpus: 1, memory: 256 MiB}}, far: {{vcpus: 1, memory: 256 MiB}}}}
workloads:
  work: {{kind: iperf3, from: near, to: far, time: 8 s}}
  bad: {{kind: misdeed, on: far, from_cell: 2, do: 'sleep 2; pkill -STOP iperf3; sleep 3; pkill -CONT iperf3'}}
{TWO_CELLS}"""
ROWS.add(
    "server-stopped",
    "SIGSTOP of the server inside its guest for 3 s, then SIGCONT",
    "cell 2 invalid, with the duration",
    240,
)(_act(lambda _world: None, "far: iperf3 was stopped inside its guest for", _SERVED))
