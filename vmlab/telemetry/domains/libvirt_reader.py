"""The one way to the host's own libvirt: a connection that is opened read-only, and the few calls that only read.

Imports libvirt late: it is an extra, and neither the console nor `top` needs it where no libvirt runs.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from vmlab.model.domain import FILE, HOST_DEVICE, UNKNOWN, BackingFile, Domain, DomainDisk
from vmlab.model.names import LAB_NAMESPACE
from vmlab.model.quantities import whole

SYSTEM = "qemu:///system"
_SOCKETS = ("libvirt/virtqemud-sock-ro", "libvirt/libvirt-sock-ro")
_AGAIN_SECONDS = 10.0

CONNECTION_CALLS = frozenset({"getAllDomainStats", "close", "isAlive", "lookupByName", "lookupByUUIDString"})
"""What is called on a connection; a test holds every call of this package against these two lists."""
DOMAIN_CALLS = frozenset({"name", "UUIDString", "XMLDesc", "blockInfo", "hasManagedSaveImage"})
"""What is called on a domain."""
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def _libvirt() -> Any:
    import libvirt

    return libvirt


class DomainStats(NamedTuple):
    """libvirt's parameters of one running domain, such as ``block.0.rd.bytes``, and how to read its XML."""

    name: str
    uuid: str
    figures: Mapping[str, Any]
    read_xml: Callable[[], str]


class FoundDomain(NamedTuple):
    """A domain that was asked for, running or not: its XML, the bytes of a disk by its target, None where libvirt does
    not say, and whether its state is saved, with which it goes on at its next start.
    """

    xml: str
    disk_bytes: Callable[[str], int | None]
    is_saved: bool


class OnlyReading:
    """Passes on the `calls` of libvirt's `inner` object; any other name is an AttributeError."""

    def __init__(self, inner: Any, calls: frozenset[str]) -> None:
        self._inner = inner
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name not in self._calls:
            raise AttributeError(f"{name} is no call that only reads")
        return getattr(self._inner, name)


class LibvirtReader:
    """Reads all running domains of the libvirt at `uri`. Each call may hang: give it a thread of its own.

    The connection is opened at the first call, and again some seconds after it was lost.
    """

    def __init__(self, uri: str = SYSTEM, run: Path = Path("/run"), load: Callable[[], Any] | None = None) -> None:
        self._uri = uri
        self._run = run
        self._load = load or _libvirt
        self._opening = threading.Lock()
        self._connection: OnlyReading | None = None
        self._tried_at = -_AGAIN_SECONDS
        self._error: Exception | None = None

    def is_there(self) -> bool:
        """Whether a libvirt of the host listens for readers. It is not woken by that."""
        return self._uri != SYSTEM or any((self._run / socket).exists() for socket in _SOCKETS)

    def statistics(self, *, processes_seen: bool) -> list[DomainStats]:
        """All running domains. CPU times are asked for only where their processes are not seen. Raises OSError."""
        try:
            libvirt = self._load()
        except ImportError as error:
            raise OSError("libvirt-python is not installed, so libvirt's own metrics are missing") from error
        which = _flags(libvirt, "STATS_STATE", "STATS_BALLOON", "STATS_BLOCK", "STATS_INTERFACE")
        if not processes_seen:
            which |= _flags(libvirt, "STATS_CPU_TOTAL", "STATS_VCPU")
        only = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        try:
            connection = self._connected(libvirt)
            return [self._of(domain, figures) for domain, figures in connection.getAllDomainStats(which, only)]
        except libvirt.libvirtError as error:
            self._drop(libvirt)
            raise OSError(f"libvirt gives no metrics: {error.get_error_message()}") from error

    def find(self, wanted: str) -> FoundDomain | None:
        """The domain of this name or UUID; None where there is none. Raises OSError."""
        try:
            libvirt = self._load()
        except ImportError as error:
            raise OSError("libvirt-python is not installed, so that no domain can be asked for") from error
        try:
            connection = self._connected(libvirt)
            look = connection.lookupByUUIDString if _UUID.fullmatch(wanted) else connection.lookupByName
            domain = OnlyReading(look(wanted), DOMAIN_CALLS)
            is_saved = bool(domain.hasManagedSaveImage(0))
            return FoundDomain(str(domain.XMLDesc(0)), lambda target: _disk_bytes(libvirt, domain, target), is_saved)
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return None
            raise OSError(f"libvirt at {self._uri} cannot be asked: {error.get_error_message()}") from error

    def close(self) -> None:
        """Let go of the connection, which must not hang."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _of(self, domain: Any, figures: Mapping[str, Any]) -> DomainStats:
        only = OnlyReading(domain, DOMAIN_CALLS)
        return DomainStats(only.name(), only.UUIDString(), figures, lambda: str(only.XMLDesc(0)))

    def _connected(self, libvirt: Any) -> OnlyReading:
        with self._opening:
            if self._connection is None:
                if self._error is not None and time.monotonic() - self._tried_at < _AGAIN_SECONDS:
                    raise self._error
                self._tried_at = time.monotonic()
                # libvirt writes errors to stderr unless there is a handler; each is raised as an exception too.
                libvirt.registerErrorHandler(lambda _context, _error: None, None)
                try:
                    self._connection = OnlyReading(libvirt.openReadOnly(self._uri), CONNECTION_CALLS)
                except libvirt.libvirtError as error:
                    self._error = error
                    raise
                self._error = None
            return self._connection

    def _drop(self, libvirt: Any) -> None:
        """Open again next time where the connection is broken."""
        with self._opening:
            try:
                alive = self._connection is not None and self._connection.isAlive() == 1
            except libvirt.libvirtError:
                alive = False
            if not alive:
                self._connection = None


def _disk_bytes(libvirt: Any, domain: OnlyReading, target: str) -> int | None:
    try:
        return int(domain.blockInfo(target)[0]) or None
    except libvirt.libvirtError:
        return None


def _flags(libvirt: Any, *names: str) -> int:
    found = 0
    for name in names:
        found |= getattr(libvirt, f"VIR_DOMAIN_{name}")
    return found


_ACCELERATORS = {"kvm": "kvm", "qemu": "tcg", "xen": "xen", "hvf": "hvf"}
_UNIT = re.compile(r"(b|bytes?)|([kmgtpe])(i?b)?")
_SOURCES = ("file", "dev", "name", "volume", "path", "dir")
_PROTOCOLS = {
    "file": FILE,
    "block": HOST_DEVICE,
    "nvme": "nvme",
    "vhostuser": "vhost-user",
    "vhostvdpa": "vhost-vdpa",
    "dir": "vvfat",
}
"""QEMU's driver by the type of a disk. That of a network disk is its own, and a volume may be any."""
_PASSED_THROUGH = "scsi-block"
"""The guest's own SCSI commands go to the device."""


def domain_of_xml(text: str) -> Domain:
    """The domain that the XML describes, without its process. Raises ValueError for what is no such XML."""
    root = _parsed(text)
    return Domain(
        name=root.findtext("name") or "",
        source="libvirt",
        uuid=root.findtext("uuid") or "",
        vcpus=_vcpus(root),
        memory_bytes=_memory(root),
        accelerator=_ACCELERATORS.get(root.get("type", ""), UNKNOWN),
        disks=tuple(disk for one in root.iterfind("devices/disk") if (disk := _disk(one)) is not None),
        shares=tuple(_shared_folders(root)),
    )


def is_of_a_lab(text: str) -> bool:
    """Whether the XML carries a lab's mark. Raises ValueError for what is no XML."""
    return _parsed(text).find(f"metadata/{{{LAB_NAMESPACE}}}lab") is not None


def _parsed(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"libvirt's XML of a domain cannot be read: {error}") from error


def _disk(disk: ElementTree.Element) -> DomainDisk | None:
    """None for a CD-ROM or a floppy.

    Whatever the disk reads counts: a network disk may lie below an overlay in a local file. Where libvirt does not say
    how it is reached, as of a volume in a pool, that is unknown.
    """
    target, driver = disk.find("target"), disk.find("driver")
    if target is None or disk.get("device", "disk") not in ("disk", "lun"):
        return None
    said = {} if driver is None else driver.attrib
    protocol, mode = _protocol(disk), said.get("cache", "default")
    if disk.get("device") == "lun" and target.get("bus") == "scsi":
        protocol = _PASSED_THROUGH
    if mode == "default":
        # QEMU's own default, which libvirt leaves to it but for a disk that is written and shared. A vhost-user disk is
        # none of QEMU's.
        is_shared = disk.find("shareable") is not None and disk.find("readonly") is None
        mode = UNKNOWN if protocol == "vhost-user" else "none" if is_shared else "writeback"
    return DomainDisk(
        target=target.get("dev", ""),
        file=_file(disk),
        format=said.get("type", UNKNOWN),
        cache=mode,
        protocol=protocol,
        backing=tuple(_backing(disk)),
    )


def _backing(disk: ElementTree.Element) -> Iterator[BackingFile]:
    """The chain below an overlay, and the target of a block job."""
    if (mirror := disk.find("mirror")) is not None:
        yield BackingFile(_file(mirror), _protocol(mirror))
    below = disk.find("backingStore")
    # Without a source it ends the chain.
    while below is not None and below.find("source") is not None:
        yield BackingFile(_file(below), _protocol(below))
        below = below.find("backingStore")


def _protocol(element: ElementTree.Element) -> str:
    """QEMU's driver for what has a `type` and a source in it."""
    kind, source = element.get("type", ""), element.find("source")
    if kind == "network" and source is not None:
        return source.get("protocol") or UNKNOWN
    return _PROTOCOLS.get(kind, UNKNOWN)


def _file(element: ElementTree.Element) -> str:
    """The name of its source: a path, an image, a PCI address or a host; empty for none."""
    source = element.find("source")
    if source is None:
        return ""
    host, address = source.find("host"), source.find("address")
    names = [source.get(key) for key in _SOURCES]
    if host is not None:
        names += [host.get("name"), host.get("socket")]
    if address is not None:
        domain, bus, slot, function = (
            address.get(key, "0").removeprefix("0x") for key in ("domain", "bus", "slot", "function")
        )
        names.append(f"{domain:0>4}:{bus:0>2}:{slot:0>2}.{function}")
    return next((name for name in names if name), "")


def _shared_folders(root: ElementTree.Element) -> Iterator[str]:
    """Folders of the host that QEMU itself serves to the guest; those of virtiofs have a process of their own."""
    for share in root.iterfind("devices/filesystem"):
        driver, source = share.find("driver"), share.find("source")
        if driver is None or driver.get("type", "path") in ("path", "handle"):
            yield "" if source is None else source.get("dir", "")


def _vcpus(root: ElementTree.Element) -> int:
    """Those that are plugged in; ``vcpu`` itself has how many there may be."""
    vcpu, each = root.find("vcpu"), root.findall("vcpus/vcpu")
    if vcpu is None:
        return 0
    enabled = sum(one.get("enabled") == "yes" for one in each)
    return whole(vcpu.get("current")) or enabled or whole(vcpu.text)


def _memory(root: ElementTree.Element) -> int:
    """With memory devices, which libvirt counts into it: those of virtio-mem with all that they may ever have, of which
    only what the guest was given counts here.
    """
    total = _size(root.find("memory"))
    for target in root.iterfind("devices/memory[@model='virtio-mem']/target"):
        current = target.find("current")
        given = target.find("requested") if current is None else current
        total += _size(given) - _size(target.find("size"))
    return max(0, total)


def _size(element: ElementTree.Element | None) -> int:
    return 0 if element is None else scaled_bytes(element.text, element.get("unit"))


def scaled_bytes(number: str | None, unit: str | None) -> int:
    """Bytes of a size as libvirt writes it, in KiB without a unit; 0 for a unit that libvirt does not have."""
    match = _UNIT.fullmatch((unit or "KiB").lower())
    if match is None:
        return 0
    base = 1000 if match[3] == "b" else 1024
    return whole(number) * (base ** ("kmgtpe".index(match[2]) + 1) if match[2] else 1)
