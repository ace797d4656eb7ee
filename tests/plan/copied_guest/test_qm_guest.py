"""Proxmox VE's `qm config`: each option as a key, and its own defaults where it says nothing."""

from __future__ import annotations

import pytest

from tests.plan.copied_guest.guests import ROOMY, VM100, disk_keys, keys
from vmlab.model.errors import ScenarioError
from vmlab.plan.copied_guest.copied_scenario import copied_scenario
from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.copied_guest.qm_guest import guest_of_qm_config, is_qm_config
from vmlab.plan.copied_guest.trial import Trial


def read(text: str) -> FoundGuest:
    return guest_of_qm_config(text, "x.conf", "a test")


def test_a_guest_with_all_that_there_are_keys_for() -> None:
    guest = read(VM100)
    assert (guest.name, guest.is_emulated) == ("web", False)
    assert keys(guest) == {
        "vcpus": 4,
        "memory": "4 GiB",
        "cpu": "host +aes -pcid",
        "libvirt cputune/global_period": "100000",
        "libvirt cputune/global_quota": "150000",
        "cpu_shares": 2048,
        "huge_pages": "2 MiB",
        "nic_queues": 4,
        "mtu": 9000,
    }
    assert disk_keys(guest) == {
        "bus": "scsi",
        "queues": 4,
        "iothread": "iothread-scsi0",
        "cache": "directsync",
        "io": "native",
        "discard": "unmap",
        "detect_zeroes": "unmap",
        "size": 32 << 30,
        "format": "raw",
        "limit_bandwidth": "100 MiB/s",
    }
    lacks = [*guest.found.lacks, *guest.disks[0].found.lacks]
    for words in ("hostpci0: 0000:65:00.0", "tpmstate0: ", "balloon: 2048", "net1: e1000=", "ide2: local:iso"):
        assert [line for line in lacks if line.startswith(words)], words
    assert [line for line in lacks if "bps-read 52428800" in line]


def test_what_is_left_out_has_the_defaults_of_proxmox() -> None:
    guest = read("scsi1: local:100/vm-100-disk-1.qcow2,size=8G\nscsihw: virtio-scsi-pci\n")
    assert keys(guest) == {"vcpus": 1, "cpu": "kvm64 +lahf_lm +sep", "memory": "512 MiB", "machine": "pc"}
    assert guest.found.said["machine"].where == "no machine: Proxmox VE's i440fx"
    found = disk_keys(guest)
    assert [found[key] for key in ("cache", "io", "discard", "detect_zeroes", "format")] == [
        "none",
        "io_uring",
        "ignore",
        "on",
        "qcow2",
    ]
    assert guest.disks[0].found.said["cache"].where == "scsi1 has no cache=: Proxmox VE's none"


@pytest.mark.parametrize(
    ("option", "key", "value"),
    [
        ("cache=writeback", "cache", "writeback"),
        ("cache=off", "cache", "none"),
        ("aio=threads", "io", "threads"),
        ("discard=on", "detect_zeroes", "unmap"),
        ("discard=on,detect_zeroes=0", "detect_zeroes", "off"),
        ("iops=300", "limit_iops", 300),
        ("mbps=1.5", "limit_bandwidth", "1536 KiB/s"),
        ("iops=300,iops_max=400", "limit_iops_burst", 400),
        ("mbps=1,mbps_max=2", "limit_bandwidth_burst", "2 MiB/s"),
        ("mbps=1,mbps_max=2,bps_max_length=5", "limit_burst_length", "5 s"),
        ("queues=3", "queues", 3),
        *((f"iothread={yes}", "iothread", "iothread-virtio0") for yes in ("1", "on", "yes", "TRUE")),
        *((f"detect_zeroes={yes}", "detect_zeroes", "on") for yes in ("1", "on", "yes", "true")),
        ("detect_zeroes=off", "detect_zeroes", "off"),
        ("size=104858K", "size", 104858 << 10),
    ],
)
def test_an_option_of_a_drive_is_a_key(option: str, key: str, value: object) -> None:
    assert disk_keys(read(f"virtio0: local:100/d.raw,{option}\ncores: 2\n"))[key] == value


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("cpu: x86-64-v2-AES", "cpu", "qemu64 +aes +popcnt +pni +sse4.1 +sse4.2 +ssse3"),
        ("cpu: cputype=EPYC", "cpu", "EPYC"),
        ("cpu: kvm32", "cpu", "kvm32 +sep"),
        ("kvm: 0", "cpu", "qemu64"),
        ("cpu: host,level=30,flags=+md-clear;-hv-tlbflush;+nested-virt;-pcid", "cpu", "host +md-clear -pcid"),
        ("memory: current=2048", "memory", "2 GiB"),
        ("vcpus: 3", "vcpus", 3),
        ("affinity: 0,2-3", "pin", "0,2-3"),
        ("machine: pc-i440fx-8.1+pve0", "machine", "pc"),
        ("machine: viommu=virtio,type=pc", "machine", "pc"),
        ("bios: ovmf", "firmware", "uefi"),
        ("allow-ksm: 0", "ksm", False),
        ("cpu: host,hidden=1", "libvirt features/kvm/hidden/@state", "on"),
        ("memory: 2048\nhugepages: any", "huge_pages", "1 GiB"),
        ("memory: 1536\nhugepages: any", "huge_pages", "2 MiB"),
        ("numa: 1\nnuma0: cpus=0-3,hostnodes=1,memory=2048,policy=bind", "numa", 1),
        ("hugepages: 1024", "huge_pages", "1 GiB"),
    ],
)
def test_a_line_is_a_key(line: str, key: str, value: object) -> None:
    assert keys(read(f"cores: 4\n{line}\nvirtio0: a:b,size=1G\n"))[key] == value


def test_flags_that_are_no_features_are_a_line() -> None:
    guest = read("cpu: host,flags=-hv-tlbflush;+nested-virt;+aes\nvirtio0: a:b,size=1G\n")
    assert "cpu: flags=-hv-tlbflush;+nested-virt: no features of a processor, and no key" in guest.found.lacks


def test_a_disk_behind_another_controller_says_so() -> None:
    guest = read("cores: 1\nscsi0: a:b,size=1G,iothread=1\nsata0: a:c,size=1G\n")
    assert "scsi0: scsihw: lsi, as it is not said: the lab's is virtio-scsi" in guest.disks[0].found.lacks
    assert "bus" not in disk_keys(guest, 1)


@pytest.mark.parametrize(
    "line",
    ["cpus=0,hostnodes=0,policy=preferred", "cpus=0,hostnodes=0-1,policy=bind", "cpus=0,memory=512"],
)
def test_memory_that_is_not_bound_to_one_node_is_none_of_a_node(line: str) -> None:
    guest = read(f"numa: 1\nnuma0: {line}\nvirtio0: a:b,size=1G\n")
    assert "numa" not in keys(guest)
    assert f"numa0: {line}: the lab takes a guest's memory from one node or from any" in guest.found.lacks


def test_memory_bound_to_several_nodes_is_of_none() -> None:
    text = "".join(f"numa{node}: cpus={node},hostnodes={node},memory=512,policy=bind\n" for node in (0, 1))
    guest = read(f"numa: 1\n{text}virtio0: a:b,size=1G\n")
    assert "numa" not in keys(guest)
    assert len([line for line in guest.found.lacks if line.startswith("numa")]) == 3


def test_a_disk_by_its_path_is_of_no_storage() -> None:
    (disk,) = read("scsi0: /dev/disk/by-id/ata-X,size=1G\nscsihw: virtio-scsi-pci\n").disks
    assert not [line for line in disk.found.lacks if "storage" in line]
    assert "scsi0: it is /dev/disk/by-id/ata-X of its host; `backing` puts the data disk elsewhere" in disk.found.lacks
    assert disk.found.said["format"].where == "scsi0: /dev/disk/by-id/ata-X, which has no file's ending"


@pytest.mark.parametrize(
    ("file", "base"),
    [
        ("local:9000/base-9000-disk-0.qcow2/100/vm-100-disk-0.qcow2", "base-9000-disk-0.qcow2"),
        ("ceph:base-9001-disk-0/vm-102-disk-0", "base-9001-disk-0"),
    ],
)
def test_a_linked_clone_is_a_line(file: str, base: str) -> None:
    (disk,) = read(f"virtio0: {file},size=1G\n").disks
    assert f"virtio0: it reads {base} below it; the lab's data disk has nothing below it" in disk.found.lacks
    (template,) = read("virtio0: ceph:base-9001-disk-0,size=1G\n").disks
    assert not any("below it" in line for line in template.found.lacks)


@pytest.mark.parametrize(("machine", "queues"), [("pc-i440fx-5.1+pve0", 1), ("pc-q35-8.1", 4), ("q35", 4)])
def test_an_old_machine_type_has_one_queue(machine: str, queues: int) -> None:
    assert disk_keys(read(f"cores: 4\nmachine: {machine}\nvirtio0: a:b,size=1G\n"))["queues"] == queues


def test_the_name_of_a_disk_stands_once() -> None:
    (disk,) = read("scsi0: a:b,size=1G\nscsihw: virtio-scsi-pci\n").disks
    text = copied_scenario(read("scsi0: a:b,size=1G\nscsihw: virtio-scsi-pci\n"), Trial(ROOMY))
    assert "# scsi0: size=1G" in text and "scsi0: scsi0" not in text
    assert disk.found.said["size"].where == "size=1G"


def test_the_text_is_known_by_its_form() -> None:
    assert is_qm_config(VM100)
    assert not is_qm_config("name: tile\nguests:\n  vm: {memory: 1 GiB}\n")
    assert not is_qm_config("") and not is_qm_config("name: x\n")


def test_a_container_is_one_line() -> None:
    with pytest.raises(ScenarioError, match=r"x\.conf:2:1: is the configuration of a container"):
        read("arch: amd64\nrootfs: local-lvm:vm-1,size=8G\ncores: 1\nmemory: 512\n")
