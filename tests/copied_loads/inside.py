"""One attempt, in namespaces of its own: a domain of a private libvirtd on an emulated disk, recorded and copied."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import libvirt

from tests.copied_loads.loads import LOADS, OTHER, RECORDED, WAYS, Load
from tests.private_libvirtd import start_daemon
from vmlab.hypervisor.emulated_disk.emulated_disk import EmulatedDisk
from vmlab.hypervisor.isolation.namespace import run_isolated
from vmlab.hypervisor.journal import Journal
from vmlab.model.places import cache_folder
from vmlab.model.scenarios.disk_profiles import HDD_7200

_INSIDE = "VMLAB_COPIED_LOADS_INSIDE"
_NAME = "slow"
_DATA_BYTES = 2**27
_DISK_BYTES = 2**33
_AT_WORK, _BOOT_SECONDS, _SETTLE, _OTHER_SECONDS = 50, 600.0, 30.0, 120.0
_ONE_COMMAND = (
    "vmlab.boot=normal systemd.unit=kernel-command-line.target"
    " systemd.run_success_action=none systemd.run_failure_action=none"
)


def _xml(load: Load, cache: str, folder: Path) -> str:
    (image,) = (file.parent for file in (cache_folder() / "images").glob("*/manifest.json"))
    words = json.loads((image / "manifest.json").read_text())["command_line"]
    tune = f"<iotune><total_iops_sec>{load.limit_iops}</total_iops_sec></iotune>" if load.limit_iops else ""
    root = folder / "root.qcow2"
    if not root.exists():
        over = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(image / "root.raw"), "-F", "raw", str(root)]
        subprocess.run(over, check=True)
    return (
        f"<domain type='qemu'><name>{_NAME}</name><memory unit='MiB'>512</memory><vcpu>1</vcpu>"
        "<os><type arch='x86_64' machine='q35'>hvm</type>"
        f"<kernel>{image}/vmlinuz</kernel><initrd>{image}/initrd.img</initrd>"
        f"<cmdline>{words} {_ONE_COMMAND} systemd.run=&quot;{load.fio()}&quot;</cmdline></os>"
        "<features><acpi/></features><devices><emulator>/usr/bin/qemu-system-x86_64</emulator>"
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='writeback'/>"
        f"<source file='{root}'/><target dev='vda' bus='virtio'/></disk>"
        f"<disk type='file' device='disk'><driver name='qemu' type='raw' cache='{cache}'/>"
        f"<source file='{folder}/disks/data.raw'/><target dev='vdb' bus='virtio'/>{tune}</disk></devices></domain>"
    )


async def _attempt(load: Load, folder: Path, recorded: str) -> dict[str, Any]:
    for name in ("disks", "runtime"):
        (folder / name).mkdir()
    start_daemon(folder / "libvirtd.log")
    journal = Journal(folder / "journal.jsonl")
    disk = EmulatedDisk(HDD_7200, _DISK_BYTES, 1, folder / "disks", folder / "runtime", "copied", journal)
    try:
        await disk.open()
        (folder / "disks/data.raw").write_bytes(os.urandom(_DATA_BYTES))
        os.sync()
        await disk.set_limits()
        return await asyncio.to_thread(_measured, load, folder, recorded)
    finally:
        await disk.close()


def _measured(load: Load, folder: Path, recorded: str) -> dict[str, Any]:
    domain, truth = _started(load, RECORDED, folder), {}
    before = _counters(domain)
    _vmlab(folder, "record", "--for", recorded)
    truth[RECORDED] = _latencies(before, _counters(domain))
    scenario = folder / "try.yaml"
    _vmlab(folder, "advise", "last", "-o", str(scenario), "--disk", f"{_NAME}/vdb")
    domain.destroy()
    # A guest of long standing has in the page cache what it reads again and again.
    (folder / "disks/data.raw").read_bytes()
    domain = _started(load, OTHER, folder)
    before = _counters(domain)
    time.sleep(_OTHER_SECONDS)
    truth[OTHER] = _latencies(before, _counters(domain))
    domain.destroy()
    if _vmlab(folder, "run", str(scenario), "--quiet", check=False).returncode:
        # Other work on the host made cells invalid. An attempt that has too few is none.
        _vmlab(folder, "resume", "last", "--invalid", "--quiet")
    answer = _vmlab(folder, "advise", "last", "--json")
    return {"truth": truth, "answer": json.loads(answer.stdout)}


def _started(load: Load, cache: str, folder: Path) -> Any:
    """The domain, at work for as long as it takes until its first requests no longer count."""
    domain = libvirt.open("qemu:///system").createXML(_xml(load, cache, folder))
    end = time.monotonic() + _BOOT_SECONDS
    while min(requests for requests, _ in _counters(domain).values()) < _AT_WORK:
        if time.monotonic() > end:
            sys.exit(f"the domain does nothing {_BOOT_SECONDS:.0f} s after its start")
        time.sleep(1)
    time.sleep(_SETTLE)
    return domain


def _counters(domain: Any) -> dict[str, tuple[int, int]]:
    """Requests and their nanoseconds, by direction."""
    told = domain.blockStatsFlags("vdb")
    return {way: (told[f"{key}_operations"], told[f"{key}_total_times"]) for way, key in WAYS.items()}


def _latencies(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> dict[str, float]:
    """Mean seconds of a request between two readings."""
    return {way: (after[way][1] - time_) / 1e9 / (after[way][0] - count) for way, (count, time_) in before.items()}


def _vmlab(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "vmlab", *words]
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(f"$ vmlab {' '.join(words)}\n{done.stdout}\nexit code {done.returncode}\n")
    if check and done.returncode:
        sys.exit(f"vmlab {words[0]} ended with {done.returncode}")
    return done


def main() -> int:
    """Print what was found, as JSON, from namespaces that end with it."""
    name, place, seconds = sys.argv[1:]
    if _INSIDE not in os.environ:
        argv = [sys.executable, "-m", "tests.copied_loads.inside", *sys.argv[1:]]
        return run_isolated(argv, env={**os.environ, _INSIDE: "1"})
    sys.stdout.write(json.dumps(asyncio.run(_attempt(LOADS[name], Path(place), seconds))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
