"""``vmlab top`` as a command on other people's hosts: their files are bound over /proc in a mount namespace of its own.

One run shows what each rule comes to: a CPU that was taken off and on is left out of the whole host, a disk whose I/O
the kernel counts on its path alone has that path's figures, and parts of memory that exceed the whole leave nothing
that is known.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vmlab.model.places import runs_folder

STAT = """\
cpu  132 0 177 225248 46 6 5 20 0 0
cpu0 80 0 {system} {idle} 33 3 4 18 0 0
cpu1 52 0 60 {of_cpu1} 0 0 1 2 0 0
intr 1 0 0
ctxt 1
btime 1
processes 10
procs_running 1
procs_blocked 0
"""
DISKSTATS = """\
   0       0 nvme0c0n1 {reads} 74843 4815165730 {waits} 4187610 1925219 6989322264 47813633 0 {busy} 118897696
 259       1 nvme0n1 0 0 0 0 0 0 0 0 0 0 0
"""
MEMINFO = """\
MemTotal:         998384 kB
MemFree:          987608 kB
Buffers:               0 kB
Cached:             7480 kB
AnonPages:         88216 kB
Slab:                  0 kB
SReclaimable:      65580 kB
"""
COMMAND = """
set -e
for name in stat diskstats meminfo; do mount --bind "$0/$name" "/proc/$name"; done
mount --bind "$0/devices" /sys/dev/block
exec "$@"
"""


def in_place(file: Path, text: str) -> None:
    """One write over a text of the same length, so that a reader sees the one or the other."""
    assert len(text) == file.stat().st_size
    with file.open("r+b", buffering=0) as opened:
        opened.write(text.encode())


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """The files of another host, which says that the runs of this one lie on nvme0n1."""
    bind = ["unshare", "-m", "--propagation", "private", "mount", "--bind", "/dev/null", "/proc/stat"]
    if subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("a mount namespace takes root")
    (tmp_path / "stat").write_text(STAT.format(system=115, idle=112575, of_cpu1=112673))
    (tmp_path / "diskstats").write_text(DISKSTATS.format(reads=34706049, waits=93876201, busy=45557635))
    (tmp_path / "meminfo").write_text(MEMINFO)
    near = next(folder for folder in (runs_folder(), *runs_folder().parents) if folder.exists()).stat().st_dev
    (tmp_path / "devices/host/nvme0n1").mkdir(parents=True)
    (tmp_path / "devices" / f"{os.major(near)}:{os.minor(near)}").symlink_to("host/nvme0n1")
    return tmp_path


def first(lines: list[dict[str, Any]], figure: str) -> dict[str, Any] | None:
    """The first line in which the figure is known and not 0."""
    return next((line for line in lines if line[figure]), None)


def test_what_other_hosts_count_is_right_or_unknown(others: Path) -> None:
    top = [sys.executable, "-m", "vmlab", "top", "--json", "--interval", "1"]
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", COMMAND, str(others), *top]
    lines: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        lines.append(json.loads(running.stdout.readline()))
        # So little that the shortest tick of a busy machine has time for it.
        in_place(others / "stat", STAT.format(system=116, idle=112584, of_cpu1="   183"))
        in_place(others / "diskstats", DISKSTATS.format(reads=34706149, waits=93876401, busy=45557725))
        while not (first(lines, "cpu_idle_percent") and first(lines, "disk_reads_per_second")):
            assert len(lines) < 60, lines
            lines.append(json.loads(running.stdout.readline()))
        running.send_signal(signal.SIGINT)
        assert running.wait(240) == 130
    assert all(line["memory_used_bytes"] is None for line in lines)
    assert all(line["memory_free_bytes"] == 987608 * 1024 for line in lines)
    cpu, disk = first(lines, "cpu_idle_percent"), first(lines, "disk_reads_per_second")
    assert cpu is not None
    assert disk is not None
    assert (cpu["cpu_system_percent"], cpu["cpu_idle_percent"]) == pytest.approx((10.0, 90.0))
    assert disk["disk_reads_per_second"] == pytest.approx(100 / disk["tick_length_seconds"])
    assert disk["disk_util_percent"] == pytest.approx(9 / disk["tick_length_seconds"])
    assert disk["disk_await_ms"] == 2.0
