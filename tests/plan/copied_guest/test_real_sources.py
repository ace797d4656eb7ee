"""A real libvirtd with a domain that runs and one that is shut off, and a real QEMU started as Proxmox VE does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.host.inside.libvirt_calls import READING
from tests.plan.copied_guest.guests import disk_keys, keys
from tests.private_libvirtd import disk_folder
from vmlab.plan.copied_guest.guest_sources import found_guest

__all__ = ["disk_folder"]
pytestmark = pytest.mark.guests
LOOKED_UP = {"virDomainLookupByName", "virDomainLookupByUUIDString", "virDomainLookupByUUID", "virDomainGetBlockInfo"}
LOOKED_UP |= {"virDomainHasManagedSaveImage"}


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("libvirtd") is None, reason="needs root and libvirtd")
def test_domains_of_a_real_libvirt_are_read_and_nothing_else(disk_folder: Path) -> None:
    module = "tests.plan.copied_guest.private_domains"
    inside = ["bash", "-c", f"{sys.executable} -m {module} {disk_folder} & wait $!"]
    alone = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run([*alone, *inside], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    *guests, told = map(json.loads, done.stdout.splitlines())
    assert len(guests) == 3
    for guest in guests:
        assert {key: guest["keys"][key] for key in ("vcpus", "memory")} == {"vcpus": 2, "memory": "128 MiB"}
        assert guest["disks"]["vda"] == {
            "cache": "none",
            "io": "native",
            "format": "raw",
            "discard": "unmap",
            "iothread": "1",
            "bus": "virtio",
            "queues": 2,
            "size": 4 << 20,
            "backing": f"folder:{disk_folder}",
        }
        assert guest["disks"]["sda"] == {
            "cache": "writeback",
            "format": "raw",
            "discard": "ignore",
            "bus": "scsi",
            "queues": 2,
            "limit_iops": 200,
            "size": 8 << 20,
            "backing": f"folder:{disk_folder}",
        }
    assert told["copied"][0] == f"{disk_folder}/off.img"
    assert told["copied"][1].startswith("domain live is running, and a copy of a disk in use proves nothing")
    assert "virDomainLookupByName" in told["served"]
    assert set(told["served"]) <= READING | LOOKED_UP


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="needs QEMU")
def test_a_real_qemu_started_as_proxmox_does(disk_folder: Path) -> None:
    image = disk_folder / "vm-100-disk-0.raw"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    cache = {"direct": True, "no-flush": False}
    below = {"aio": "io_uring", "cache": cache, "discard": "unmap", "driver": "file", "filename": str(image)}
    inner = {"cache": cache, "discard": "unmap", "driver": "raw", "file": below, "node-name": "f0"}
    node: dict[str, Any] = {"driver": "throttle", "throttle-group": "throttle-drive-scsi0", "node-name": "drive-scsi0"}
    node |= {"detect-zeroes": "unmap", "discard": "unmap", "file": inner}
    group: dict[str, Any] = {"qom-type": "throttle-group", "id": "throttle-drive-scsi0", "limits": {"iops-total": 500}}
    name = f"proxmox-{os.getpid()}"
    argv = ["qemu-system-x86_64", "-S", "-display", "none", "-machine", "type=q35", "-accel", "tcg", "-nodefaults"]
    argv += ["-name", f"{name},debug-threads=on", "-smp", "2,sockets=1,cores=2,maxcpus=2", "-m", "64", "-cpu", "max"]
    argv += ["-object", "iothread,id=iothread-virtioscsi0", "-object", json.dumps(group)]
    argv += ["-device", "virtio-scsi-pci,id=virtioscsi0,iothread=iothread-virtioscsi0", "-blockdev", json.dumps(node)]
    argv += ["-device", "scsi-hd,bus=virtioscsi0.0,drive=drive-scsi0,id=scsi0,bootindex=100,write-cache=on"]
    qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not _has_opened(qemu.pid, image) and qemu.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        by_name, by_pid = found_guest(name), found_guest(str(qemu.pid))
    finally:
        qemu.kill()
        qemu.wait()
    assert keys(by_name) == keys(by_pid)
    assert {key: keys(by_pid)[key] for key in ("vcpus", "memory", "cpu")} == {
        "vcpus": 2,
        "memory": "64 MiB",
        "cpu": "max",
    }
    assert disk_keys(by_pid) == {
        "cache": "none",
        "io": "io_uring",
        "format": "raw",
        "discard": "unmap",
        "detect_zeroes": "unmap",
        "bus": "scsi",
        "queues": 2,
        "iothread": "iothread-virtioscsi0",
        "limit_iops": 500,
        "size": 64 << 20,
        "backing": f"folder:{disk_folder}",
    }


def _has_opened(pid: int, file: Path) -> bool:
    try:
        return any(one.resolve() == file for one in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
