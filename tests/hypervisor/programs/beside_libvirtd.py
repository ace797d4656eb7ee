"""A program of this folder on a libvirtd that is in use by others, in namespaces of their own: what it says, and what
is there afterwards.

``python -m … FOLDER VICTIMS NAME ARGUMENTS``, in ``unshare --mount --pid --net``, not as PID 1. The program NAME gets a
runtime folder, a folder and ARGUMENTS, once for each of VICTIMS, and for each a line of JSON is printed. A victim is
killed with -9 once the program has said a line: ``runner``, ``init``, ``launcher``, or ``nobody``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import libvirt
import psutil

from tests.hypervisor.programs.made import ON_HOST
from tests.private_libvirtd import LIKE_DEBIANS, show_own_links, start_daemon
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.libvirt.marked import name_of
from vmlab.model.names import LAB_NAMESPACE

NOBODY = "nobody"
PROGRAM_SECONDS = 900
PATIENCE = 60
"""Seconds in which libvirtd ends the guests of a client that was killed, on a busy machine."""
FOREIGN = """<domain type='qemu'><name>{name}</name>{metadata}<memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>"""
NETWORK = """<network><name>{name}</name>{metadata}<bridge name='{bridge}'/>
<ip address='{address}' prefix='24'/></network>"""
MARK = "<metadata><vmlab:lab xmlns:vmlab='{namespace}' id='{lab}'/></metadata>"


def decoys(connection: Any) -> None:
    """Guests and networks of others: with names like the lab's, with marks of other labs, and defined with its mark."""
    own, other = (MARK.format(namespace=LAB_NAMESPACE, lab=lab) for lab in ("test", "test-2"))
    for name, metadata in (("test-decoy", ""), ("test-2-web-1", other), ("test", "")):
        connection.createXML(FOREIGN.format(name=name, metadata=metadata), libvirt.VIR_DOMAIN_START_PAUSED)
    copied = connection.defineXML(FOREIGN.format(name="test-copied", metadata=own))
    copied.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
    for at, (name, metadata) in enumerate(((f"{name_of('test')}-2", ""), ("vmlab-decoy", other))):
        text = NETWORK.format(name=name, metadata=metadata, bridge=f"decoy{at}", address=f"198.18.{at}.1")
        connection.networkCreateXML(text)


def there(connection: Any) -> dict[str, list[str]]:
    """All that is there of libvirt, by what it is."""
    programs = psutil.process_iter(["name", "status"])
    running = [p for p in programs if p.info["status"] not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)]
    folders = [Path("/var/log/libvirt/qemu"), Path("/var/lib/libvirt"), Path("/run/libvirt")]
    files = [path for folder in folders for path in folder.rglob("*") if not path.is_dir()]
    return {
        "domains": sorted(domain.name() for domain in connection.listAllDomains()),
        "networks": sorted(network.name() for network in connection.listAllNetworks()),
        "links": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "processes": sorted(str(p.pid) for p in running if p.info["name"] in ("dnsmasq", "qemu-system-x86_64")),
        "files": sorted(map(str, files)),
        "rules": _rules(),
    }


def _rules() -> list[str]:
    saved = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    return sorted(line for line in saved.splitlines() if line.startswith("-A"))


def kill(victim: str, launcher: int) -> None:
    """Kill a process of the lab."""
    found = psutil.Process(launcher)
    if victim != "launcher":
        (found,) = found.children()
    if victim == "runner":
        (found,) = found.children()
    os.kill(found.pid, signal.SIGKILL)


def run(connection: Any, folder: Path, words: list[str], victim: str | None) -> dict[str, Any]:
    """Run the program in `folder` to its end, or to that of `victim`, which is killed; what was there, and what is."""
    before = there(connection)
    argv = [sys.executable, "-m", "tests.hypervisor.programs.isolated", words[0], str(folder / "rt"), str(folder)]
    program = subprocess.Popen([*argv, *words[1:]], env={**os.environ, ON_HOST: "1"}, text=True, stdout=subprocess.PIPE)
    assert program.stdout is not None
    said = [program.stdout.readline()]
    during = there(connection)
    if victim is not None and said[0]:
        kill(victim, program.pid)
    said += program.communicate(timeout=PROGRAM_SECONDS)[0].splitlines()
    end = time.monotonic() + PATIENCE
    while victim is not None and there(connection)["domains"] != before["domains"] and time.monotonic() < end:
        time.sleep(0.2)
    ended = there(connection)["domains"] == before["domains"]
    removed = sweep(folder / "journal.jsonl", folder / "disks", "test")
    after = there(connection)
    return {
        "said": [json.loads(line) for line in said if line.strip()],
        "status": program.returncode,
        "domains_ended_by_themselves": ended,
        "removed": removed,
        "during": {what: [one for one in during[what] if one not in before[what]] for what in before},
        "new": {what: [one for one in after[what] if one not in before[what]] for what in before},
        "gone": {what: [one for one in before[what] if one not in after[what]] for what in before},
        "disks": sorted(path.name for path in (folder / "disks").glob("*")),
    }


def main(folder: Path, victims: list[str], words: list[str]) -> None:
    """Run it once for each victim."""
    start_daemon(folder / "libvirtd.log", LIKE_DEBIANS)
    show_own_links()
    connection = libvirt.open("qemu:///system")
    decoys(connection)
    for victim in victims:
        own = folder / victim
        own.mkdir()
        document = run(connection, own, words, None if victim == NOBODY else victim)
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    connection.close()


if __name__ == "__main__":
    assert os.getpid() != 1, "PID 1 has to reap"
    main(Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:])
