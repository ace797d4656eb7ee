"""A libvirtd of its own with a domain that runs, paused, and one that is shut off; what is found of both, and what the
daemon was asked for. Run by `test_real_sources`, in namespaces of its own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import libvirt

from tests.host.inside.libvirt_calls import CALL
from tests.private_libvirtd import start_daemon
from vmlab.model.errors import RefusedError
from vmlab.plan.copied_guest.guest_sources import disk_to_copy, found_guest

XML = """<domain type='qemu'><name>{name}</name><memory unit='MiB'>128</memory><vcpu>2</vcpu><iothreads>1</iothreads>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type='file' device='disk'>
<driver name='qemu' type='raw' cache='none' io='native' discard='unmap' iothread='1'/>
<source file='{folder}/{name}.img'/><target dev='vda' bus='virtio'/></disk>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{folder}/{name}-data.img'/>
<target dev='sda' bus='scsi'/><iotune><total_iops_sec>200</total_iops_sec></iotune></disk>
<controller type='scsi' index='0' model='virtio-scsi'/></devices></domain>"""


def main(folder: Path) -> None:
    """Everything; the namespaces take it along when PID 1 ends."""
    log = folder / "libvirtd.log"
    start_daemon(log)
    for name in ("live", "off"):
        for ending, size in (("", 4), ("-data", 8)):
            with (folder / f"{name}{ending}.img").open("wb") as file:
                file.truncate(size << 20)
    owner = libvirt.open("qemu:///system")
    owner.createXML(XML.format(folder=folder, name="live"), libvirt.VIR_DOMAIN_START_PAUSED)
    uuid = owner.defineXML(XML.format(folder=folder, name="off")).UUIDString()
    owner.close()
    before = len(log.read_text())
    for source in ("live", "off", uuid):
        guest = found_guest(source)
        disks = {disk.target: {one.key: one.value for one in disk.found.said.values()} for disk in guest.disks}
        told = {"keys": {one.key: one.value for one in guest.found.said.values()}, "disks": disks}
        sys.stdout.write(json.dumps(told) + "\n")
    copied = [str(disk_to_copy("off"))]
    try:
        disk_to_copy("live")
    except RefusedError as error:
        copied.append(str(error))
    sys.stdout.write(json.dumps({"copied": copied, "served": CALL.findall(log.read_text()[before:])}) + "\n")


if __name__ == "__main__":
    assert os.getpid() != 1, "PID 1 has to reap"
    main(Path(sys.argv[1]))
