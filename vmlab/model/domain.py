"""What is known of a domain of the host's own: a guest that no lab has started, and its disks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from vmlab.model.run import CACHE_FLAGS, CACHE_MODES

UNKNOWN = "unknown"
"""A disk's cache mode, format or protocol that nothing tells."""

FILE, HOST_DEVICE = "file", "host_device"
"""QEMU's drivers that read through the host's block layer, or through a file system of the host."""
_OVER_NETWORK = frozenset(
    {"ftp", "ftps", "gluster", "http", "https", "iscsi", "iser", "nbd", "nfs", "rbd", "sheepdog", "ssh", "tftp"}
    | {"vitastor", "vxhs"}
)
_OWN_DEVICE = ("nvme", "vhost", "virtio-blk-", "scsi-")
"""How the drivers begin that leave the disk to the guest, another program or a driver within QEMU."""
_IN_MEMORY = ("tmpfs", "ramfs", "hugetlbfs", "devtmpfs")
_ON_ONE_DISK = frozenset(
    {"bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "gfs2", "hfsplus", "jfs", "msdos", "nilfs2"}
    | {"ntfs", "ntfs3", "ocfs2", "reiserfs", "udf", "ufs", "vfat", "xfs"}
)
"""File systems that read through the page cache and the host's block layer, in the name of who asks."""
_NUMBERED = re.compile(r"(loop|zd|zram|ram)\d+")


class Storage(Enum):
    """Where the data of a disk are, as far as it matters for the host's page cache and disks."""

    LOCAL = auto()
    """On a disk that the host's block layer counts, which QEMU reads itself, through the page cache or past it."""
    NETWORK = auto()
    """QEMU reaches it over the network itself: no cache and no disk of the host lies between."""
    DEVICE = auto()
    """The guest, another program or a driver within QEMU drives the device: neither does here."""
    MEMORY = auto()
    ZFS = auto()
    """ZFS caches by itself (ARC), and reads in its own threads."""
    LOOP = auto()
    """A loop device, which reads another file, as a rule through the page cache."""
    OTHER = auto()
    """A driver or file system of which it is not known how it reads: NFS, CIFS, FUSE, overlayfs, vvfat, …"""
    UNKNOWN = auto()
    """No disk of the host is known below it."""


_BY_NUMBERED = {"loop": Storage.LOOP, "zd": Storage.ZFS, "zram": Storage.MEMORY, "ram": Storage.MEMORY}


def storage_of(protocol: str, file_system: str, below: str) -> Storage:
    """Where the data are. A recording of an older version has no `protocol`: there the disk `below` has to do.

    What is on no list is OTHER, never LOCAL.
    """
    # As in gluster+tcp.
    driver = protocol.partition("+")[0]
    numbered = _NUMBERED.fullmatch(below)
    if driver in _OVER_NETWORK or driver.startswith(_OWN_DEVICE):
        return Storage.NETWORK if driver in _OVER_NETWORK else Storage.DEVICE
    if driver not in (FILE, HOST_DEVICE, UNKNOWN):
        return Storage.OTHER
    if file_system in _IN_MEMORY or file_system == "zfs":
        return Storage.ZFS if file_system == "zfs" else Storage.MEMORY
    if numbered is not None:
        return _BY_NUMBERED[numbered[1]]
    if file_system and file_system not in _ON_ONE_DISK:
        return Storage.OTHER
    return Storage.LOCAL if below and (file_system or driver != FILE) else Storage.UNKNOWN


@dataclass(frozen=True, slots=True)
class BackingFile:
    """What a disk reads beside its own file, each field as `DomainDisk` has it.

    It is a backing file below an overlay, or what a block job of libvirt's copies the disk to.
    """

    file: str
    protocol: str = UNKNOWN
    file_system: str = ""
    below: str = ""


@dataclass(frozen=True, slots=True)
class DomainDisk:
    """A disk of a domain: the `target` by which its owner knows it, and its `file` on the host.

    `cache` is what the domain's XML or QEMU's arguments say, `writeback` where they leave it to QEMU; `o_direct` is
    the flag of QEMU's open file, None where that cannot be read. `below` is the kernel's name of the host's disk that
    holds the file, empty where that is not known. `protocol` is QEMU's driver that reaches the data: ``file``,
    ``host_device``, ``rbd``, ``nbd``, ``nvme``, ``vhost-user``, …; `file_system` is the kernel's type of the one that
    holds the file, such as ``ext4``, ``nfs`` or ``zfs``, empty where that is not known, and of a block device.
    """

    target: str
    file: str
    format: str = UNKNOWN
    cache: str = UNKNOWN
    o_direct: bool | None = None
    below: str = ""
    protocol: str = UNKNOWN
    file_system: str = ""
    backing: tuple[BackingFile, ...] = ()

    @property
    def storage(self) -> Storage:
        """Where its own file's data are."""
        return storage_of(self.protocol, self.file_system, self.below)

    @property
    def direct(self) -> bool | None:
        """Whether the host's page cache is left out: by the open file, else by what is said; None for unknown."""
        if self.o_direct is not None:
            return self.o_direct
        return next((CACHE_FLAGS[mode].direct for mode in CACHE_MODES if mode == self.cache), None)

    @property
    def cache_words(self) -> str:
        """What caches on the host: ``none`` or another mode where that is the page cache, or its lack.

        Where QEMU's open file says otherwise, what it really does: ``direct, not writeback``. A mode of which only the
        open file is known is ``direct`` or ``page cache``. Where the mode decides nothing, what there is instead:
        ``network``, ``device`` or ``memory``; on ZFS ``ARC`` before the mode.
        """
        known = {Storage.NETWORK: "network", Storage.DEVICE: "device", Storage.MEMORY: "memory"}.get(self.storage)
        if known is not None:
            return known
        return f"ARC, {self._mode_words}" if self.storage is Storage.ZFS else self._mode_words

    @property
    def _mode_words(self) -> str:
        said = next((CACHE_FLAGS[mode].direct for mode in CACHE_MODES if mode == self.cache), None)
        if self.o_direct is None or said == self.o_direct:
            return self.cache
        found = "direct" if self.o_direct else "page cache"
        return found if said is None else f"{found}, not {self.cache}"

    @property
    def holder(self) -> str:
        """What holds its data: a disk of the host, else a file system or a protocol; empty where nothing tells."""
        far = self.protocol if self.storage in (Storage.NETWORK, Storage.DEVICE) else ""
        return self.below or self.file_system or far


@dataclass(frozen=True, slots=True)
class Domain:
    """A running guest of the host's own. `name` is unique among those that run, and names its figures in a sample.

    `source` is ``libvirt``, or ``process`` where its QEMU is all that tells of it; `pid` is 0 where that is not
    visible. `memory_bytes` and `vcpus` are 0 where they are not known. `shares` are folders of the host that QEMU
    itself serves to the guest (9p), as libvirt's XML says.
    """

    name: str
    source: str
    pid: int = 0
    uuid: str = ""
    vcpus: int = 0
    memory_bytes: int = 0
    accelerator: str = UNKNOWN
    disks: tuple[DomainDisk, ...] = ()
    shares: tuple[str, ...] = ()
