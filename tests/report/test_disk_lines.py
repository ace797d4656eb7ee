"""Lines for libvirt and Proxmox VE: each option where it belongs, for a disk as it was measured."""

from __future__ import annotations

from typing import Any

from vmlab.model.scenarios.guest import GuestAttributes
from vmlab.report.disk_lines import disk_lines


def guest(**keys: Any) -> GuestAttributes:
    return GuestAttributes.model_validate({"memory": 2**30, "data": 2**30, **keys})


def lines(where: str, one: GuestAttributes, *changed: str) -> list[str]:
    return [text for place, text in disk_lines(one, changed) if place == where]


SLOT = "is the data disk's slot; repeat its other options from `qm config VMID`"


def test_a_virtio_disk() -> None:
    one = guest(data_cache="none", data_io="native", data_queues=4, data_iothread=True)
    assert disk_lines(one, {"data_cache", "data_io"}) == [
        (
            "libvirt",
            "<driver name='qemu' cache='none' io='native' discard='unmap' detect_zeroes='off' queues='4'"
            " iothread='1'/>",
        ),
        ("libvirt", "<target dev='vdb' bus='virtio'/>"),
        ("libvirt", "<iothreads>1</iothreads> below <domain>"),
        ("proxmox", f"# virtioN {SLOT}"),
        (
            "proxmox",
            "qm set VMID --virtioN STORAGE:VOLUME,cache=none,aio=native,iothread=1,discard=on,detect_zeroes=0",
        ),
    ]


def test_a_scsi_disk_has_queues_and_thread_on_its_controller() -> None:
    """The guest's own keys count as well as the levers."""
    one = guest(data_bus="scsi", data_queues=2, data_iothread=True, data_discard="ignore")
    assert disk_lines(one, {"data_queues"}) == [
        (
            "libvirt",
            "<driver name='qemu' cache='writeback' io='threads' discard='ignore' detect_zeroes='off'/>",
        ),
        ("libvirt", "<target dev='sdb' bus='scsi'/>"),
        ("libvirt", "<controller type='scsi' model='virtio-scsi'><driver queues='2' iothread='1'/></controller>"),
        ("libvirt", "<iothreads>1</iothreads> below <domain>"),
        ("proxmox", "# this gives every SCSI disk of the guest a virtio controller of its own"),
        ("proxmox", "qm set VMID --scsihw virtio-scsi-single"),
        ("proxmox", f"# scsiN {SLOT}"),
        (
            "proxmox",
            "qm set VMID --scsiN STORAGE:VOLUME,"
            "cache=writeback,aio=threads,iothread=1,discard=ignore,detect_zeroes=0,queues=2",
        ),
    ]
    assert "qm set VMID --delete DISK" in lines("proxmox", one, "data_bus")


def test_a_format_is_named_where_it_is_converted() -> None:
    one = guest(data_format="qcow2")
    assert "qcow2" not in str(disk_lines(one, {"data_cache"}))
    assert lines("libvirt", one, "data_format")[0].startswith("<driver name='qemu' type='qcow2' ")
    assert lines("proxmox", one, "data_format")[0] == "qm disk move VMID DISK STORAGE --format qcow2"
    (line,) = lines("host", one, "data_format")
    assert line == "qemu-img convert -O qcow2 FILE NEW, for libvirt, while the guest is off"


def test_an_iothread_of_both_disks_is_told() -> None:
    one = guest(iothread="shared")
    assert lines("libvirt", one)[-1] == "<iothreads>1</iothreads> below <domain>, which the first disk has too"
    told = "# each disk has an iothread of its own here; one that both disks share was measured"
    assert lines("proxmox", one)[0] == told
    assert "iothread=1" in lines("proxmox", one)[-1]
    assert told not in lines("proxmox", guest(data_iothread="own"))
    assert "iothread=0" in lines("proxmox", guest())[-1]


def test_zeroes_and_a_pool() -> None:
    assert "detect_zeroes='unmap'" in lines("libvirt", guest(detect_zeroes="unmap"))[0]
    assert "discard=on,detect_zeroes=1" in lines("proxmox", guest(detect_zeroes="unmap"))[-1]
    pool = disk_lines(guest(backing="rbd:pool"), ())
    assert not any(" io=" in text or "aio=" in text for _, text in pool)
    assert "packed='on'" in lines("libvirt", guest(data_packed=True))[0]


def test_what_the_guest_and_the_host_do() -> None:
    one = guest(read_ahead=4 * 2**20, allocation="full")
    assert lines("guest", one) == ["echo 4096 > /sys/block/vdX/queue/read_ahead_kb"]
    assert lines("host", one) == ["fallocate --length SIZE FILE, before the disk is first used"]
    assert lines("guest", guest()) == lines("host", guest()) == []
