"""`libvirt`: whatever else of a guest's XML a scenario sets. It is read back from libvirt, which proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DATA_TARGETS, DiskPlace
from vmlab.model.scenarios.guest import GuestResources
from vmlab.model.scenarios.libvirt_paths import LibvirtPath, Step, read_path

_BY = "as libvirt says, not proved"


class LibvirtLever(GuestLever):
    """Elements and attributes below the domain, its disks and its network card."""

    keys = ("libvirt",)

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """What is below the domain itself."""
        _put_all(domain, asked, None)

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """What is below a disk."""
        _put_all(disk, asked, place)

    def describe_card(self, card: etree._Element, asked: GuestResources) -> None:
        """What is below the network card."""
        _put_all(card, asked, "card")

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """What libvirt says of the running domain, for all paths together."""
        if not qemu.asked.libvirt_settings:
            return
        domain = etree.fromstring(qemu.described())
        found = {text: _found(domain, read_path(text)) for text, _ in qemu.asked.libvirt_settings}
        yield qemu.proof("libvirt", _words(dict(qemu.asked.libvirt_settings)), _words(found), _BY)


def _put_all(top: etree._Element, asked: GuestResources, device: str | None) -> None:
    for text, value in asked.libvirt_settings:
        path = read_path(text)
        if path.device != device:
            continue
        place = top
        for step in path.steps:
            below = _child(place, step)
            place = etree.SubElement(place, step.tag, _named(step)) if below is None else below
        if path.attribute is not None:
            place.set(path.attribute, str(value))
        elif value is not True:
            place.text = str(value)


def _child(place: etree._Element, step: Step) -> etree._Element | None:
    return next((one for one in place.iterfind(step.tag) if step.name in (None, one.get("name"))), None)


def _named(step: Step) -> dict[str, str]:
    return {} if step.name is None else {"name": step.name}


def _found(domain: etree._Element, path: LibvirtPath) -> bool | str:
    """The value at a path of a domain; ``missing`` where it has none."""
    place = domain if path.device is None else _device(domain, path.device)
    for step in path.steps:
        place = None if place is None else _child(place, step)
    if place is None:
        return "missing"
    if path.attribute is not None:
        return place.get(path.attribute, "missing")
    return (place.text or "").strip() or True


def _device(domain: etree._Element, device: str) -> etree._Element | None:
    if device == "card":
        return domain.find("devices/interface")
    disks = domain.iterfind("devices/disk")
    return next((one for one in disks if (_target(one) in DATA_TARGETS.values()) is (device == "data")), None)


def _target(disk: etree._Element) -> str:
    target = disk.find("target")
    return "" if target is None else str(target.get("dev"))


def _words(values: dict[str, bool | str]) -> str:
    return ", ".join(f"{path} {'there' if value is True else value}" for path, value in values.items())
