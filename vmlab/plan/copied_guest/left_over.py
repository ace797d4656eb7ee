"""What no reader took of an element of libvirt's XML, or of options of QEMU's or Proxmox VE's, for a line about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lxml import etree

from vmlab.telemetry.domains.qemu_disks import switch

_ON_ANYWAY = ("event_idx", "ioeventfd")
_OFF_ANYWAY = (
    *("packed", "iommu", "iommu_platform", "ats", "page_per_vq", "page-per-vq", "rss", "rss_hash_report", "hash"),
    *("copy_on_read", "discard_no_unref", "isolated", "share-rw", "scsi"),
    *("autodeflate", "freePageReporting", "deflate-on-oom", "free-page-reporting"),
)
"""Switches that are on, or off, where nothing is said."""


def attributes_of(element: etree._Element | None) -> dict[str, str]:
    """The attributes of an element; none of none."""
    return {} if element is None else {str(key): str(value) for key, value in element.attrib.items()}


def shown(element: etree._Element, *attributes: str) -> str:
    """The element as it stands in the XML, with these of its attributes, or all of them, and its text."""
    kept = {key: value for key, value in attributes_of(element).items() if not attributes or key in attributes}
    return _written(element, kept, (element.text or "").strip())


def left_of(element: etree._Element | None, taken: Collection[str]) -> str:
    """The element with attributes and elements of it that are none of those `taken`; empty where there are none."""
    if element is None:
        return ""
    kept = {key: value for key, value in attributes_of(element).items() if key not in taken}
    kept = {key: value for key, value in kept.items() if not is_usual(key, value)}
    inner = "".join(_whole(one) for one in element.iterfind("*") if one.tag not in taken and not _says_nothing(one))
    return _written(element, kept, inner) if kept or inner else ""


def left_options(given: Mapping[str, Any], taken: Collection[str]) -> str:
    """``packed=on,ats=on``: options that are none of those `taken`; empty where there are none."""
    left = {key: value for key, value in given.items() if key not in taken and not is_usual(key, value)}
    return ",".join(f"{key}={option_text(value)}" for key, value in left.items())


def option_text(value: object) -> str:
    """A value as QEMU's options have it, where JSON has true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def is_usual(name: str, value: object) -> bool:
    """Whether a switch says what holds where nothing is said."""
    state = switch(value)
    return (state is True and name in _ON_ANYWAY) or (state is False and name in _OFF_ANYWAY)


def _says_nothing(element: etree._Element) -> bool:
    given = attributes_of(element)
    return bool(given) and all(is_usual(key, value) for key, value in given.items()) and len(element) == 0


def _whole(element: etree._Element) -> str:
    inner = "".join(_whole(one) for one in element.iterfind("*"))
    return _written(element, attributes_of(element), inner or (element.text or "").strip())


def _written(element: etree._Element, attributes: Mapping[str, str], inner: str) -> str:
    begin = f"<{element.tag}" + "".join(f" {key}='{value}'" for key, value in attributes.items())
    return f"{begin}>{inner}</{element.tag}>" if inner else f"{begin}/>"
