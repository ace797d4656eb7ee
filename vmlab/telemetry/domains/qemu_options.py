"""What QEMU's arguments tell: name, processors, memory, and each disk with its cache mode and format.

Three forms are read: the options that people type (``-drive file=a.img,cache=none``), those of Proxmox (the same, with
``if=none`` and a ``-device``), and libvirt's (``-blockdev`` and ``-device`` as JSON).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vmlab.model.cache import CACHE_FLAGS, CacheFlags
from vmlab.model.domain import UNKNOWN, DomainDisk

Options = Mapping[str, str]
_PROTOCOLS = ("file", "host_device")
_SHORT_DISKS = {"hda", "hdb", "hdc", "hdd", "sd", "mtdblock"}
_UNITS = {"": 1 << 20, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DEFAULT_MEMORY = 128 << 20
_PAIR = re.compile(r"((?:[^,]|,,)*)(?:,|$)")


class QemuOptions:
    """The arguments of one QEMU process, without its own name."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._given: dict[str, list[str]] = {}
        words = iter(arguments)
        word = next(words, None)
        while word is not None:
            following = next(words, None)
            name = word.lstrip("-") if word.startswith("-") else ""
            if name and following is not None and not (following.startswith("-") and len(following) > 1):
                self._given.setdefault(name, []).append(following)
                word = next(words, None)
            else:
                self._given.setdefault(name, []).append("" if name else word)
                word = following

    def all(self, name: str) -> list[str]:
        """Every value of an option."""
        return self._given.get(name, [])

    def last(self, name: str, first: str = "") -> Options:
        """The newest value of an option as pairs; `first` is the key of a value without one."""
        values = self.all(name)
        return pairs(values[-1], first) if values else {}

    @property
    def name(self) -> str:
        """The guest's name; empty where it has none."""
        return self.last("name", "guest").get("guest", "")

    @property
    def uuid(self) -> str:
        """As given, or empty."""
        return next(iter(self.all("uuid")), "")

    @property
    def vcpus(self) -> int:
        """How many processors the guest starts with."""
        given = self.last("smp", "cpus")
        if "cpus" in given:
            return _whole(given["cpus"])
        product = 1
        for part in ("sockets", "dies", "clusters", "cores", "threads"):
            product *= _whole(given.get(part, "1"))
        return product

    @property
    def memory_bytes(self) -> int:
        """The guest's memory; 0 where it is not understood."""
        given = self.last("m", "size").get("size")
        return _DEFAULT_MEMORY if given is None else _bytes(given)

    @property
    def accelerator(self) -> str:
        """``kvm`` or ``tcg``, the first that is named; QEMU's own default is tcg."""
        if "enable-kvm" in self._given:
            return "kvm"
        named = [
            self.last("accel", "accel").get("accel", ""),
            *(pairs(v).get("accel", "") for v in self.all("machine")),
        ]
        return next((one.split(":")[0] for one in named if one), "tcg")

    @property
    def is_a_guest(self) -> bool:
        """Whether it runs a guest: libvirt starts QEMU without a machine to ask what it can do."""
        return not any(
            pairs(value, "type").get("type") == "none" for name in ("machine", "M") for value in self.all(name)
        )

    def has_port(self, name: str) -> bool:
        """Whether the guest has a virtio-serial port of this name."""
        return any(device.get("name") == name for device in map(_node, self.all("device")))

    def disks(self) -> list[DomainDisk]:
        """The disks in the order of the arguments; CD-ROMs and firmware are left out."""
        return [*self._drives(), *self._block_nodes()]

    def _drives(self) -> Iterator[DomainDisk]:
        for name in self._given:
            if name in _SHORT_DISKS:
                for file in self.all(name):
                    yield DomainDisk(name, file, cache="writeback")
        for place, value in enumerate(self.all("drive")):
            given = pairs(value, "file")
            file = given.get("file", given.get("file.filename", ""))
            if not file or given.get("if") in ("pflash", "floppy") or given.get("media") == "cdrom":
                continue
            target = given.get("id", given.get("node-name", f"drive{given.get('index', place)}"))
            form = given.get("format", given.get("driver", UNKNOWN))
            yield DomainDisk(target, file.removeprefix("file:"), form, given.get("cache") or _mode_of(given))

    def _block_nodes(self) -> Iterator[DomainDisk]:
        nodes = {one["node-name"]: one for one in map(_node, self.all("blockdev")) if one.get("node-name")}
        for device in map(_node, self.all("device")):
            if (node := nodes.get(str(device.get("drive", "")))) is None or "cd" in str(device.get("driver", "")):
                continue
            storage = _storage_of(node, nodes)
            cache = {**_cache_of(node), **_cache_of(storage)}
            write_cache = str(device.get("write-cache", "on")) in ("on", "True", "auto")
            flags = CacheFlags(write_cache, _is_on(cache.get("direct")), _is_on(cache.get("no-flush")))
            mode = next((mode for mode, known in CACHE_FLAGS.items() if known == flags), UNKNOWN)
            target = str(device.get("id") or node["node-name"])
            yield DomainDisk(target, str(storage.get("filename", "")), str(node.get("driver", UNKNOWN)), mode)


def pairs(value: str, first: str = "") -> dict[str, str]:
    """``a,b=1`` as QEMU reads it: the value of `first`, then keys; two commas stand for one. A bare key is ``on``."""
    found: dict[str, str] = {}
    for place, part in enumerate(one for one in _PAIR.findall(value) if one):
        key, equals, text = part.replace(",,", ",").partition("=")
        if place == 0 and first and not equals:
            key, text, equals = first, key, "="
        found[key] = text if equals else "on"
    return found


def _mode_of(given: Options) -> str:
    """The mode of a drive by its single flags; QEMU's own default is writeback."""
    direct, no_flush = given.get("cache.direct", "off") == "on", given.get("cache.no-flush", "off") == "on"
    flags = CacheFlags(given.get("cache.writeback", "on") == "on", direct, no_flush)
    return next((mode for mode, known in CACHE_FLAGS.items() if known == flags), UNKNOWN)


def _node(value: str) -> dict[str, Any]:
    """A ``-blockdev`` or ``-device``, in JSON or as pairs."""
    if not value.startswith("{"):
        return dict(pairs(value, "driver"))
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _storage_of(node: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The node that opens the file, below formats and filters."""
    for _ in range(len(nodes) + 8):
        below = node.get("file")
        inner = nodes.get(below, {}) if isinstance(below, str) else below
        if node.get("driver") in _PROTOCOLS or not isinstance(inner, Mapping) or not inner:
            if "filename" not in node and "file.filename" in node:
                return {**node, "filename": node["file.filename"]}
            return node
        node = inner
    return node


def _cache_of(node: Mapping[str, Any]) -> dict[str, Any]:
    own = node.get("cache")
    flat = {key.removeprefix("cache."): value for key, value in node.items() if key.startswith("cache.")}
    return {**(own if isinstance(own, dict) else {}), **flat}


def _is_on(value: object) -> bool:
    return value is True or value == "on"


def _whole(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) else 1


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([bkmgt]?)(?:i?b)?", text.lower(), re.ASCII)
    return int(float(match[1]) * _UNITS[match[2]]) if match else 0
