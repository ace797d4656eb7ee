"""What a source tells of a guest: keys of the scenario language with where each was read, and what has no key."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vmlab.model.domain import UNKNOWN
from vmlab.model.quantities import exact_bytes
from vmlab.model.scenarios.libvirt_paths import read_path

OF_DRIVER = "driver/@"
"""Before the attributes of a disk's or a card's driver that a scenario sets by the key ``libvirt``."""
MOST_VCPUS = 256
"""Of the lab's guests; a source may name any number."""
ABOVE = "what the guest writes goes to a temporary file; the lab's guests write their disks"
"""Of a disk whose changes are thrown away."""
NOTHING_BELOW = "the lab's data disk has nothing below it"
"""Of a disk with a backing file."""
_QUEUES_SINCE = {"": (5, 2), "rhel": (8, 4)}
"""QEMU's machine types, and Red Hat's, that have a queue for each virtual CPU (hw/core/machine.c)."""
_VERSION = re.compile(r"-(rhel)?(\d{1,4})\.(\d{1,4})", re.ASCII)
_UBUNTUS_BEFORE = "trusty xenial yakkety zesty artful bionic cosmic disco eoan focal groovy"
_OF_UBUNTU_BEFORE = re.compile(rf"-(?:{'|'.join(_UBUNTUS_BEFORE.split())})\b")
"""Ubuntu's names for older ones."""
_LIMITS = {
    "iops": "limit_iops",
    "bps": "limit_bandwidth",
    "iops-max": "limit_iops_burst",
    "bps-max": "limit_bandwidth_burst",
}
_LENGTHS = ("iops-max-length", "bps-max-length")
_FEATURE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,40}", re.ASCII)
_HINTS = ("kvm", "hv", "enforce", "check", "migratable", "host-", "level", "l3-cache", "vendor", "model-id", "family")
"""How options of QEMU's ``-cpu`` begin that are no features of a processor."""


@dataclass(frozen=True, slots=True)
class Said:
    """A key with its value, as a scenario writes both, and `where` it was read, in the words of the source."""

    key: str
    value: Any
    where: str


@dataclass(slots=True)
class Findings:
    """What is found of a guest, or of one of its devices, while a source is read: keys, and a line for each thing that
    the lab cannot copy.
    """

    said: dict[str, Said] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)

    def say(self, key: str, value: Any, where: str) -> None:
        """Note a key; the first place that tells it counts. None is no value."""
        if value is not None:
            self.said.setdefault(key, Said(key, value, where))

    def lack(self, words: str) -> None:
        """Note what cannot be copied, once."""
        if words not in self.lacks:
            self.lacks.append(words)

    def lack_key(self, words: str, left: str) -> None:
        """Note what is `left` of something as it has no key, behind `words`; nothing where nothing is left."""
        if left:
            self.lack(f"{words}{left}: no key")

    def value(self, key: str) -> Any:
        """The value of a key; None where nothing tells it."""
        said = self.said.get(key)
        return None if said is None else said.value


@dataclass(slots=True)
class FoundDisk:
    """A disk: the `target` by which its owner knows it, its `file` as its owner names it, and its keys without
    ``data_``: ``cache``, ``io``, ``bus``, ``format``, …

    `protocol` is the driver of QEMU's that reaches it, where the source tells it. ``size`` is in bytes. ``iothread`` is
    the name that its owner gives the thread, which disks may share. `order` is its place among those that the guest
    boots from; 0 where it is none. `pool` is the storage pool of libvirt's whose volume `file` is, if it is one.
    `is_written` is whether the guest may write it. `is_chain_said` is whether the source says what lies below `file`,
    or that nothing does, whatever the file's header names.
    """

    target: str
    file: str = ""
    order: int = 0
    protocol: str = UNKNOWN
    pool: str = ""
    is_written: bool = True
    is_chain_said: bool = False
    found: Findings = field(default_factory=Findings)


@dataclass(slots=True)
class FoundGuest:
    """A guest by its `name`; `origin` is what it was read from, in words. `is_emulated` is None where nothing tells."""

    name: str
    origin: str
    found: Findings = field(default_factory=Findings)
    disks: list[FoundDisk] = field(default_factory=list)
    is_emulated: bool | None = None
    is_running: bool = False

    def in_order(self) -> Iterator[FoundDisk]:
        """The disks, those first from which it boots."""
        yield from sorted(self.disks, key=lambda disk: (disk.order == 0, disk.order))


def say_settings(found: Findings, settings: Mapping[str, bool | str], where: str) -> None:
    """Note paths for the key ``libvirt`` with their values, and a line for each that a scenario may not set."""
    for path, value in settings.items():
        try:
            read_path(path)
        except ValueError:
            found.lack(f"{path} {value}: no key")
        else:
            found.say(f"libvirt {path}", value, where)


def cpu_ranges(cpus: Collection[int]) -> str:
    """CPUs as the key ``pin`` has them: ``0-3,6``."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def is_feature(name: str) -> bool:
    """Whether an option of ``-cpu`` can be a feature of a processor, as the key ``cpu`` has them."""
    return not name.startswith(_HINTS) and _FEATURE.fullmatch(name) is not None


def of_feature(name: str, *, wanted: bool) -> str:
    """A CPU's feature as the key ``cpu`` has it."""
    return f"{'+' if wanted else '-'}{name}"


def percent_of_each(quota: int, period: int) -> float | None:
    """A quota of each virtual CPU as the key ``cpu_quota`` has it; None for no limit, or one that the key has not."""
    share = 100 * quota / period if quota > 0 and period > 0 else 0.0
    if not 10 <= share < 100:
        return None
    return int(share) if share.is_integer() else round(share, 2)


def on_board(found: Findings, machine: str, where: str) -> None:
    """Note QEMU's machine type, of which the lab has q35 unless another is said."""
    if re.fullmatch(r"pc(-i440fx\b.*|-\d.*)?(\+.*)?", machine):
        found.say("machine", "pc", where)
    elif machine and "q35" not in machine:
        found.lack(f"{where}: the lab's boards are q35 and pc")


def say_own_queues(found: Findings, name: str, option: str, machine: str, vcpus: int) -> None:
    """Note how many queues a virtio disk has of which nothing is said, by QEMU's machine type."""
    words = f"{name} has no {option}=: QEMU's own number"
    version = _VERSION.search(machine)
    if version is not None:
        is_old = (int(version[2]), int(version[3])) < _QUEUES_SINCE[version[1] or ""]
        words += f" on {machine}"
    elif is_old := _OF_UBUNTU_BEFORE.search(machine) is not None:
        words += f" on {machine}"
    else:
        words += f" since 5.2, which is assumed for {machine or 'its machine'}"
    found.say("queues", 1 if is_old else max(1, min(vcpus, 64)), words)


def limited(
    found: Findings, name: str, values: dict[str, int], where: str, group: Mapping[str, Collection[str]] | None = None
) -> None:
    """Note the limits of a disk: requests and bytes a second by ``iops`` and ``bps``, with ``-read`` or ``-write``
    where they are of one direction, ``-max`` for bursts, and ``-max-length`` for the seconds of these. `group` are the
    targets of all disks that share them, by the name that its owner gives the limits.
    """
    given = {key: value for key, value in values.items() if value}
    if size := given.pop("iops-size", 0):
        found.lack(f"{name}: iops-size {size}: a larger request counts as several of them; in the lab each is one")
    for owner, sharing in (group or {}).items():
        if len(sharing) > 1:
            words = f"{' and '.join(sharing)} share them; each of the lab's disks has limits of its own"
            found.lack(f"{name}: limits of group {owner}: {words}")
    for kind, key in _LIMITS.items():
        if count := given.pop(kind, 0):
            found.say(key, count if kind.startswith("iops") else f"{exact_bytes(count)}/s", where)
    for key in _LENGTHS:
        if length := given.pop(key, 0):
            found.say("limit_burst_length", f"{length} s", where)
            if (kept := found.value("limit_burst_length")) != f"{length} s":
                found.lack(f"{name}: {key} {length}: the lab's bursts have one length, here {kept}")
    for other in sorted(given):
        found.lack(f"{name}: {other} {given[other]}: the lab limits reads and writes together")
