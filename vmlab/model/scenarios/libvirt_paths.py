"""`libvirt`: paths into a guest's domain XML, for what has no key of its own; which of them may be set."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_PART = r"[A-Za-z][A-Za-z0-9_-]*(?:\[[a-z0-9][a-z0-9_.-]*\])?"
_PATH = re.compile(rf"{_PART}(?:/{_PART})*(?:/@[a-z][a-z0-9_]*)?", re.ASCII)
_NAMED = re.compile(r"(?P<tag>[^\[]+)(?:\[(?P<name>[^\]]+)\])?")
_LONGEST = 200
OF_DEVICES = {"disk": "root", "data": "data", "interface": "card"}
"""The first words of paths into a device: the first disk, the data disk, the network card."""
_ROOTS = (
    *("features", "clock", "cputune", "memtune", "blkiotune", "memoryBacking"),
    *("disk/driver", "data/driver", "interface/driver", "interface/coalesce"),
)
"""Tuning alone: never a device, a file, a program or an interface of the host."""
_OWN = {
    **{
        f"{disk}/driver/@{name}": key
        for disk in ("disk", "data")
        for name, key in {
            "name": "backing",
            "type": "data_format",
            "cache": "cache",
            "io": "io",
            "iothread": "iothread",
            "queues": "queues",
            "discard": "data_discard",
            "detect_zeroes": "detect_zeroes",
            "packed": "data_packed",
        }.items()
    },
    "data/driver/metadata_cache": "data_l2_cache",
    "disk/driver/metadata_cache": "data_l2_cache",
    "interface/driver/@queues": "nic_queues",
    "interface/driver/@name": "network",
    "cputune/shares": "cpu_shares",
    "cputune/quota": "cpu_quota",
    "cputune/period": "cpu_quota",
}
"""What has a key of its own, which is proved."""


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
    if len(text) > _LONGEST or not _PATH.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no path such as features/pmu/@state or data/driver/@event_idx")
    if not any(text == root or text.startswith((f"{root}/", f"{root}[")) for root in _ROOTS):
        raise ValueError(f"{text} may not be set; paths begin with {', '.join(_ROOTS)}")
    for own, key in _OWN.items():
        if text == own or text.startswith(f"{own}/"):
            raise ValueError(f"{text} has a key of its own, {key}, which is proved")
    *elements, last = text.split("/")
    attribute = last.removeprefix("@") if last.startswith("@") else None
    found = [match for part in (elements if attribute else [*elements, last]) if (match := _NAMED.fullmatch(part))]
    steps = tuple(Step(one["tag"], one["name"]) for one in found)
    device = OF_DEVICES.get(steps[0].tag)
    return LibvirtPath(device, steps[1:] if device else steps, attribute)


def _settings(value: object) -> object:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict):
        raise ValueError("needs a mapping of paths into libvirt's domain XML, such as {features/pmu/@state: off}")
    for path, one in value.items():
        read_path(str(path))
        if not (one is True or type(one) in (int, str)):
            raise ValueError(f"{path} needs a text or a whole number, or true for an element without any")
    return tuple((str(path), one if one is True else str(one)) for path, one in value.items())


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
