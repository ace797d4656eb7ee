"""A libvirtd of its own, in mount, PID and network namespaces, with a paused domain; what our reader makes of it.

Run by `test_private_libvirtd`, never on the host itself: it mounts over folders of libvirt. It prints JSON, and the
namespaces' PID 1 has to reap.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import libvirt

from tests.host.inside.libvirt_calls import CALL
from tests.private_libvirtd import start_daemon
from tests.telemetry.domains.test_reading_only import Recorded
from vmlab.model.domain import Domain
from vmlab.model.jsonable import jsonable
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.domains.libvirt_reader import LibvirtReader
from vmlab.telemetry.source import THE_HOST

XML = """<domain type='qemu'><name>own</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='{folder}/a.img'/>
<target dev='vda' bus='virtio'/></disk>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{folder}/b.img'/>
<target dev='vdb' bus='virtio'/></disk></devices></domain>"""


_RATE = "domain_disk_reads_per_second[own/vda]"


def main(folder: Path) -> None:
    """Everything; the namespaces take it along when PID 1 ends."""
    log = folder / "libvirtd.log"
    start_daemon(log)
    for name in ("a.img", "b.img"):
        (folder / name).write_bytes(bytes(4 << 20))
    owner = libvirt.open("qemu:///system")
    owner.createXML(XML.format(folder=folder), libvirt.VIR_DOMAIN_START_PAUSED)
    owner.close()
    before = len(log.read_text())
    called: list[str] = []
    group = Domains(THE_HOST, LibvirtReader(load=lambda: Recorded(libvirt, called)))
    end, figures = time.monotonic() + 60, dict[str, float]()
    # A rate takes two answers of libvirt, which may be late.
    while not (ready(group.domains) and _RATE in figures) and time.monotonic() < end:
        values = group.read(time.monotonic(), 1.0)
        figures = {name: value for name, value in zip(group.names, values, strict=True) if value == value}
        time.sleep(0.2)
    time.sleep(0.5)
    served = CALL.findall(log.read_text()[before:])
    domains = [jsonable(domain) for domain in group.domains]
    sys.stdout.write(json.dumps({"domains": domains, "figures": figures, "called": called, "served": served}) + "\n")


def ready(domains: tuple[Domain, ...]) -> bool:
    """Whether libvirt and the open files have said all."""
    return (
        bool(domains) and domains[0].source == "libvirt" and all(disk.o_direct is not None for disk in domains[0].disks)
    )


if __name__ == "__main__":
    assert os.getpid() != 1, "PID 1 has to reap"
    main(Path(sys.argv[1]))
