"""Lines for libvirt and Proxmox VE: each option where it belongs."""

from __future__ import annotations

from vmlab.report.disk_lines import disk_lines


def test_a_virtio_disk() -> None:
    keys = {"data_cache": "none", "data_io": "native", "data_queues": 4, "data_iothread": True, "data_format": "raw"}
    assert disk_lines(keys) == [
        ("libvirt", "<driver name='qemu' type='raw' cache='none' io='native' queues='4' iothread='1'/>"),
        ("libvirt", "<iothreads>1</iothreads> below <domain>"),
        ("proxmox", "qm set VMID --virtio0 STORAGE:VOLUME,format=raw,cache=none,aio=native,iothread=1"),
    ]


def test_a_scsi_disk_has_queues_and_thread_on_its_controller() -> None:
    keys = {"data_bus": "scsi", "data_cache": "writeback", "data_queues": 2, "data_iothread": True}
    assert disk_lines(keys) == [
        ("libvirt", "<driver name='qemu' cache='writeback'/>"),
        ("libvirt", "<target dev='sdb' bus='scsi'/>"),
        ("libvirt", "<controller type='scsi' model='virtio-scsi'><driver queues='2' iothread='1'/></controller>"),
        ("libvirt", "<iothreads>1</iothreads> below <domain>"),
        (
            "proxmox",
            "qm set VMID --scsihw virtio-scsi-single --scsi0 STORAGE:VOLUME,cache=writeback,iothread=1,queues=2",
        ),
    ]


def test_what_the_guest_and_the_host_do() -> None:
    keys = {"data_cache": "writeback", "data_iothread": False, "read_ahead": "4 MiB", "allocation": "full"}
    assert disk_lines(keys) == [
        ("libvirt", "<driver name='qemu' cache='writeback'/>"),
        ("proxmox", "qm set VMID --virtio0 STORAGE:VOLUME,cache=writeback,iothread=0"),
        ("guest", "echo 4096 > /sys/block/vdX/queue/read_ahead_kb"),
        ("host", "fallocate --length SIZE FILE, before the disk is first used"),
    ]
    assert [where for where, _ in disk_lines({"read_ahead": None, "allocation": "thin"})] == ["libvirt"]
