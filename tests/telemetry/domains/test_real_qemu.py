"""What is read of arguments against what QEMU itself says that it made of them. It stands still from its start."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vmlab.model.run import CACHE_FLAGS, CACHE_MODES, CacheFlags
from vmlab.telemetry.domains.qemu_options import QemuOptions

ASKED = ("qmp_capabilities", "query-memory-size-summary", "query-cpus-fast", "query-block", "quit")
CONFIG = """[machine]
type = "q35"
[memory]
size = "192M"
[smp-opts]
maxcpus = "3"
[drive "x"]
file = "a.img"
format = "raw"
if = "none"
cache = "none"
[device "dx"]
driver = "virtio-blk-pci"
drive = "x"
"""
DIMMS = (
    "-smp 1,sockets=2,cores=2,maxcpus=4 -device qemu64-x86_64-cpu,id=c2,socket-id=1,core-id=0,thread-id=0 "
    "-m size=128,slots=4,maxmem=4G -object memory-backend-ram,id=d0,size=128M -device pc-dimm,memdev=d0"
)
FLAGS = (
    "-m 64 -drive file=a.img,format=raw,cache=none,cache.direct=off -drive file=b.img,format=raw,cache.writeback=off "
    "-drive file=c.img,format=raw,cache=writethrough,cache.direct=on,if=virtio"
)
NODES = (
    "-smp sockets=2,maxcpus=8 -blockdev preallocate,node-name=p,file.driver=raw,file.file.driver=file,"
    "file.file.filename=a.img,cache.direct=on -device virtio-blk-pci,drive=p -cdrom b.img -fda c.img"
)


def asked(arguments: list[str], folder: Path) -> list[Any]:
    """The answers to `ASKED` of a QEMU without KVM, whose CPUs are stopped; it quits at the end."""
    lines = "".join(f'{{"execute": "{command}"}}\n' for command in ASKED)
    words = ["qemu-system-x86_64", "-S", "-display", "none", "-accel", "tcg", "-qmp", "stdio", *arguments]
    done = subprocess.run(words, input=lines, capture_output=True, text=True, cwd=folder, timeout=120, check=True)
    return [one["return"] for one in map(json.loads, done.stdout.splitlines()) if "return" in one]


@pytest.mark.guests
@pytest.mark.parametrize(
    "arguments", ["-readconfig q.conf", "-readconfig q.conf -m 1.5G -smp 2", DIMMS, FLAGS, NODES, "-m 0 a.img"]
)
def test_qemu_says_the_same_of_its_arguments(arguments: str, tmp_path: Path) -> None:
    (tmp_path / "q.conf").write_text(CONFIG)
    for name in ("a.img", "b.img", "c.img"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2 << 20)
    _, memory, cpus, block, _ = asked(arguments.split(), tmp_path)
    options = QemuOptions(arguments.split(), read_config=lambda path: (tmp_path / path).read_text())
    assert options.vcpus == len(cpus)
    assert options.memory_bytes == memory["base-memory"] + memory["plugged-memory"]
    disks = [one["inserted"] for one in block if not one["removable"]]
    said = [CacheFlags(**{key.replace("-", "_"): value for key, value in one["cache"].items()}) for one in disks]
    read = [next(CACHE_FLAGS[mode] for mode in CACHE_MODES if mode == disk.cache) for disk in options.disks()]
    assert read == said
    files = [one["file"] if "{" not in one["file"] else "a.img" for one in disks]
    assert [disk.file for disk in options.disks()] == files
