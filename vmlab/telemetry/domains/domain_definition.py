"""What libvirt's XML of a running domain says of its processors, memory and disks."""

from __future__ import annotations

from xml.etree import ElementTree

from vmlab.model.domain import UNKNOWN, Domain, DomainDisk
from vmlab.model.names import LAB_NAMESPACE

_UNITS = {"b": 1, "bytes": 1, "KiB": 1 << 10, "k": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SOURCES = ("file", "dev", "name", "volume", "path")


def domain_of_xml(text: str) -> Domain:
    """The domain that the XML describes, without its process. Raises ValueError for what is no such XML."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"libvirt's XML of a domain cannot be read: {error}") from error
    vcpu = root.find("vcpu")
    return Domain(
        name=root.findtext("name") or "",
        source="libvirt",
        uuid=root.findtext("uuid") or "",
        vcpus=0 if vcpu is None else _whole(vcpu.get("current") or vcpu.text),
        memory_bytes=_memory(root.find("memory")),
        accelerator={"kvm": "kvm", "qemu": "tcg"}.get(root.get("type", ""), UNKNOWN),
        disks=tuple(disk for one in root.iterfind("devices/disk") if (disk := _disk(one)) is not None),
    )


def is_of_a_lab(text: str) -> bool:
    """Whether the XML carries a lab's mark. Raises ValueError for what is no XML."""
    try:
        return ElementTree.fromstring(text).find(f"metadata/{{{LAB_NAMESPACE}}}lab") is not None
    except ElementTree.ParseError as error:
        raise ValueError(f"libvirt's XML of a domain cannot be read: {error}") from error


def _disk(disk: ElementTree.Element) -> DomainDisk | None:
    """None for a CD-ROM or a floppy."""
    target, driver, source = disk.find("target"), disk.find("driver"), disk.find("source")
    if target is None or disk.get("device", "disk") not in ("disk", "lun"):
        return None
    said = {} if driver is None else driver.attrib
    names = [] if source is None else [source.get(key) for key in _SOURCES]
    return DomainDisk(
        target=target.get("dev", ""),
        file=next((name for name in names if name), ""),
        format=said.get("type", UNKNOWN),
        # QEMU's own default, which libvirt leaves to it.
        cache={"default": "writeback"}.get(mode := said.get("cache", "default"), mode),
    )


def _memory(element: ElementTree.Element | None) -> int:
    return 0 if element is None else _whole(element.text) * _UNITS.get(element.get("unit", "KiB"), 1 << 10)


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.strip().isdigit() else 0
