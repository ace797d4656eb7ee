"""A domain of a libvirtd of its own that works under fio; it is recorded, and a scenario made that copies its load.

``python -m … FOLDER CACHE IOPS SECONDS FIO…``, in ``unshare --mount --pid --net``, not as PID 1: the data disk has that
cache mode and a limit, 0 for none; FIO are fio's options. Prints what came of it; FOLDER then has ``try.yaml``.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libvirt

from tests.e2e.programs.kill_each import VMLAB, wait_for
from tests.private_libvirtd import start_daemon
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run
from vmlab.store.samples import samples

IMAGES = Path.home() / ".cache/vmlab/images"
DATA_BYTES = 128 * 2**20
AT_WORK = 50
"""Requests to the data disk, from which on fio is at work."""
EVERY = 0.2
"""Seconds between two readings of QEMU's own counters beside a recording."""
ONE_COMMAND = (
    "vmlab.boot=normal systemd.unit=kernel-command-line.target"
    " systemd.run_success_action=none systemd.run_failure_action=none"
)
DISK = """<disk type='file' device='disk'><driver name='qemu' type='{kind}' cache='{cache}'/>
<source file='{file}'/><target dev='{target}' bus='virtio'/>{more}</disk>"""
XML = """<domain type='qemu'><name>slow</name><memory unit='MiB'>512</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type><kernel>{image}/vmlinuz</kernel><initrd>{image}/initrd.img</initrd>
<cmdline>{words} {one} systemd.run=&quot;{command}&quot;</cmdline></os><features><acpi/></features>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>{disks}</devices></domain>"""


def xml(folder: Path, cache: str, iops: int, fio: list[str]) -> str:
    """The domain, with a system disk over the lab's image."""
    (image,) = (file.parent for file in IMAGES.glob("*/manifest.json"))
    words = json.loads((image / "manifest.json").read_text())["command_line"]
    root, data = folder / "slow.qcow2", folder / "slow.raw"
    over = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(image / "root.raw"), "-F", "raw", str(root)]
    subprocess.run(over, check=True)
    with data.open("wb") as file:
        for _ in range(DATA_BYTES >> 20):
            file.write(os.urandom(2**20))
    limit = f"<iotune><total_iops_sec>{iops}</total_iops_sec></iotune>" if iops else ""
    disks = DISK.format(kind="qcow2", cache="writeback", file=root, target="vda", more="")
    disks += DISK.format(kind="raw", cache=cache, file=data, target="vdb", more=limit)
    command = shlex.join(["/usr/bin/fio", "--filename=/dev/vdb", "--direct=1", "--ioengine=libaio", *fio])
    return XML.format(image=image, words=words, one=ONE_COMMAND, command=command, disks=disks)


def counted(domain: Any) -> dict[str, int]:
    """What QEMU counted of the data disk."""
    found: dict[str, int] = domain.blockStatsFlags("vdb")
    return found


@contextmanager
def readings(domain: Any) -> Iterator[list[tuple[float, int, int]]]:
    """Beside what is done within: monotonic seconds, writes, and the nanoseconds that all writes took."""
    found: list[tuple[float, int, int]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(EVERY):
            now = counted(domain)
            found.append((time.monotonic(), now["wr_operations"], now["wr_total_times"]))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def began() -> float:
    """Monotonic seconds at which begins what the recording's first rates of the disk describe."""
    name = "domain_disk_writes_per_second[slow/vdb]"
    with RunReader(resolve_run("last")) as reader:
        return next(one.mono - one.seconds_of(name) for _, one in samples(reader) if one.get(name) >= 0)


def vmlab(*words: str) -> str:
    """What a command says; it has to end well."""
    done = subprocess.run([*VMLAB, *words], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def main(folder: Path, cache: str, iops: int, seconds: int, fio: list[str]) -> None:
    """Everything; the namespaces take it along when PID 1 ends."""
    start_daemon(folder / "libvirtd.log")
    os.environ |= {"XDG_STATE_HOME": str(folder / "state"), "VMLAB_RUNTIME_DIR": str(folder / "run")}
    domain = libvirt.open("qemu:///system").createXML(xml(folder, cache, iops, fio), 0)

    def at_work() -> bool:
        now = counted(domain)
        return now["rd_operations"] + now["wr_operations"] >= AT_WORK

    wait_for("fio at work", at_work, 300)
    with readings(domain) as counted_beside:
        vmlab("record", "--for", f"{seconds} s")
    vmlab("advise", "last", "--disk", "slow/vdb", "-o", str(folder / "try.yaml"))
    document = {
        "counted": counted_beside,
        "began": began(),
        "advice": vmlab("advise", "last"),
        "show": vmlab("show", "last"),
        "text": (folder / "try.yaml").read_text(),
    }
    domain.destroy()
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    assert os.getpid() != 1, "PID 1 has to reap"
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
