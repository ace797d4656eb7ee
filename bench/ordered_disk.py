"""An emulated disk beside its profile, and what it costs: ``python -m bench.ordered_disk [PROFILE] [FOLDER]``.

Needs root. Everything lies in a folder of its own below FOLDER, by default /var/tmp, in namespaces that end with it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from vmlab.hypervisor.emulated_disk.disk_model import ProofFigure, prove
from vmlab.hypervisor.emulated_disk.emulated_disk import EmulatedDisk
from vmlab.hypervisor.isolation.namespace import run_isolated
from vmlab.hypervisor.journal import Journal
from vmlab.model.errors import VmlabError
from vmlab.model.scenarios.disk_profiles import DISK_PROFILES, DiskProfile

_SIZE = 2**35
_COPIED = 512 * 2**20
_USUAL = ("hdd-7200", "/var/tmp")
_INSIDE = "VMLAB_BENCH_FOLDER"


async def measure(profile: DiskProfile, folder: Path) -> None:
    """Print the proof's figures, the process's share of a CPU meanwhile, and how fast a file is copied to it."""
    (folder / "disks").mkdir()
    (folder / "runtime").mkdir()
    spans: list[float] = []
    cpu: list[float] = []

    def watched(device: Path, profile: DiskProfile, size: int, seed: int) -> list[ProofFigure]:
        before, began = _cpu(disk.pid), time.monotonic()
        found = prove(device, profile, size, seed)
        cpu.append(_cpu(disk.pid) - before)
        spans.append(time.monotonic() - began)
        for one in found:
            print(f"{one.measured / one.expected:5.2f} of the profile  {one}")
        return found

    disks, runtime, journal = folder / "disks", folder / "runtime", Journal(folder / "journal.jsonl")
    disk = EmulatedDisk(profile, _SIZE, 1, disks, runtime, "bench", journal, proof=watched)
    try:
        await disk.open()
        base = folder / "base.raw"
        base.write_bytes(os.urandom(_COPIED))
        began = time.monotonic()
        async with disk.covering([base]):
            print(f"with lifted limits a file is copied at {_COPIED / (time.monotonic() - began) / 1e6:.0f} MB/s")
    except VmlabError as error:
        print(error)
    finally:
        await disk.close()
    print(f"its process took {cpu[0] / spans[0] * 100:.1f} % of a CPU during {spans[0]:.1f} s of proof")


def _cpu(pid: int | None) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run in namespaces, and take the folder away afterwards."""
    if (inside := os.environ.get(_INSIDE)) is not None:
        asyncio.run(measure(DISK_PROFILES[sys.argv[1]], Path(inside)))
        return 0
    profile, place = [*sys.argv[1:], *_USUAL[len(sys.argv) - 1 :]]
    folder = Path(tempfile.mkdtemp(prefix="vmlab-disk-", dir=place))
    try:
        argv = [sys.executable, "-m", "bench.ordered_disk", profile]
        return run_isolated(argv, env={**os.environ, _INSIDE: str(folder), "PYTHONUNBUFFERED": "1"})
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    raise SystemExit(main())
