"""`libvirt`: paths into a guest's domain XML, for what has no key of its own; which of them may be set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

if TYPE_CHECKING:
    from vmlab.model.scenarios.guest import GuestAttributes

_WORD = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_FEATURE = rf"features(?:/{_WORD}){{1,3}}(?:/@{_WORD})?"
"""Such as features/hyperv/stimer/direct/@state; libvirt knows none that lies deeper."""
_OF_VIRTIO = "event_idx|ioeventfd|queue_size|iommu|ats|page_per_vq"
"""Attributes that the driver of a virtio disk alone has."""
_DRIVER = f"(?:{_OF_VIRTIO}|copy_on_read|error_policy|rerror_policy)"
_CARD = "(?:txmode|ioeventfd|event_idx|rx_queue_size|tx_queue_size|iommu|ats|page_per_vq|rss|rss_hash_report)"
_ALLOWED = (
    _FEATURE,
    rf"clock/timer\[[a-z]+\](?:/{_WORD})?/@{_WORD}",
    r"cputune/(?:global|emulator|iothread)_(?:period|quota)",
    r"memtune/(?:hard_limit|soft_limit|swap_hard_limit)",
    r"blkiotune/weight",
    r"memoryBacking/(?:discard|allocation/@(?:mode|threads))",
    rf"(?:disk|data)/driver/@{_DRIVER}",
    rf"interface/driver(?:/@{_CARD}|/(?:host|guest)/@[a-z0-9_]+)",
    r"interface/coalesce/rx/frames/@max",
)
"""Tuning alone: no device, file, program or interface of the host, and nothing that has a key of its own."""
_PATH = re.compile("|".join(f"(?:{one})" for one in _ALLOWED), re.ASCII)
_NAMED = re.compile(r"(?P<tag>[^\[]+)(?:\[(?P<name>[^\]]+)\])?")
_VALUE = re.compile(r"[ -~]{1,100}", re.ASCII)
_DEVICES = {"disk": "root", "data": "data", "interface": "card"}
"""The first words of paths into a device: the first disk, the data disk, the network card."""
_BEGINNINGS = (
    *("features", "clock/timer[NAME]", "cputune", "memtune", "blkiotune", "memoryBacking"),
    *("disk/driver", "data/driver", "interface/driver", "interface/coalesce"),
)


class Step(NamedTuple):
    """An element on the way: its tag, and its attribute ``name`` where several have one tag."""

    tag: str
    name: str | None


class LibvirtPath(NamedTuple):
    """A path below a domain, or below one of its devices: the elements, and the attribute at its end if any."""

    device: str | None
    steps: tuple[Step, ...]
    attribute: str | None


def read_path(text: str) -> LibvirtPath:
    """``clock/timer[hpet]/@present``, say. Raises ValueError, with what would be right, for what may not be set."""
    if not _PATH.fullmatch(text):
        raise ValueError(
            f"{text[:80]!r} may not be set so: a path is for tuning that has no key of its own, and begins with "
            f"{', '.join(_BEGINNINGS)}, such as features/pmu/@state"
        )
    *elements, last = text.split("/")
    attribute = last.removeprefix("@") if last.startswith("@") else None
    found = [match for part in (elements if attribute else [*elements, last]) if (match := _NAMED.fullmatch(part))]
    steps = tuple(Step(one["tag"], one["name"]) for one in found)
    device = _DEVICES.get(steps[0].tag)
    return LibvirtPath(device, steps[1:] if device else steps, attribute)


def settings_conflict(guest: GuestAttributes) -> str | None:
    """Why a path that is set can never be in force, for want of the device or the threads that it is of."""
    for text in dict(guest.libvirt_settings):
        path = read_path(text)
        if text.startswith("cputune/iothread_") and not guest.iothreads:
            return f"{text} is of iothreads, and the guest has none; set iothread or data_iothread"
        if path.device != "data":
            continue
        if guest.data_bytes is None:
            return f"{text} is of a data disk, which the guest does not have; give it one, such as data: 10 GiB"
        if guest.data_bus != "virtio" and path.attribute in _OF_VIRTIO.split("|"):
            return f"{text} is for data_bus: virtio, not {guest.data_bus}"
    return None


def as_mapping(pairs: Iterable[tuple[str, bool | str]]) -> dict[str, bool | str] | None:
    """As JSON has it; None for none."""
    return dict(pairs) or None


def _settings(value: object) -> object:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict):
        raise ValueError("needs a mapping of paths into libvirt's domain XML, such as {features/pmu/@state: off}")
    return tuple((str(path), _value(str(path), one)) for path, one in value.items())


def _value(path: str, value: object) -> bool | str:
    attribute = read_path(path).attribute
    if value is True and attribute is None:
        return True
    if type(value) not in (int, str) or not _VALUE.fullmatch(str(value)):
        element = "" if attribute else ", or true for an element without any"
        raise ValueError(f"{path} needs a whole number or a text of at most 100 printable characters{element}")
    return str(value)


_MAPPING = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"const": True}]},
}
LibvirtSettings = Annotated[
    tuple[tuple[str, bool | str], ...],
    BeforeValidator(_settings),
    Field(max_length=16),
    PlainSerializer(dict),
    WithJsonSchema(_MAPPING),
]
"""A mapping in scenarios and documents; pairs in the program, where what a guest is given can be a key."""
