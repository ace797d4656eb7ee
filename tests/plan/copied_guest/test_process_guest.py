"""QEMU's processes as Proxmox VE, LXD and people start them."""

from __future__ import annotations

import json
import os
import shlex
import struct
from pathlib import Path

import pytest

from tests.plan.copied_guest.guests import disk_keys, keys, of_proxmox, throttled_node
from tests.telemetry.domains.own_guests import OwnGuests
from tests.telemetry.recorded import RecordedHost
from vmlab.model.domain import HOST_DEVICE, DomainDisk
from vmlab.model.errors import RefusedError, UsageError, VmlabError
from vmlab.plan.copied_guest import below_disk
from vmlab.plan.copied_guest.found_guest import FoundDisk, FoundGuest
from vmlab.plan.copied_guest.guest_sources import found_guest
from vmlab.plan.copied_guest.process_guest import guest_of_process, named_so
from vmlab.telemetry.domains.libvirt_reader import LibvirtReader
from vmlab.telemetry.domains.qemu_options import QemuOptions
from vmlab.telemetry.source import Roots

DEVICE = "scsi-hd,bus=virtioscsi0.0,drive=drive-scsi0,id=scsi0,bootindex=100,write-cache=on"
LXD = """[machine]
type = "q35"
accel = "kvm"
[memory]
size = "2048M"
[smp-opts]
cpus = "2"
[object "mem0"]
qom-type = "memory-backend-memfd"
size = "2048M"
hugetlb = "on"
hugetlbsize = "1G"
[device "qemu_scsi"]
driver = "virtio-scsi-pci"
[drive "lxd_root"]
file = "/no/u1.block"
format = "raw"
if = "none"
cache = "none"
aio = "native"
discard = "on"
[device "dev-lxd_root"]
driver = "scsi-hd"
bus = "qemu_scsi.0"
drive = "lxd_root"
bootindex = "1"
[device "dev-lxd_gpu"]
driver = "vfio-pci"
host = "0000:65:00.0"
"""


def read(options: QemuOptions, root: Path = Path("/no/such")) -> FoundGuest:
    return guest_of_process(42, options, Roots(root / "proc", root / "sys", root / "proc"))


def by_hand(words: str) -> FoundGuest:
    return read(QemuOptions(shlex.split(words)))


def test_a_guest_of_proxmox() -> None:
    guest = read(of_proxmox(throttled_node(), DEVICE))
    assert (guest.name, guest.is_emulated) == ("web", None)
    assert keys(guest) == {
        "vcpus": 4,
        "memory": "2 GiB",
        "cpu": "host +aes -pcid",
        "nic_queues": 4,
        "vhost": True,
        "mtu": 9000,
        "libvirt interface/driver/@rx_queue_size": "1024",
    }
    assert disk_keys(guest) == {
        "cache": "none",
        "io": "io_uring",
        "format": "raw",
        "discard": "unmap",
        "detect_zeroes": "on",
        "bus": "scsi",
        "queues": 4,
        "iothread": "iothread-virtioscsi0",
        "limit_iops": 500,
    }
    assert guest.disks[0].order == 100
    assert [line for line in guest.disks[0].found.lacks if "bps-read 1048576" in line]
    assert [line for line in guest.found.lacks if line.startswith("-cpu enforce,+kvm_pv_eoi")]


def test_discard_counts_where_every_node_passes_it_on() -> None:
    assert disk_keys(read(of_proxmox(throttled_node("ignore"), DEVICE)))["discard"] == "ignore"
    assert disk_keys(read(of_proxmox(throttled_node(direct=False), DEVICE)))["cache"] == "writeback"


def test_a_guest_of_lxd_by_its_file() -> None:
    options = QemuOptions(["-name", "u1", "-readconfig", "/run/u1.conf"], read_config=lambda path: LXD)
    guest = read(options)
    assert keys(guest) == {"vcpus": 2, "memory": "2 GiB", "huge_pages": "1 GiB", "cpu": "qemu64"}
    found = disk_keys(guest)
    assert [found[key] for key in ("cache", "io", "discard", "bus", "format")] == [
        "none",
        "native",
        "unmap",
        "scsi",
        "raw",
    ]
    assert "-device vfio-pci 0000:65:00.0: a device of the host is passed through" in guest.found.lacks


def test_a_file_that_cannot_be_read_is_one_line() -> None:
    with pytest.raises(RefusedError, match="-readconfig /run/gone"):
        read(QemuOptions(["-name", "c", "-readconfig", "/run/gone"]))


def test_a_guest_started_by_hand() -> None:
    guest = by_hand(
        "-name a -m 1G -smp 2 -machine q35,mem-merge=off -overcommit mem-lock=on "
        "-drive file=/no/a.img,if=virtio,cache=none,aio=native,format=raw,throttling.bps-total=1048576 -hdb /no/b.img"
    )
    assert {key: keys(guest)[key] for key in ("ksm", "memory_lock")} == {"ksm": False, "memory_lock": True}
    by_target = {disk.target: disk for disk in guest.disks}
    drive = {said.key: said.value for said in by_target["drive0"].found.said.values()}
    assert drive == {
        "cache": "none",
        "io": "native",
        "format": "raw",
        "discard": "ignore",
        "bus": "virtio",
        "queues": 2,
        "limit_bandwidth": "1 MiB/s",
    }
    assert "hdb: if=ide: the lab's disks are virtio or scsi" in by_target["hdb"].found.lacks


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("-device tpm-crb,tpmdev=t", "guests of the lab have no TPM"),
        ("-device virtio-vga-gl", "guests of the lab have no screen"),
        ("-device vhost-user-fs-pci,chardev=c", "guests of the lab share no folder"),
        ("-device e1000,netdev=n", "the lab's network card is virtio"),
        ("-machine microvm", "the lab's boards are q35 and pc"),
    ],
)
def test_what_the_lab_cannot_copy_is_a_line(device: str, words: str) -> None:
    assert [line for line in by_hand(f"-m 64 -drive file=/no/a,if=virtio {device}").found.lacks if words in line]


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("-machine pc-i440fx-8.1+pve0", "machine", "pc"),
        ("-drive if=pflash,file=/fw.fd", "firmware", "uefi"),
        ("-machine q35,pflash0=f0", "firmware", "uefi"),
    ],
)
def test_an_option_is_a_key(words: str, key: str, value: object) -> None:
    assert keys(by_hand(f"-m 64 -drive file=/no/a,if=virtio {words}"))[key] == value


@pytest.mark.parametrize(
    ("path", "pages"),
    [
        ("/dev/hugepages/libvirt/qemu/1-web1G", "2 MiB"),
        ("/dev/hugepages/1G/kvm/1-a", "1 GiB"),
        ("/mnt/huge", "1 GiB"),
        ("/dev/shm/hugepages1G", None),
    ],
)
def test_the_size_of_pages_is_that_of_the_mount(path: str, pages: str | None, tmp_path: Path) -> None:
    huge = (("/dev/hugepages", "2M"), ("/dev/hugepages/1G", "1024M"), ("/mnt/huge", "1024M"))
    mounts = "".join(f"hugetlbfs {point} hugetlbfs rw,relatime,pagesize={size} 0 0\n" for point, size in huge)
    RecordedHost(tmp_path).proc("42/mounts", f"tmpfs /dev/shm tmpfs rw 0 0\n{mounts}")
    for words in (f"-mem-path {path}", f"-object memory-backend-file,id=m,size=1G,mem-path={path}"):
        guest = read(QemuOptions(shlex.split(f"-m 1G -drive file=/no/a,if=virtio {words}")), tmp_path)
        assert keys(guest).get("huge_pages") == pages


def test_bursts_are_keys() -> None:
    limits = "throttling.iops-total=50,throttling.iops-total-max=90,throttling.iops-total-max-length=4"
    found = disk_keys(by_hand(f"-m 64 -drive file=/no/a,if=virtio,{limits}"))
    assert [found[key] for key in ("limit_iops", "limit_iops_burst", "limit_burst_length")] == [50, 90, "4 s"]


def test_limits_by_their_old_names_are_those_of_today() -> None:
    limits = "iops_rd=10,iops_wr_max=20,bps=1048576,bps_max=2097152"
    (disk,) = by_hand(f"-m 64 -drive file=/no/a,if=virtio,{limits}").disks
    assert (disk.found.value("limit_bandwidth"), disk.found.value("limit_bandwidth_burst")) == ("1 MiB/s", "2 MiB/s")
    for words in ("iops-read 10", "iops-write-max 20"):
        assert f"drive0: {words}: the lab limits reads and writes together" in disk.found.lacks


@pytest.mark.parametrize(
    "words",
    [
        "-drive file=/no/{0},id={0},if=none,throttling.group=g,throttling.iops-total=9,throttling.iops-size=4096",
        "-drive file=/no/{0},id={0},if=none,throttling.group=g,iops=9,iops_size=4096",
        "-blockdev driver=throttle,throttle-group=g,node-name={0},file.driver=file,file.filename=/no/{0}",
    ],
)
def test_limits_that_disks_share_are_a_line(words: str) -> None:
    group = '{"qom-type": "throttle-group", "id": "g", "limits": {"iops-total": 9, "iops-size": 4096}}'
    given = ["-m", "64", "-object", group, *words.format("a").split()]
    alone, both = read(QemuOptions(given)).disks, read(QemuOptions([*given, *words.format("b").split()])).disks
    line = "limits of group g: a and b share them; each of the lab's disks has limits of its own"
    assert [f"{disk.target}: {line}" in disk.found.lacks for disk in (*alone, *both)] == [False, True, True]
    assert [disk.found.value("limit_iops") for disk in both] == [9, 9]
    assert [one for one in both[0].found.lacks if one.startswith("a: iops-size 4096: ")]


def test_caches_of_tables_and_mapped_queues() -> None:
    words = "-m 64 -drive file=/no/a,format=qcow2,if=none,id=a,cache-size=2M,l2-cache-size=1M -device"
    mapping = '{"driver": "virtio-blk-pci", "drive": "a", "iothread-vq-mapping": [{"iothread": "t0"}]}'
    (disk,) = read(QemuOptions([*words.split(), mapping])).disks
    assert disk.found.value("table_cache") == "2 MiB"
    assert disk.found.value("iothread") == "t0"
    for words in ("l2-cache-size=1M: the lab's table_cache is", "iothread-vq-mapping: the lab's disk has one iothread"):
        assert [line for line in disk.found.lacks if words in line]


def test_pinned_threads_are_read_from_the_process(tmp_path: Path) -> None:
    host = RecordedHost(tmp_path)
    host.sys("devices/system/cpu/online", "0-7\n")
    for thread, name, cpus in ((42, "qemu", "0-7"), (43, "CPU 0/KVM", "2"), (44, "CPU 1/KVM", "3,5")):
        host.proc(f"42/task/{thread}/status", f"Name:\t{name}\nCpus_allowed_list:\t{cpus}\n")
    guest = guest_of_process(42, QemuOptions(shlex.split("-m 64 -smp 2 -drive file=/no/a,if=virtio")), host.roots)
    assert keys(guest)["pin"] == "2;3,5"
    assert "emulator_pin" not in keys(guest)


def qcow2_header(size: int) -> bytes:
    return struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 0, 0, 16, size).ljust(104, b"\0")


@pytest.mark.parametrize("words", ["-hda {}", "-drive file={},if=virtio", "-hda d"])
@pytest.mark.parametrize(
    ("begin", "format", "size"),
    [
        (qcow2_header(40 << 30), "qcow2", 40 << 30),
        (b"\xeb\x63", "raw", 1 << 20),
        (b"KDMV", None, None),
        (bytes(64) + b"\x7f\x10\xda\xbe", None, None),
    ],
)
def test_a_format_that_is_not_said_is_that_of_the_header(
    words: str, begin: bytes, format: str | None, size: int | None, tmp_path: Path
) -> None:
    file = tmp_path / "d"
    file.write_bytes(begin.ljust(1 << 20, b"\0"))
    host = RecordedHost(tmp_path / "host")
    host.proc("self/mountinfo", "")
    host.proc("42/mounts", "")
    (host.roots.proc / "42/root").symlink_to("/")
    (host.roots.proc / "42/cwd").symlink_to(tmp_path)
    guest = guest_of_process(42, QemuOptions(shlex.split(words.format(file))), host.roots)
    found = guest.disks[0].found
    assert (found.value("format"), found.value("size")) == (format, size)
    assert found.value("backing") == f"folder:{tmp_path}"
    assert any("no format is said" in line for line in found.lacks) is (format is None)


@pytest.mark.parametrize(("more", "is_line"), [({}, True), ({"backing": None}, False)])
def test_a_file_that_the_header_names_is_a_line(more: dict[str, None], is_line: bool, tmp_path: Path) -> None:
    file = tmp_path / "d"
    file.write_bytes(struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 112, 9, 16, 40 << 30).ljust(200, b"\0"))
    host = RecordedHost(tmp_path / "host")
    host.proc("self/mountinfo", "")
    (host.roots.proc / "42").mkdir()
    (host.roots.proc / "42/root").symlink_to("/")
    below = {"driver": "file", "filename": str(file)}
    node = json.dumps({"driver": "qcow2", "node-name": "n", "file": below, **more})
    (disk,) = guest_of_process(42, QemuOptions(["-m", "64", "-blockdev", node]), host.roots).disks
    line = f"n: it reads another file below it, by the qcow2 header of {file}; the lab's data disk has nothing below it"
    assert (line in disk.found.lacks) is is_line


def test_a_file_of_another_mount_namespace_lies_in_no_folder_of_this_one(tmp_path: Path) -> None:
    host = RecordedHost(tmp_path)
    host.proc("self/mountinfo", "")
    other = host.roots.proc / "42/root" / str(tmp_path).lstrip("/")
    other.mkdir(parents=True)
    for folder in (other, tmp_path):
        (folder / "d.raw").write_bytes(bytes(1 << 20))
    words = f"-drive file={tmp_path}/d.raw,format=raw,if=virtio"
    found = guest_of_process(42, QemuOptions(shlex.split(words)), host.roots).disks[0].found
    assert found.value("size") == 1 << 20 and found.value("backing") is None
    assert [line for line in found.lacks if "as its QEMU sees it: here this path is another file, or none" in line]


@pytest.mark.parametrize(("suspended", "size"), [("0", 40 << 30), ("1", None)])
def test_a_qcow2_on_a_logical_volume_is_as_large_as_its_header_says(
    suspended: str, size: int | None, tmp_path: Path
) -> None:
    host = RecordedHost(tmp_path)
    host.sys("dev/block/253:7/size", f"{41 << 21}\n")
    for name, text in (("uuid", "LVM-abc"), ("name", "vg-a"), ("suspended", suspended)):
        host.sys(f"dev/block/253:7/dm/{name}", f"{text}\n")
    (tmp_path / "device").write_bytes(qcow2_header(40 << 30))
    state = os.stat_result([0] * 10, {"st_rdev": os.makedev(253, 7)})
    for format, expected in (("qcow2", size), ("raw", 41 << 30)):
        disk = FoundDisk("vda", "/dev/vg/a")
        named = DomainDisk("vda", "/dev/vg/a", format, protocol=HOST_DEVICE)
        below_disk._on_a_device(disk, named, tmp_path / "device", state, host.roots)
        assert (disk.found.value("size"), disk.found.value("backing")) == (expected, "lvm:vg")


@pytest.mark.parametrize(
    ("words", "is_written", "line"),
    [
        ("-drive file=/no/a,if=virtio,readonly=on", False, "drive0: read-only=on: the lab's disks are written"),
        ("-drive file=/no/a,if=virtio,read-only=on", False, "drive0: read-only=on: the lab's disks are written"),
        ("-blockdev driver=raw,node-name=n,file.driver=file,file.filename=/a,read-only=on", False, "n: read-only=on: "),
        ("-drive file=/no/a,if=virtio,snapshot=on", True, "drive0: snapshot=on: what the guest writes goes to a "),
        ("-hda /no/a -snapshot", True, "hda: snapshot=on: "),
    ],
)
def test_a_disk_whose_changes_do_not_stay_has_a_line(words: str, is_written: bool, line: str) -> None:
    (disk,) = by_hand(f"-m 64 {words}").disks
    assert disk.is_written is is_written and any(one.startswith(line) for one in disk.found.lacks)


def lines_of_cgroups(groups: str, files: dict[str, str], folder: Path) -> list[str]:
    host = RecordedHost(folder)
    host.proc("42/cgroup", groups)
    for name, text in files.items():
        host.sys(f"fs/cgroup/{name}", text)
    return [line for line in read(QemuOptions(["-m", "64"]), folder).found.lacks if line.startswith("cgroup ")]


@pytest.mark.parametrize("top", ["", "unified/"])
def test_limits_of_a_cgroup_are_lines(top: str, tmp_path: Path) -> None:
    own = f"{top}qemu.slice/100.scope"
    limits = {"cpu.weight": "200", "cpu.max": "50000 100000", "io.max": "8:0 rbps=9 wbps=max\n", "memory.max": "max\n"}
    files = {f"{own}/{name}": text for name, text in limits.items()}
    files |= {f"{top}qemu.slice/cpu.weight": "100\n", f"{top}qemu.slice/cpu.max": "90000 100000\n"}
    assert lines_of_cgroups("0::/qemu.slice/100.scope\n", files, tmp_path) == [
        "cgroup /qemu.slice/100.scope: cpu.weight 200: not copied",
        "cgroup /qemu.slice/100.scope: cpu.max 50000 100000: not copied",
        "cgroup /qemu.slice/100.scope: io.max 8:0 rbps=9 wbps=max: not copied",
        "cgroup /qemu.slice: cpu.max 90000 100000: not copied",
    ]


def test_limits_of_a_cgroup_of_version_1_are_lines(tmp_path: Path) -> None:
    files = {"cpu.shares": "512\n", "cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"}
    found = lines_of_cgroups(
        "4:cpu,cpuacct:/a\n3:pids:/a\n0::/../b\n",
        {f"cpu,cpuacct/a/{name}": text for name, text in files.items()},
        tmp_path,
    )
    assert found == [
        "cgroup /a: cpu.shares 512: not copied",
        "cgroup /a: cpu.cfs_quota_us 50000 of 100000: not copied",
    ]


def test_a_process_is_found_by_each_name_that_is_shown_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LibvirtReader, "is_there", lambda _: False)
    guests = OwnGuests(RecordedHost(tmp_path))
    arguments = "-m 64 -drive file=/no/a,if=virtio"
    for pid, name in ((71, ""), (81, "web"), (82, "web"), (91, "a/b")):
        guests.qemu(pid, f"{arguments} -name {name}" if name else arguments)
    guests.tick(1.0)
    shown = {domain.name: domain.pid for domain in guests.group.domains}
    assert shown == {"qemu-71": 71, "web": 81, "web#82": 82, "a_b": 91}
    for name, pid in shown.items():
        if name != "web":
            assert found_guest(name, roots=guests.host.roots).origin == f"QEMU process {pid}"
    with pytest.raises(UsageError, match="2 processes are called 'web'; name one by its number: "):
        found_guest("web", roots=guests.host.roots)
    with pytest.raises(VmlabError, match="did you mean 'qemu-71'"):
        found_guest("qemu-72", roots=guests.host.roots)


def test_a_process_is_named_by_its_guest_or_by_proxmox() -> None:
    running = {7: of_proxmox(throttled_node(), DEVICE), 9: QemuOptions(["-name", "a"])}
    assert [list(named_so(running, word)) for word in ("web", "100", "a", "b")] == [[7], [7], [9], []]
