"""What QEMU says of the requests of a guest's disks: a real one, whose guest has not begun, and one in memory."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.block_layer import BlockLayer
from vmlab.hypervisor.disks.running_disks import read_requests
from vmlab.hypervisor.protocols import DiskRequests
from vmlab.model.errors import HypervisorError

ROOT = "/machine/peripheral/virtio-disk0/virtio-backend"
DATA = "/machine/peripheral/virtio-disk1/virtio-backend"


@contextmanager
def qemu(folder: Path) -> Iterator[BlockLayer]:
    """A QEMU that is stopped, with two disks such as libvirt gives them to a guest."""
    ours, theirs = socket.socketpair()
    words = ["-machine", "q35", "-accel", "tcg", "-m", "32", "-S", "-nodefaults", "-display", "none"]
    for number, queues in ((0, 1), (1, 4)):
        node = {"driver": "null-co", "node-name": f"n{number}", "size": 1 << 20}
        words += ["-blockdev", json.dumps(node)]
        words += ["-device", f"virtio-blk-pci,id=virtio-disk{number},drive=n{number},num-queues={queues}"]
    argv = ["qemu-system-x86_64", *words, "-chardev", f"socket,id=m,fd={theirs.fileno()}", "-mon", "m,mode=control"]
    process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], cwd=folder)
    theirs.close()
    try:
        with ours, ours.makefile("rw") as stream:
            ours.settimeout(60)
            yield BlockLayer(process.pid, stream)
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
def test_a_real_qemu_says_it_of_each_disk(tmp_path: Path) -> None:
    with qemu(tmp_path) as monitor:
        assert read_requests(monitor) == {"root": DiskRequests(0, 0), "data": DiskRequests(0, 0)}


class Monitor:
    """A QEMU whose disks have done, failed and refused requests, and have some in use in each queue."""

    def __init__(self, stats: dict[str, dict[str, int]], in_use: dict[str, list[int]] | None) -> None:
        self._stats = stats
        self._in_use = in_use

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        if command == "query-blockstats":
            drives = [{"device": "", "stats": stats, "qdev": path} for path, stats in self._stats.items()]
            return [*drives, {"device": "cd", "stats": {}}]
        if self._in_use is None:
            raise HypervisorError(f"{command}: The command {command} has not been found")
        if command == "x-query-virtio":
            others = [{"name": "virtio-net", "path": "/machine/peripheral/net0/virtio-backend"}]
            return [*others, *({"name": "virtio-blk", "path": path} for path in self._in_use)]
        assert arguments is not None
        queues = self._in_use[arguments["path"]]
        if command == "x-query-virtio-status":
            return {"num-vqs": len(queues)}
        assert command == "x-query-virtio-queue-status"
        return {"inuse": queues[arguments["queue"]]}


def test_whatever_ended_was_answered_and_all_queues_count() -> None:
    stats = {"rd_operations": 3, "wr_operations": 4, "flush_operations": 5, "unmap_operations": 1, "rd_merged": 2}
    failed = {"failed_rd_operations": 2, "invalid_wr_operations": 1, "wr_bytes": 900, "rd_total_time_ns": 10**9}
    monitor = Monitor({ROOT: {**stats, **failed}, DATA: stats}, {DATA: [1, 0, 2, 0], ROOT: [7]})
    # A limit counts what QEMU has merged as one request, and no flush.
    assert read_requests(monitor) == {"root": DiskRequests(16, 7, 5, 900), "data": DiskRequests(13, 3, 5, 0)}


def test_an_older_qemu_does_not_say_what_it_has_taken() -> None:
    monitor = Monitor({ROOT: {"rd_operations": 3}}, None)
    assert read_requests(monitor) == {"root": DiskRequests(3, None, 3)}
