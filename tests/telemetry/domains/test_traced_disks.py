"""Disks of the host's own guests by the trace of their block devices."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from tests.telemetry.domains.test_block_events import event
from vmlab.hypervisor.trace_instance import demand_traceable, folder_of
from vmlab.model.domain import BackingFile, Domain, DomainDisk
from vmlab.model.errors import RefusedError
from vmlab.telemetry.domains import traced_disks
from vmlab.telemetry.domains.block_events import Extent, Placed
from vmlab.telemetry.domains.disk_extents import placed, why_not_traced
from vmlab.telemetry.domains.traced_disks import OF_TRACE, TracedDisks
from vmlab.telemetry.source import Roots

DISK = DomainDisk("vda", "/vda", "raw", "none", True, "sda", "file", "ext4")
DOMAIN = Domain("db", "process", 71, disks=(DISK,))


class FakeTrace:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.devices: list[set[tuple[int, int]]] = []

    def trace(self, devices: Collection[tuple[int, int]]) -> None:
        self.devices.append(set(devices))

    def read(self) -> bytes:
        return self.parts.pop(0) if self.parts else b""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"protocol": "host_device", "file_system": ""}, ""),
        ({"protocol": "rbd"}, "QEMU reaches it by rbd, past this host's block devices"),
        ({"file_system": "btrfs"}, "it is on btrfs, whose extents are no offsets on one device"),
        ({"file_system": ""}, "it is on an unknown file system, whose extents are no offsets on one device"),
        ({"o_direct": False}, "through the page cache, which keeps, merges and reorders requests"),
        ({"o_direct": None, "cache": "unknown"}, "through the page cache"),
        ({"format": "qcow2"}, "its format is qcow2, which puts blocks in another order than the guest's"),
        ({"backing": (BackingFile("/base"),)}, "it has a backing file"),
    ],
)
def test_what_would_be_told_wrongly_is_not_traced(changes: dict[str, object], why: str) -> None:
    found = why_not_traced(replace(DISK, **changes))  # type: ignore[arg-type]
    assert (found == "") == (why == "") and why in found


def test_figures_are_of_the_time_between_two_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(traced_disks, "placed", lambda name, *_: Placed(name, ((8, 1), (8, 0)), (Extent(0, 0, 2**40),)))
    trace = FakeTrace()
    said: list[str] = []
    other = replace(DISK, target="vdb", format="qcow2")
    group = TracedDisks(trace, lambda: (replace(DOMAIN, disks=(DISK, other)),), said.append)
    group.look()
    group.look()
    assert trace.devices == [{(8, 1), (8, 0)}] and len(said) == 1 and said[0].startswith("db/vdb is not traced: its")
    group.follow()
    assert [math.isnan(one) for one in group.read(0, 0)] == [False, *[True] * len(OF_TRACE)]
    assert group.names == ("domains_traced_length_seconds", *(f"{metric}[db/vda]" for metric in OF_TRACE))
    text = b"".join(event(at, "bio_queue", "8,1", "R", 8 * at, 8) for at in range(4))
    text += event(3.5, "rq_complete", "8,0", "R ()", 24, 8, "[0]")
    # A line that comes in two parts is one.
    trace.parts = [text[:100], text[100:]]
    group.follow()
    assert dict(zip(("seconds", *OF_TRACE), group.read(0, 0), strict=True)) == {
        "seconds": 1.0,
        **dict.fromkeys(OF_TRACE, 0.0),
        "domain_disk_traced_reads_per_second": 4,
        "domain_disk_traced_sequential_reads_per_second": 3,
        "domain_disk_traced_read_bytes_per_second": 4 * 4096,
        "domain_disk_traced_read_depth": 0.5,
    }
    trace.parts = [b"CPU:0 [LOST 9 EVENTS]\n"]
    group.follow()
    assert all(math.isnan(one) for one in group.read(0, 0)[1:]), "a span of which a part is missing"
    group.follow()
    assert set(group.read(0, 0)[1:]) == {0.0}


def test_a_file_lies_where_its_extents_are(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.write_bytes(os.urandom(2**20))
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
    try:
        found = placed("d", file, Roots())
    except OSError as error:
        pytest.skip(f"this file system has no extents: {error}")
    assert sum(one.length for one in found.extents) == 2**20
    device = file.stat().st_dev
    assert found.devices[0] == (os.major(device), os.minor(device))


@pytest.mark.parametrize(("lacking", "words"), [("instances", "needs tracefs: mount -t tracefs"), ("events", "lacks")])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root traces")
def test_a_host_that_cannot_be_traced_is_refused(tmp_path: Path, lacking: str, words: str) -> None:
    for one in {"instances", "events"} - {lacking}:
        (tmp_path / "kernel/tracing" / one).mkdir(parents=True)
    with pytest.raises(RefusedError, match=words) as refused:
        demand_traceable(Roots(sys=tmp_path))
    assert len(str(refused.value).splitlines()) == 1


def test_only_root_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RefusedError, match="takes root"):
        demand_traceable()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root traces")
def test_this_kernel_traces_a_file_and_nothing_is_left(tmp_path: Path) -> None:
    run = f"test-{os.getpid()}"
    words = "mount -t tracefs nodev /sys/kernel/tracing && test -d /sys/kernel/tracing/events/block || exit 77"
    command = f'{words}; exec "$0" -m tests.telemetry.domains.traced_file "$1" "$2"'
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", command, sys.executable, str(tmp_path), run]
    done = subprocess.run(argv, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this kernel has no events of block devices")
    assert done.returncode == 0, done.stderr
    seen, said, gone, left, other, stands, swept, after = json.loads(done.stdout)
    if said:
        pytest.skip(said[0])
    reads, writes = seen["db/vda R"], seen["db/vda W"]
    assert (reads[0], reads[2]) == (300, 300 * 8192) and reads[1] >= 290, "a file may lie in a few pieces"
    assert (writes[0], writes[2]) == (200, 200 * 8192) and writes[1] <= 40
    assert reads[3] > 0 and writes[3] > 0
    assert gone and left and other == [] and stands and swept == [str(folder_of(run))] and not after
