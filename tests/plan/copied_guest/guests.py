"""Descriptions of guests, in small, as their owners' tools write them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.terms import HostFacts
from vmlab.telemetry.domains.qemu_options import QemuOptions

HERE = Path(__file__).parent
WEB01 = (HERE / "web01.xml").read_text()
VM100 = (HERE / "vm100.conf").read_text()
ROOMY = HostFacts(2**40, 2**40, 2**44, 8, "kvm")
"""A host that lacks nothing."""


NO_FILE = "<source file='/no/d'/>"


def with_disk(driver: str = "", target: str = "bus='virtio'", more: str = "", source: str = NO_FILE) -> str:
    """A domain with two CPUs and one disk, whose driver and target have these attributes."""
    return f"""<domain type='kvm'><name>one</name><memory unit='GiB'>1</memory><vcpu>2</vcpu>
<os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os><cpu mode='host-passthrough'/>
<devices><disk type='file' device='disk'><driver name='qemu' {driver}/>{source}<target dev='vda' {target}/>{more}</disk>
</devices></domain>"""


def with_element(element: str) -> str:
    """The same domain with another element."""
    return with_disk().replace("<devices>", f"{element}<devices>")


def with_device(device: str) -> str:
    """The same domain with another device."""
    return with_disk().replace("</devices>", f"{device}</devices>")


def of_proxmox(node: dict[str, object], device: str, *more: str) -> QemuOptions:
    """QEMU's arguments as Proxmox VE 9 gives them for one SCSI disk."""
    words = """-id 100 -name web,debug-threads=on -no-shutdown -smp 4,sockets=1,cores=4,maxcpus=4 -nodefaults
        -cpu host,+aes,enforce,+kvm_pv_eoi,-pcid -m 2048
        -device virtio-scsi-pci,id=virtioscsi0,bus=pci.3,addr=0x1,iothread=iothread-virtioscsi0
        -netdev type=tap,id=net0,ifname=tap100i0,script=/x,vhost=on,queues=4
        -device virtio-net-pci,netdev=net0,id=net0,vectors=10,mq=on,rx_queue_size=1024,host_mtu=9000
        -machine type=q35+pve0"""
    limits = {"iops-total": 500, "bps-read": 1048576}
    throttle = {"id": "throttle-drive-scsi0", "limits": limits, "qom-type": "throttle-group"}
    arguments = [*shlex.split(words), "-object", json.dumps(throttle), "-blockdev", json.dumps(node), "-device", device]
    return QemuOptions([*arguments, *more], "kvm")


def throttled_node(discard: str = "unmap", aio: str = "io_uring", *, direct: bool = True) -> dict[str, object]:
    """The nodes of such a disk, from the throttle down to the file."""
    cache = {"direct": direct, "no-flush": False}
    below = {"aio": aio, "cache": cache, "discard": discard, "driver": "file", "filename": "/no/vm-100-disk-0.raw"}
    inner = {"cache": cache, "discard": discard, "driver": "raw", "file": below}
    group = {"driver": "throttle", "throttle-group": "throttle-drive-scsi0", "node-name": "drive-scsi0"}
    return {**group, "detect-zeroes": "on", "discard": discard, "file": inner}


def keys(guest: FoundGuest) -> dict[str, object]:
    """The keys of the guest with their values."""
    return {said.key: said.value for said in guest.found.said.values()}


def disk_keys(guest: FoundGuest, place: int = 0) -> dict[str, object]:
    """The keys of a disk with their values."""
    return {said.key: said.value for said in guest.disks[place].found.said.values()}
