"""QEMU's arguments as people, Proxmox and libvirt write them."""

from __future__ import annotations

import json

import pytest

from vmlab.model.domain import DomainDisk
from vmlab.telemetry.domains.qemu_arguments import pairs
from vmlab.telemetry.domains.qemu_options import QemuOptions

BY_HAND = (
    "-name web -m 2G -smp 2 -enable-kvm -drive file=/srv/web.qcow2,if=virtio,cache=none,format=qcow2 "
    "-hdb /srv/old.img -cdrom /srv/debian.iso -display none"
)
PROXMOX = (
    "-id 100 -name mail,debug-threads=on -no-shutdown -smp 4,cores=2,maxcpus=4 -m 8192 -machine type=pc,accel=kvm "
    "-drive if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF.fd "
    "-drive file=/dev/pve/vm-100-disk-0,if=none,id=drive-scsi0,cache=writeback,format=raw,aio=io_uring "
    "-device scsi-hd,bus=scsi.0,drive=drive-scsi0,id=scsi0 -drive if=none,id=drive-ide2,media=cdrom,aio=io_uring"
)
NODES = (
    {"driver": "file", "filename": "/images/db.raw", "node-name": "libvirt-2-storage", "cache": {"direct": True}},
    {"node-name": "libvirt-2-format", "driver": "raw", "cache": {"direct": True}, "file": "libvirt-2-storage"},
    {"driver": "file", "filename": "/images/log.qcow2", "node-name": "libvirt-1-storage"},
    {"node-name": "libvirt-1-format", "driver": "qcow2", "file": "libvirt-1-storage", "backing": None},
)
DEVICES = (
    {"driver": "virtio-blk-pci", "drive": "libvirt-2-format", "id": "virtio-disk0", "write-cache": "on"},
    {"driver": "virtio-blk-pci", "drive": "libvirt-1-format", "id": "virtio-disk1", "write-cache": "off"},
    {"driver": "virtio-net-pci", "netdev": "hostnet0", "id": "net0"},
)


def of_libvirt() -> QemuOptions:
    nodes = [word for node in NODES for word in ("-blockdev", json.dumps(node))]
    devices = [word for device in DEVICES for word in ("-device", json.dumps(device))]
    first = (
        "-name guest=db,debug-threads=on -S -machine pc-q35-7.2,usb=off,accel=tcg -m 512 -smp 1,sockets=1 -uuid 6695"
    )
    return QemuOptions([*first.split(), *nodes, *devices])


def test_a_guest_started_by_hand() -> None:
    options = QemuOptions(BY_HAND.split())
    assert (options.name, options.vcpus, options.memory_bytes, options.accelerator) == ("web", 2, 2 << 30, "kvm")
    assert options.disks() == [
        DomainDisk("hdb", "/srv/old.img", cache="writeback", protocol="file"),
        DomainDisk("drive0", "/srv/web.qcow2", "qcow2", "none", protocol="file"),
    ]


def test_a_guest_of_proxmox() -> None:
    options = QemuOptions(PROXMOX.split())
    assert (options.name, options.vcpus, options.memory_bytes, options.accelerator) == ("mail", 4, 8 << 30, "kvm")
    (disk,) = options.disks()
    assert disk == DomainDisk("drive-scsi0", "/dev/pve/vm-100-disk-0", "raw", "writeback", protocol="host_device")


def test_a_guest_of_libvirt() -> None:
    options = of_libvirt()
    assert (options.name, options.uuid, options.vcpus, options.accelerator) == ("db", "6695", 1, "tcg")
    assert options.disks() == [
        DomainDisk("virtio-disk0", "/images/db.raw", "raw", "none", protocol="file"),
        DomainDisk("virtio-disk1", "/images/log.qcow2", "qcow2", "writethrough", protocol="file"),
    ]


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        ("", "writeback"),
        (",cache.direct=on", "none"),
        (",cache.direct=on,cache.writeback=off", "directsync"),
        (",cache.no-flush=on", "unsafe"),
        (",cache=unsafe", "unsafe"),
    ],
)
def test_the_cache_mode_of_a_drive(flags: str, mode: str) -> None:
    assert QemuOptions(["-drive", f"file=/a.img{flags}"]).disks()[0].cache == mode


def test_a_block_device_with_a_filter_below_it() -> None:
    node = {
        "node-name": "drive-scsi0",
        "driver": "throttle",
        "file": {"driver": "raw", "file": {"driver": "host_device", "filename": "/dev/v", "cache": {"direct": True}}},
    }
    options = QemuOptions(["-blockdev", json.dumps(node), "-device", "scsi-hd,drive=drive-scsi0,id=scsi0"])
    assert [(disk.file, disk.cache) for disk in options.disks()] == [("/dev/v", "none")]


@pytest.mark.parametrize(("smp", "count"), [("8", 8), ("cpus=3,maxcpus=8", 3), ("sockets=2,cores=3", 6), ("x", 0)])
def test_the_number_of_processors(smp: str, count: int) -> None:
    assert QemuOptions(["-smp", smp]).vcpus == count


@pytest.mark.parametrize(
    ("given", "size"), [("512", 512 << 20), ("size=1048576k,slots=2", 1 << 30), ("1.5G", 3 << 29), ("lots", 0)]
)
def test_the_memory(given: str, size: int) -> None:
    assert QemuOptions(["-m", given]).memory_bytes == size


def test_two_commas_stand_for_one() -> None:
    assert pairs("file=/a,,b.img,cache=none") == {"file": "/a,b.img", "cache": "none"}


def test_libvirts_probe_of_qemu_is_no_guest() -> None:
    assert not QemuOptions(
        ["-S", "-no-user-config", "-nodefaults", "-machine", "none,accel=kvm:tcg", "-qmp", "x"]
    ).is_a_guest
    assert of_libvirt().is_a_guest


@pytest.mark.parametrize("given", ['{"driver', "[1]", '{"node-name": 3, "file": 5}'])
def test_nonsense_in_json_is_no_disk(given: str) -> None:
    assert QemuOptions(["-blockdev", given, "-device", given]).disks() == []
