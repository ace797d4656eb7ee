"""libvirt's XML of a domain: each attribute of a driver as a key, and one line for what is no domain."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from tests.plan.copied_guest.guests import WEB01, disk_keys, keys, with_device, with_disk, with_element
from tests.telemetry.recorded import RecordedHost
from vmlab.model.errors import ScenarioError
from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.copied_guest.xml_guest import guest_of_xml
from vmlab.telemetry.source import THE_HOST


def read(text: str) -> FoundGuest:
    return guest_of_xml(text, "x.xml", "a test")


def test_a_domain_with_all_that_there_are_keys_for() -> None:
    guest = read(WEB01)
    assert (guest.name, guest.is_emulated) == ("web01", False)
    assert keys(guest) == {
        "vcpus": 4,
        "memory": "4 GiB",
        "huge_pages": "2 MiB",
        "ksm": False,
        "cpu": "host -svm",
        "cpu_shares": 2048,
        "cpu_quota": 50.0,
        "pin": "0;1;0;1",
        "emulator_pin": "0-1",
        "nic_queues": 4,
        "vhost": True,
        "libvirt interface/driver/@rx_queue_size": "1024",
        "mtu": 9000,
        "firmware": "uefi",
    }
    assert [disk.target for disk in guest.in_order()] == ["vda", "sda", "sdb"]
    assert disk_keys(guest) == {
        "cache": "none",
        "io": "native",
        "format": "qcow2",
        "discard": "unmap",
        "iothread": "1",
        "queues": 4,
        "bus": "virtio",
    }
    assert disk_keys(guest, 1) == {
        "cache": "writeback",
        "format": "raw",
        "discard": "ignore",
        "detect_zeroes": "on",
        "bus": "scsi",
        "queues": 2,
        "iothread": "2",
        "limit_iops": 500,
    }


def test_what_the_lab_cannot_copy_of_it_is_said_line_by_line() -> None:
    guest = read(WEB01)
    for words in (
        "<topology sockets='1' dies='1' cores='2' threads='2'/>: each virtual CPU",
        "<tpm> tpm-crb: ",
        "<hostdev> pci domain=0x0000 bus=0x65: ",
        "<video> qxl: ",
        "<interface type='network'> 52:54:00:00:00:02: ",
        "<disk device='cdrom'>: ",
    ):
        assert [line for line in guest.found.lacks if line.startswith(words)], words
    assert [line for line in guest.disks[1].found.lacks if "bps-read 1048576" in line]
    assert [line for line in guest.disks[2].found.lacks if "bus 'sata'" in line]


@pytest.mark.parametrize(
    ("attribute", "key", "value"),
    [
        ("cache='none'", "cache", "none"),
        ("cache='directsync'", "cache", "directsync"),
        ("cache='default'", "cache", "writeback"),
        ("io='io_uring'", "io", "io_uring"),
        ("iothread='2'", "iothread", "2"),
        ("discard='unmap'", "discard", "unmap"),
        ("type='raw'", "discard", "ignore"),
        ("discard='unmap' detect_zeroes='unmap'", "detect_zeroes", "unmap"),
        ("detect_zeroes='unmap'", "detect_zeroes", "on"),
        ("queues='8'", "queues", 8),
        ("type='raw'", "queues", 2),
        ("packed='on'", "packed", True),
        ("type='qcow2'", "format", "qcow2"),
        ("", "format", "raw"),
        ("event_idx='off'", "driver/@event_idx", "off"),
        ("queue_size='1024'", "driver/@queue_size", "1024"),
    ],
)
def test_an_attribute_of_a_driver_is_a_key(attribute: str, key: str, value: object) -> None:
    assert disk_keys(read(with_disk(attribute)))[key] == value


def test_each_key_says_where_it_was_read() -> None:
    (disk,) = read(with_disk("cache='none'")).disks
    assert disk.found.said["cache"].where == "vda: <driver cache='none'/>"
    assert disk.found.said["queues"].where == "vda has no queues=: QEMU's own number on pc-q35-7.2"


@pytest.mark.parametrize(
    ("element", "key", "value"),
    [
        ("<memoryBacking><hugepages><page size='1' unit='G'/></hugepages></memoryBacking>", "huge_pages", "1 GiB"),
        ("<memoryBacking><locked/></memoryBacking>", "memory_lock", True),
        (
            "<memoryBacking><allocation mode='immediate'/></memoryBacking>",
            "libvirt memoryBacking/allocation/@mode",
            "immediate",
        ),
        ("<memoryBacking><discard/></memoryBacking>", "libvirt memoryBacking/discard", True),
        ("<blkiotune><weight>800</weight></blkiotune>", "libvirt blkiotune/weight", "800"),
        ("<numatune><memory mode='strict' nodeset='1'/></numatune>", "numa", 1),
        ("<os><type machine='pc-i440fx-7.2'>hvm</type></os>", "machine", "pc"),
        ("<os><type machine='pc'>hvm</type></os>", "machine", "pc"),
        ("<os firmware='efi'><type machine='pc'>hvm</type></os>", "firmware", "uefi"),
        ("<os><loader readonly='yes' type='pflash'>/f.fd</loader></os>", "firmware", "uefi"),
        ("<features><acpi/><pmu state='off'/></features>", "libvirt features/pmu/@state", "off"),
        ("<clock><timer name='hpet' present='no'/></clock>", "libvirt clock/timer[hpet]/@present", "no"),
        ("<memtune><hard_limit unit='MiB'>2048</hard_limit></memtune>", "libvirt memtune/hard_limit", "2097152"),
        ("<cputune><global_quota>50000</global_quota></cputune>", "libvirt cputune/global_quota", "50000"),
        ("<cputune><vcpupin vcpu='0' cpuset='0-3,^1'/><vcpupin vcpu='1' cpuset='0,2-3'/></cputune>", "pin", "0,2-3"),
    ],
)
def test_an_element_is_a_key(element: str, key: str, value: object) -> None:
    text = with_element(element) if "<os" not in element else re.sub(r"<os>.*</os>", element, with_disk())
    assert keys(read(text))[key] == value


@pytest.mark.parametrize("mode", ["preferred", "interleave", "restrictive"])
def test_memory_that_is_not_bound_is_none_of_a_node(mode: str) -> None:
    guest = read(with_element(f"<numatune><memory mode='{mode}' nodeset='0'/></numatune>"))
    assert "numa" not in keys(guest)
    words = f"<memory mode='{mode}' nodeset='0'/>: the lab takes a guest's memory from one node (strict) or from any"
    assert words in guest.found.lacks


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ("<features><hyperv><relaxed state='on'/><vapic/></hyperv></features>", "<hyperv/> with vapic: "),
        ("<features><hyperv mode='passthrough'/></features>", "<hyperv mode='passthrough'/>: "),
        (
            "<features><kvm><hidden state='on'/><poll-control state='on'/></kvm></features>",
            "<kvm/> with poll-control: ",
        ),
        ("<features><apic eoi='on'/></features>", "<apic eoi='on'/>: "),
        ("<clock offset='localtime'/>", "<clock offset='localtime'/>: the lab's clock is UTC"),
        (
            "<clock offset='utc'><timer name='kvmclock' present='yes'/></clock>",
            "<timer name='kvmclock' present='yes'/>: ",
        ),
        (
            "<cpu><model>Haswell</model><feature policy='optional' name='vmx'/></cpu>",
            "<feature policy='optional' name='vmx'/>: whether the guest has it depends on its host's CPU",
        ),
        ("<cpu mode='maximum'><cache mode='passthrough'/></cpu>", "<cache mode='passthrough'/> of cpu: no key"),
        ("<memoryBacking><source type='memfd'/></memoryBacking>", "<source type='memfd'/> of memoryBacking: no key"),
        ("<memoryBacking><access mode='shared'/></memoryBacking>", "<access mode='shared'/> of memoryBacking: no key"),
        (
            "<memoryBacking><hugepages/></memoryBacking>",
            "<hugepages/>, whose pages have the size that is usual",
        ),
        ("<numatune><memnode cellid='0' mode='strict' nodeset='1'/></numatune>", "<memnode cellid='0' mode='strict' "),
        (
            "<blkiotune><device><path>/dev/sda</path><weight>500</weight></device></blkiotune>",
            "<device> of blkiotune: path /dev/sda, weight 500: no key",
        ),
        (
            "<cputune><vcpusched vcpus='0' scheduler='fifo'/></cputune>",
            "<vcpusched vcpus='0' scheduler='fifo'/>: no",
        ),
        (
            "<iothreadids><iothread id='1'><poll max='9'/></iothread></iothreadids>",
            "<iothread id='1'/> with <poll max='9'/>: no key",
        ),
        (
            "<resource><partition>/gold</partition></resource>",
            "<partition>/gold</partition>: limits of that",
        ),
        (
            "<q:capabilities xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><q:del capability='usb'/>"
            "</q:capabilities>",
            "<qemu:capabilities> usb: no key",
        ),
        (
            "<q:override xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><q:device alias='net0'/></q:override>",
            "<qemu:override> net0: no key",
        ),
        ("<memtune><min_guarantee>9</min_guarantee></memtune>", "<min_guarantee>9</min_guarantee> of memtune: no key"),
    ],
)
def test_tuning_that_is_not_copied_is_a_line(element: str, words: str) -> None:
    text = with_element(element)
    if "<cpu" in element and "<cputune" not in element:
        text = text.replace("<cpu mode='host-passthrough'/>", "", 1)
    assert [line for line in read(text).found.lacks if line.startswith(words)]


@pytest.mark.parametrize(("kib", "pages"), [(2048, "2 MiB"), (1048576, "1 GiB")])
def test_pages_without_a_size_are_those_of_the_domains_host(kib: int, pages: str, tmp_path: Path) -> None:
    host = RecordedHost(tmp_path)
    host.proc("meminfo", f"HugePages_Total: 0\nHugepagesize:    {kib} kB\n")
    text = with_element("<memoryBacking><hugepages/></memoryBacking>")
    assert keys(guest_of_xml(text, "x.xml", "a test", host.roots))["huge_pages"] == pages
    assert "huge_pages" not in keys(read(text))


def test_a_cache_of_tables_has_any_unit() -> None:
    cache = "<metadata_cache><max_size unit='MiB'>4</max_size></metadata_cache>"
    text = with_disk().replace("<driver name='qemu' />", f"<driver name='qemu'>{cache}</driver>")
    assert disk_keys(read(text))["table_cache"] == "4 MiB"


def test_enlightenments_are_settings() -> None:
    hyperv = "<hyperv><relaxed state='on'/><spinlocks state='on' retries='8191'/></hyperv>"
    guest = read(with_element(f"<features>{hyperv}<kvm><hidden state='on'/></kvm></features>"))
    found = {key: value for key, value in keys(guest).items() if key.startswith("libvirt features")}
    assert found == {
        "libvirt features/hyperv/relaxed/@state": "on",
        "libvirt features/hyperv/spinlocks/@state": "on",
        "libvirt features/hyperv/spinlocks/@retries": "8191",
        "libvirt features/kvm/hidden/@state": "on",
    }
    assert not any("features" in line for line in guest.found.lacks)


def test_what_every_guest_of_the_lab_has_is_no_line() -> None:
    common = "<features><acpi/><apic/></features><clock offset='utc'/>"
    assert read(with_element(common)).found.lacks == read(with_disk()).found.lacks


def test_threads_and_groups_of_a_disk_are_lines() -> None:
    text = with_disk(more="<throttlefilters><throttlefilter group='slow'/></throttlefilters>")
    threads = "<iothreads><iothread id='1'/><iothread id='2'/></iothreads>"
    (disk,) = read(text.replace("<driver name='qemu' />", f"<driver name='qemu'>{threads}</driver>")).disks
    assert "vda: <iothreads> of 2: the lab's disk has one iothread" in disk.found.lacks
    assert disk.found.value("iothread") == "1,2"
    assert "vda: <throttlefilters> of slow: the lab's disks have limits of their own" in disk.found.lacks


def test_board_and_firmware_that_the_lab_has_not_are_lines() -> None:
    text = with_disk().replace("pc-q35-7.2", "microvm").replace("<os>", "<os><loader type='rom'>/b.bin</loader>")
    guest = read(text)
    assert not {"machine", "firmware"} & keys(guest).keys()
    assert "<type machine='microvm'>hvm</type>: the lab's boards are q35 and pc" in guest.found.lacks
    assert "<loader type='rom'>/b.bin</loader>: the lab's firmware is SeaBIOS or OVMF" in guest.found.lacks
    secure = read(re.sub(r"<os>", "<os firmware='efi'><loader secure='yes'/>", with_disk()))
    assert "<loader secure='yes'/>: the lab's UEFI has no secure boot" in secure.found.lacks


def test_bursts_are_keys() -> None:
    limits = {"total_iops_sec": 100, "total_iops_sec_max": 300, "total_iops_sec_max_length": 5}
    limits |= {"total_bytes_sec": 1 << 20, "total_bytes_sec_max": 2 << 20, "total_bytes_sec_max_length": 7}
    limits |= {"write_iops_sec_max": 9}
    tune = "".join(f"<{name}>{value}</{name}>" for name, value in limits.items())
    (disk,) = read(with_disk(more=f"<iotune>{tune}</iotune>")).disks
    found = {key: said.value for key, said in disk.found.said.items() if key.startswith("limit_")}
    assert found == {
        "limit_iops": 100,
        "limit_bandwidth": "1 MiB/s",
        "limit_iops_burst": 300,
        "limit_bandwidth_burst": "2 MiB/s",
        "limit_burst_length": "5 s",
    }
    assert "vda: bps-max-length 7: the lab's bursts have one length, here 5 s" in disk.found.lacks
    assert "vda: iops-write-max 9: the lab limits reads and writes together" in disk.found.lacks


@pytest.mark.parametrize(
    ("cpu", "value"),
    [
        ("<cpu mode='host-model'/>", "host-model"),
        ("<cpu mode='maximum'/>", "max"),
        ("<cpu mode='custom'><model>EPYC</model><feature policy='require' name='x2apic'/></cpu>", "EPYC +x2apic"),
        ("<cpu><model>Haswell</model><feature policy='optional' name='vmx'/></cpu>", "Haswell"),
        ("", "qemu64"),
    ],
)
def test_the_model_of_the_cpus(cpu: str, value: str) -> None:
    assert keys(read(with_disk().replace("<cpu mode='host-passthrough'/>", cpu)))["cpu"] == value


@pytest.mark.parametrize(
    "device",
    [
        "<filesystem type='mount'><driver type='virtiofs'/></filesystem>",
        "<memory model='dimm'><target/></memory>",
        "<iommu model='intel'/>",
        "<sound model='ich9'/>",
    ],
)
def test_a_device_that_the_lab_has_not_is_a_line(device: str) -> None:
    tag = device[1:].partition(" ")[0]
    assert [line for line in read(with_device(device)).found.lacks if line.startswith(f"<{tag}>")]


def test_a_pool_of_ceph_is_where_the_disk_lies() -> None:
    source = "<source protocol='rbd' name='pool/disk'><host name='192.0.2.1' port='6789'/></source>"
    text = with_disk(source=source).replace("<disk type='file'", "<disk type='network'")
    assert disk_keys(read(text))["backing"] == "rbd:pool"


def test_size_and_place_of_a_file_are_read_for_a_domain_of_this_host_alone(tmp_path: Path) -> None:
    file = tmp_path / "d.qcow2"
    header = struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 112, 9, 17, 40 << 30)
    file.write_bytes(header.ljust(72, b"\0") + struct.pack(">Q", 1 << 4) + bytes(200))
    text = with_disk("type='qcow2'", source=f"<source file='{file}'/>")
    found = disk_keys(guest_of_xml(text, "x.xml", "a test", THE_HOST))
    assert (found["size"], found["cluster"], found["extended_l2"]) == (40 << 30, "128 KiB", True)
    assert found["backing"] == f"folder:{tmp_path}"
    (disk,) = (other := read(text)).disks
    assert not {"size", "cluster", "extended_l2", "backing"} & disk_keys(other).keys()
    assert disk.found.lacks == [f"vda: {file} may be a file of another host: what lies there is not known here"]
    file.write_bytes(bytes(5 << 20))
    text = with_disk("type='raw'", source=f"<source file='{file}'/>")
    assert disk_keys(guest_of_xml(text, "x.xml", "a test", THE_HOST))["size"] == 5 << 20


@pytest.mark.parametrize("tag", ["readonly", "transient"])
def test_a_disk_whose_changes_do_not_stay_has_a_line(tag: str) -> None:
    (disk,) = read(with_disk(more=f"<{tag}/>")).disks
    assert [line for line in disk.found.lacks if line.startswith(f"vda: <{tag}/>: ")]
    assert disk.is_written is (tag != "readonly")


def test_limits_that_disks_share_are_a_line() -> None:
    limits = "<total_iops_sec>9</total_iops_sec><size_iops_sec>4096</size_iops_sec>"
    tune = f"<iotune>{limits}<group_name>g</group_name></iotune>"
    other = (
        "<disk type='file'><source file='/no/e'/><target dev='vdb'/><iotune><group_name>g</group_name></iotune></disk>"
    )
    alone = read(with_disk(more=tune)).disks
    both = read(with_disk(more=tune).replace("</devices>", f"{other}</devices>")).disks
    words = "limits of group g: vda and vdb share them; each of the lab's disks has limits of its own"
    assert [f"{disk.target}: {words}" in disk.found.lacks for disk in (*alone, *both)] == [False, True, True]
    size = "vda: iops-size 4096: a larger request counts as several of them; in the lab each is one"
    assert size in alone[0].found.lacks


def test_a_volume_of_a_storage_pool_is_a_line() -> None:
    text = with_disk(source="<source pool='default' volume='a b'/>").replace("<disk type='file'", "<disk type='volume'")
    (disk,) = read(text).disks
    words = "it is volume a b of storage pool default: `virsh vol-path 'a b' --pool default` names it"
    assert f"vda: {words}" in disk.found.lacks and "format" not in disk.found.said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<domain type='kvm'>\n<name>x</nam>", "x.xml:2:14: is no XML: Opening and ending tag mismatch: name"),
        (WEB01[:900], "is no XML: "),
        ("<network><name>n</name></network>", "x.xml:1:1: is the XML of <network>, and not of a <domain>"),
        ("<domain type='lxc'><name>c</name></domain>", "x.xml:1:1: is a container, whose disks QEMU does not drive"),
        ("<domain type='xen'/>", "x.xml:1:1: is a guest of Xen, "),
        ("<domain/>", "x.xml:1:1: is a domain of type '', "),
        (f"<!DOCTYPE domain [<!ENTITY a SYSTEM '{__file__}'>]>\n<domain type='kvm'>&a;</domain>", "has a DOCTYPE"),
    ],
)
def test_what_is_no_domain_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.line is not None


@pytest.mark.parametrize("text", ["0x4", "-1", "9" * 40, "9" * 5000, "", "½", "²"])
def test_numbers_that_are_none_are_left_out(text: str) -> None:
    limit = f"<iotune><total_iops_sec>{text}</total_iops_sec></iotune>"
    guest = read(with_disk(f"queues='{text}'", more=f"<boot order='{text}'/>{limit}"))
    assert disk_keys(guest)["queues"] == 2
    assert "limit_iops" not in disk_keys(guest)
    sizes = f"<memory>{text}</memory><vcpu current='{text}'>{text}</vcpu>"
    given = with_disk().replace("<memory unit='GiB'>1</memory><vcpu>2</vcpu>", sizes)
    assert not {"vcpus", "memory"} & keys(read(given)).keys()


def test_pins_of_more_cpus_than_a_guest_can_have_are_read_at_once() -> None:
    text = with_disk().replace("<vcpu>2</vcpu>", "<vcpu cpuset='1'>99999999999</vcpu>")
    assert keys(read(text))["pin"] == "1"
