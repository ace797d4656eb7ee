"""The recorded host that the recorder's tests read, and programs that run beside them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.faked import until
from tests.telemetry.recorded import RecordedHost, recorded_host


@pytest.fixture
def host(tmp_path: Path) -> RecordedHost:
    """A fresh copy for each test."""
    return recorded_host(tmp_path)


@contextmanager
def running(argv: list[str]) -> Iterator[int]:
    """The process id of a program that is killed in the end."""
    with subprocess.Popen(argv) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def qemu(tmp_path: Path) -> Iterator[int]:
    """The process id of a program with QEMU's name."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    (tmp_path / "qemu-system-x86_64").symlink_to(sleep)
    with running([str(tmp_path / "qemu-system-x86_64"), "600"]) as pid:
        until(lambda: b"(qemu-system" in Path(f"/proc/{pid}/stat").read_bytes(), "that it has its name")
        yield pid
