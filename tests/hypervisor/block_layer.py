"""QEMU's block layer without a guest: the storage daemon, with nodes such as libvirt defines them for a guest."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pytest

from vmlab.hypervisor.disks.cache_switch import Definition
from vmlab.model.errors import HypervisorError


def cache(*, direct: bool) -> dict[str, bool]:
    return {"direct": direct, "no-flush": False}


def file_node(number: int, file: Path, *, direct: bool = False) -> Definition:
    return {
        "driver": "file",
        "filename": str(file),
        "aio": "threads",
        "node-name": f"libvirt-{number}-storage",
        "cache": cache(direct=direct),
        "auto-read-only": True,
        "discard": "unmap",
    }


def format_node(number: int, driver: str, *, read_only: bool, direct: bool = False, **more: Any) -> Definition:
    return {
        "node-name": f"libvirt-{number}-format",
        "read-only": read_only,
        "discard": "unmap",
        "cache": cache(direct=direct),
        "driver": driver,
        "file": f"libvirt-{number}-storage",
        **more,
    }


def restored_guest(folder: Path, size: int = 1 << 20) -> tuple[list[Path], list[Definition]]:
    """An overlay on a saved disk on a raw image: the files, the first on top, and libvirt's definitions, the last on
    top.
    """
    image, saved, overlay = folder / "root.raw", folder / "disk.qcow2", folder / "web-1.qcow2"
    image.write_bytes(bytes(size))
    for file, below, kind in ((saved, image, "raw"), (overlay, saved, "qcow2")):
        argv = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(below), "-F", kind, str(file)]
        subprocess.run(argv, check=True, timeout=60)
    definitions = [
        file_node(3, image),
        format_node(3, "raw", read_only=True),
        file_node(2, saved),
        format_node(2, "qcow2", read_only=True, backing="libvirt-3-format"),
        file_node(1, overlay),
        format_node(1, "qcow2", read_only=False, backing="libvirt-2-format"),
    ]
    return [overlay, saved, image], definitions


class BlockLayer:
    """A running storage daemon: its `process` below /proc, and its monitor as the one that is called."""

    def __init__(self, pid: int, stream: TextIO) -> None:
        self.process = Path(f"/proc/{pid}")
        self._stream = stream
        self.asked: list[tuple[str, Any]] = []
        stream.readline()
        self("qmp_capabilities")

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        self.asked.append((command, arguments))
        print(json.dumps({"execute": command, "arguments": arguments or {}}), file=self._stream, flush=True)
        while "event" in (answer := json.loads(self._stream.readline())):
            pass
        if "error" in answer:
            raise HypervisorError(f"{command}: {answer['error']['desc']}")
        return answer["return"]


@contextmanager
def block_layer(folder: Path, definitions: Sequence[Definition], *more: str) -> Iterator[BlockLayer]:
    """A storage daemon with these nodes; skips where it is not installed."""
    ours, theirs = socket.socketpair()
    words = [word for one in definitions for word in ("--blockdev", json.dumps(one))]
    argv = ["qemu-storage-daemon", "--chardev", f"socket,id=m,fd={theirs.fileno()}", "--monitor", "chardev=m"]
    try:
        process = subprocess.Popen([*argv, *words, *more], pass_fds=[theirs.fileno()], cwd=folder)
    except FileNotFoundError:
        pytest.skip("qemu-storage-daemon is not installed")
    theirs.close()
    try:
        with ours, ours.makefile("rw") as stream:
            ours.settimeout(60)
            yield BlockLayer(process.pid, stream)
    finally:
        process.terminate()
        process.wait(60)
