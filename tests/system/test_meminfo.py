"""The host's memory is read without a word where /proc/meminfo lacks lines that nobody asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

LACKING = (
    "MemTotal: 4000 kB\nMemFree: 1000 kB\nMemAvailable: 2500 kB\nBuffers: 10 kB\nCached: 700 kB\nSReclaimable: 50 kB\n"
)


def test_a_meminfo_without_active_memory_is_read_in_silence(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(LACKING)
    code = (
        f"import psutil; psutil.PROCFS_PATH = {str(tmp_path)!r}\n"
        "from vmlab.system.host_size import host_memory\nprint(*host_memory())"
    )
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == ([str(1024 * kib) for kib in (4000, 2500, 750)], "")


def test_nobody_else_asks_psutil() -> None:
    """Elsewhere the warning would stand between a command's own lines."""
    source = Path(__file__).parents[2] / "vmlab"
    asking = [file.name for file in source.rglob("*.py") if psutil.virtual_memory.__name__ in file.read_text()]
    assert asking == ["host_size.py"]
