"""Where a disk's data are: by libvirt's XML, by QEMU's open files and their mounts, and what is said of its cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.telemetry.domains.own_guests import UUID, Libvirt, OwnGuests, libvirt_stats
from tests.telemetry.recorded import RecordedHost
from vmlab.model.checked import made
from vmlab.model.domain import UNKNOWN, BackingFile, Domain, DomainDisk, Storage
from vmlab.model.jsonable import jsonable
from vmlab.telemetry.domains.libvirt_reader import domain_of_xml
from vmlab.telemetry.domains.open_disks import open_files, with_open_files

RBD = "<source protocol='rbd' name='pool/disk'><host name='192.0.2.1' port='6789'/></source>"


def disk_of(body: str) -> DomainDisk:
    text = f"<domain type='kvm'><name>a</name><devices>{body.format(rbd=RBD)}</devices></domain>"
    (disk,) = domain_of_xml(text).disks
    return disk


TARGET = "<target dev='vda' bus='virtio'/>"
OF_XML = [
    ("<disk type='file'><source file='/a.img'/>", "file", "/a.img", "writeback"),
    ("<disk type='block'><driver cache='none'/><source dev='/dev/vg/a'/>", "host_device", "/dev/vg/a", "none"),
    ("<disk type='network'><driver cache='writeback'/>{rbd}", "rbd", "pool/disk", "network"),
    *(
        (f"<disk type='network'><source protocol='{protocol}' name='x'/>", protocol, "x", "network")
        for protocol in ("iscsi", "https", "http", "ftp", "gluster", "ssh", "nfs", "sheepdog", "vxhs")
    ),
    (
        "<disk type='network'><source protocol='nbd'><host transport='unix' socket='/run/n.sock'/></source>",
        "nbd",
        "/run/n.sock",
        "network",
    ),
    (
        "<disk type='nvme'><driver cache='none'/><source type='pci' namespace='1'>"
        "<address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></source>",
        "nvme",
        "0000:01:00.0",
        "device",
    ),
    ("<disk type='vhostuser'><source type='unix' path='/run/v.sock'/>", "vhost-user", "/run/v.sock", "device"),
    ("<disk type='vhostvdpa'><source dev='/dev/vhost-vdpa-0'/>", "vhost-vdpa", "/dev/vhost-vdpa-0", "device"),
    ("<disk type='dir'><source dir='/srv/files'/>", "vvfat", "/srv/files", "writeback"),
    ("<disk type='volume'><source pool='p' volume='v'/>", UNKNOWN, "v", "writeback"),
    ("<disk type='network'><source name='x'/>", UNKNOWN, "x", "writeback"),
    ("<disk type='of-a-later-libvirt'><source thing='x'/>", UNKNOWN, "", "writeback"),
    ("<disk><source file='/a.img'/>", UNKNOWN, "/a.img", "writeback"),
]


@pytest.mark.parametrize(("body", "protocol", "file", "words"), OF_XML, ids=[f"{one[1]} {one[2]}" for one in OF_XML])
def test_libvirts_xml_tells_how_a_disk_is_reached(body: str, protocol: str, file: str, words: str) -> None:
    """The type of a disk, and of a network disk its source, name QEMU's driver; what they do not name is unknown."""
    disk = disk_of(f"{body}{TARGET}</disk>")
    assert (disk.protocol, disk.file, disk.cache_words) == (protocol, file, words)


def test_what_the_xml_says_of_the_mode_is_kept() -> None:
    assert disk_of(f"<disk type='network'><driver cache='writeback'/>{{rbd}}{TARGET}</disk>").cache == "writeback"
    assert disk_of(f"<disk type='vhostuser'><source path='/v'/>{TARGET}</disk>").cache == UNKNOWN


def test_scsi_commands_that_are_passed_through_meet_no_page_cache() -> None:
    body = "<disk type='block' device='lun'><source dev='/dev/sdb'/><target dev='sda' bus='{bus}'/></disk>"
    assert disk_of(body.replace("{bus}", "scsi")).storage is Storage.DEVICE
    assert disk_of(body.replace("{bus}", "virtio")).protocol == "host_device"


def test_all_that_a_disk_reads_is_told() -> None:
    """An overlay in a local file reads what its backing files do not hold there, and a block job the whole disk."""
    chain = "<backingStore type='file'><source file='/b'/><backingStore type='network'>{rbd}<backingStore/>"
    body = f"<disk type='file'><source file='/a'/>{chain}</backingStore></backingStore>{TARGET}"
    assert disk_of(f"{body}</disk>").backing == (BackingFile("/b", "file"), BackingFile("pool/disk", "rbd"))
    mirror = "<mirror type='file' job='copy' ready='yes'><source file='/new'/></mirror>"
    assert disk_of(f"{body}{mirror}</disk>").backing[0] == BackingFile("/new", "file")


def test_folders_that_qemu_serves_itself_are_told() -> None:
    """The process of virtiofs has a count of its own."""
    share = "<filesystem type='mount'>{}<source dir='/{}'/></filesystem>"
    virtiofs = share.format("<driver type='virtiofs'/>", "v")
    text = f"<domain><devices>{share.format('', 'a')}{virtiofs}</devices></domain>"
    assert domain_of_xml(text).shares == ("/a",)


def test_a_volume_has_the_path_of_libvirts_figures(host: RecordedHost) -> None:
    libvirt = Libvirt()
    guests = OwnGuests(host, libvirt)
    guests.qemu(71, f"-name guest=db -uuid {UUID}")
    xml = f"<domain><name>db</name><devices><disk type='volume'><source pool='p' volume='v'/>{TARGET}</disk></devices>"
    path = {"block.0.path": "/pool/v"}
    libvirt.answer = [libvirt_stats(1, **path)._replace(read_xml=lambda: f"{xml}</domain>")]
    for second in range(600):
        guests.tick(10.0 + second)
        if guests.group.domains and guests.group.domains[0].source == "libvirt" and guests.group.domains[0].disks:
            break
    assert [(one.file, one.protocol) for one in guests.group.domains[0].disks] == [("/pool/v", UNKNOWN)]


OF_MOUNT = [
    ("btrfs /dev/sda2", "btrfs", "sda"),
    ("btrfs /dev/sdb", "btrfs", ""),
    ("bcachefs /dev/sda2:/dev/sdb", "bcachefs", ""),
    ("zfs tank/vm", "zfs", ""),
    ("nfs4 nas:/vm", "nfs4", ""),
    ("overlay overlay", "overlay", ""),
    # Any text may be the source of these.
    ("fuse.sshfs /dev/sda2", "fuse.sshfs", ""),
    ("tmpfs /dev/sda2", "tmpfs", ""),
]


@pytest.mark.parametrize(("mount", "file_system", "below"), OF_MOUNT, ids=[one[0] for one in OF_MOUNT])
def test_the_mount_of_the_open_file_tells_file_system_and_disk(
    host: RecordedHost, tmp_path: Path, mount: str, file_system: str, below: str
) -> None:
    """By the mount's number in fdinfo, in the list of QEMU's own namespace.

    A mount point is any text, and a btrfs over several disks is on none that is known.
    """
    blocks(host)
    point = "/a\\040-\u2028\u00a0- ext4 /dev/sdb".replace(" ", "\\040")
    host.proc("71/mountinfo", f"36 35 8:1 / / rw - ext4 /dev/sdb rw\n99 36 0:9999 / {point} rw shared:1 - {mount} rw\n")
    disk = opened_as(host, tmp_path, 99)
    assert (disk.file_system, disk.below, disk.protocol) == (file_system, below, "file")


def test_a_file_on_a_disk_with_a_number_has_that_disk(host: RecordedHost, tmp_path: Path) -> None:
    blocks(host)
    device = tmp_path.stat().st_dev
    number = host.root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}"
    number.parent.mkdir(parents=True, exist_ok=True)
    number.symlink_to(host.root / "sys/devices/sda/sda2")
    host.proc("71/mountinfo", "99 36 8:2 / / rw - ext4 /dev/root rw\n")
    disk = opened_as(host, tmp_path, 99)
    assert (disk.file_system, disk.below, disk.storage) == ("ext4", "sda", Storage.LOCAL)
    # Its mount is in no list: a file system of which the type is not known may be one that reads otherwise.
    disk = opened_as(host, tmp_path, 98)
    assert (disk.file_system, disk.below, disk.storage) == ("", "sda", Storage.UNKNOWN)


def blocks(host: RecordedHost) -> None:
    """sda with a partition, and sdb, which holds a btrfs together with sdc."""
    (host.root / "sys/devices/sda/sda2").mkdir(parents=True)
    host.sys("devices/sda/sda2/partition", "2\n")
    (host.root / "sys/class/block").mkdir(parents=True, exist_ok=True)
    (host.root / "sys/class/block/sda2").symlink_to(host.root / "sys/devices/sda/sda2")
    for name in ("sdb", "sdc"):
        (host.root / f"sys/devices/{name}").mkdir()
        (host.root / f"sys/class/block/{name}").symlink_to(host.root / f"sys/devices/{name}")
        host.sys(f"fs/btrfs/0123/devices/{name}", "")
    host.sys("fs/btrfs/4567/devices/sda2", "")


def opened_as(host: RecordedHost, tmp_path: Path, mount: int) -> DomainDisk:
    """A disk whose file process 71 has open through the mount of this number."""
    file = tmp_path / "a.img"
    file.write_bytes(b"x")
    link = host.root / "proc/71/fd/5"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(file)
    host.proc("71/fdinfo/5", f"pos:\t0\nflags:\t02100002\nmnt_id:\t{mount}\nino:\t7\n")
    (disk,) = with_open_files([DomainDisk("vda", str(file))], open_files(71, host.roots), host.root / "proc/71")
    return disk


OF_STORAGE = [
    ("file", "ext4", "sda", Storage.LOCAL, "none"),
    ("file", "xfs", "dm-3", Storage.LOCAL, "none"),
    ("file", "btrfs", "nvme0n1", Storage.LOCAL, "none"),
    *(
        ("host_device", "", device, Storage.LOCAL, "none")
        for device in ("sdb", "dm-0", "md127", "drbd1", "bcache0", "nbd0", "rbd0", "nvme0n1", "mmcblk0")
    ),
    # As recorded by an older version.
    (UNKNOWN, "", "sda", Storage.LOCAL, "none"),
    (UNKNOWN, "", "", Storage.UNKNOWN, "none"),
    ("file", "", "sda", Storage.UNKNOWN, "none"),
    ("file", "btrfs", "", Storage.UNKNOWN, "none"),
    *((protocol, "", "", Storage.NETWORK, "network") for protocol in ("rbd", "nbd", "iscsi", "https", "gluster+tcp")),
    *((protocol, "", "", Storage.DEVICE, "device") for protocol in ("nvme", "vhost-user", "virtio-blk-vhost-vdpa")),
    *(("file", kind, "", Storage.MEMORY, "memory") for kind in ("tmpfs", "ramfs", "hugetlbfs")),
    ("host_device", "", "zram0", Storage.MEMORY, "memory"),
    ("file", "zfs", "", Storage.ZFS, "ARC, none"),
    ("host_device", "", "zd16", Storage.ZFS, "ARC, none"),
    ("file", "ext4", "loop3", Storage.LOOP, "none"),
    *(
        ("file", kind, below, Storage.OTHER, "none")
        for kind in ("nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "overlay", "fuse.sshfs", "fuse", "lustre")
        for below in ("", "sda")
    ),
    ("file", "fuseblk", "sdb", Storage.OTHER, "none"),
    ("file", "of-a-later-kernel", "sda", Storage.OTHER, "none"),
    ("vvfat", "", "", Storage.OTHER, "none"),
    ("null-co", "", "", Storage.OTHER, "none"),
]


@pytest.mark.parametrize(("protocol", "file_system", "below", "storage", "words"), OF_STORAGE)
def test_only_a_disk_that_is_known_to_be_local_is(
    protocol: str, file_system: str, below: str, storage: Storage, words: str
) -> None:
    """Local is what QEMU reads itself through the host's block layer; a driver or file system on no list is not."""
    disk = DomainDisk("vda", "/a", cache="none", below=below, protocol=protocol, file_system=file_system)
    assert (disk.storage, disk.cache_words) == (storage, words)


def test_a_domain_of_an_older_version_is_read_and_a_newer_one_kept() -> None:
    disk = {"target": "vda", "file": "/a", "format": "raw", "cache": "none", "o_direct": True, "below": "sda"}
    old = made(Domain, {"name": "db", "source": "libvirt", "disks": [disk], "of_a_later_version": 1})
    assert old.disks == (DomainDisk("vda", "/a", "raw", "none", True, "sda"),)
    assert (old.disks[0].protocol, old.disks[0].file_system, old.shares) == (UNKNOWN, "", ())
    new = Domain("db", "libvirt", disks=(DomainDisk("a", "/a", backing=(BackingFile("/b", "file"),)),), shares=("/s",))
    assert made(Domain, jsonable(new)) == new
