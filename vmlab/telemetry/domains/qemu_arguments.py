"""QEMU's command line as options in their order: what takes a value, how a value is taken apart, and `-readconfig`.

Source: QEMU's ``qemu-options.hx``, ``util/keyval.c`` and ``util/qemu-config.c``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Options = Mapping[str, str]
ReadConfig = Callable[[str], str | None]
"""The text of a file by the path that QEMU was given; None where it cannot be read."""

POSITIONAL = ""
"""The name of a word without an option: an image, which QEMU takes for ``-hda``."""

_FLAG_NAMES = """
    h help version S s usb nographic daemonize snapshot no-reboot no-shutdown nodefaults no-user-config nodefconfig
    enable-kvm no-kvm no-kvm-irqchip no-kvm-pit no-kvm-pit-reinjection enable-nesting enable-hax enable-fips no-acpi
    no-hpet no-fd-bootchk no-quit no-frame show-cursor alt-grab ctrl-grab full-screen sdl curses portrait win2k-hack
    rtc-td-hack localtime tdf old-param semihosting singlestep mem-prealloc xen-create xen-attach xen-domid-restrict
    only-migratable preconfig async-teardown audio-help enable-sync-profile virtfs_synth perfmap jitdump
"""
_VALUE_NAMES = """
    D L M accel acpitable action add-fd append audio audiodev balloon bios blockdev boot bt cdrom chardev chroot
    clock compat cpu d debugcon device dfilter display drive dtb dump-vmstate echr fda fdb fsdev fw_cfg g gdb global
    hda hdb hdc hdd icount id incoming initrd iscsi k kernel kvm-shadow-memory loadvm m machine mem-path mon monitor
    msg mtdblock name net netdev nic numa object option-rom overcommit parallel pflash pidfile plugin prom-env qmp
    qmp-pretty qtest qtest-log readconfig realtime rotate rtc run-with runas sandbox sd seed semihosting-config
    serial set shim smbios smp soundhw spice startdate tb-size tpmdev trace usbdevice uuid vga virtfs vmsd vnc
    watchdog watchdog-action writeconfig xen-domid
"""
_FLAGS, _WITH_VALUE = frozenset(_FLAG_NAMES.split()), frozenset(_VALUE_NAMES.split())
_OF_SECTION = {"smp-opts": "smp", "memory": "m", "boot-opts": "boot"}
_SECTION = re.compile(r'\[\s*([^\s"\]]+)(?:\s+"([^"]*)")?\s*\]')
_SETTING = re.compile(r'([^\s=]+)\s*=\s*"([^"]*)"')
_PAIR = re.compile(r"((?:[^,]|,,)*)(?:,|$)")


class Option(NamedTuple):
    """An option without its dashes, and its value; empty for one that takes none."""

    name: str
    value: str


def options(arguments: Sequence[str], read_config: ReadConfig) -> Iterator[Option]:
    """The options in the order in which QEMU takes them, those of its files in the place of ``-readconfig``.

    The option ``readconfig`` itself remains where its file was not read.
    """
    words = iter([*arguments, None])
    word = next(words)
    while word is not None:
        following = next(words, None)
        name = word.removeprefix("-").removeprefix("-") if word.startswith("-") else POSITIONAL
        if name and following is not None and _takes(name, following):
            text = read_config(following) if name == "readconfig" else None
            yield from [Option(name, following)] if text is None else _of_file(text)
            following = next(words, None)
        elif name:
            yield Option(name, "")
        elif word.strip("-"):
            yield Option(POSITIONAL, word)
        word = following


def _takes(name: str, following: str) -> bool:
    """Whether the next word is the value of this option. One that is not known here is given a word without a dash, as
    no image may be made up of it.
    """
    return name in _WITH_VALUE or (name not in _FLAGS and not following.startswith("-"))


def _of_file(text: str) -> Iterator[Option]:
    """``[drive "d0"]`` and the ``key = "value"`` below it as ``-drive id=d0,key=value``."""
    name, said = "", dict[str, str]()
    for line in [*text.splitlines(), "[end]"]:
        if section := _SECTION.match(line := line.strip()):
            if name:
                yield Option(name, ",".join(f"{key}={value.replace(',', ',,')}" for key, value in said.items()))
            name, said = _OF_SECTION.get(section[1], section[1]), {} if section[2] is None else {"id": section[2]}
        elif setting := _SETTING.match(line):
            said[setting[1]] = setting[2]


def pairs(value: str, first: str = "") -> dict[str, str]:
    """``a,b=1`` as QEMU reads it: the value of `first`, then keys; two commas stand for one. A bare key is ``on``."""
    found: dict[str, str] = {}
    for place, part in enumerate(one for one in _PAIR.findall(value) if one):
        key, equals, text = part.replace(",,", ",").partition("=")
        if place == 0 and first and not equals:
            key, text, equals = first, key, "="
        found[key] = text if equals else "on"
    return found


def node(value: str, first: str = "driver") -> dict[str, Any]:
    """A ``-blockdev``, ``-device`` or ``-object``, in JSON or as pairs, whose dotted keys become dictionaries."""
    if not value.startswith("{"):
        return nested(pairs(value, first))
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """``{"file.driver": "nbd"}`` as ``{"file": {"driver": "nbd"}}``; a value beside deeper keys gives way to them."""
    found: dict[str, Any] = {}
    for key, value in flat.items():
        *above, last = key.split(".")
        inner = found
        for part in above:
            if not isinstance(inner.get(part), dict):
                inner[part] = {}
            inner = inner[part]
        if not isinstance(inner.get(last), dict):
            inner[last] = value
    return found


def dictionaries_in(value: object) -> Iterator[dict[str, Any]]:
    """A dictionary and those in it, at any depth."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def strings_in(value: Mapping[str, Any], but: str = "") -> Iterator[str]:
    """The texts in a dictionary and those in it, but for those of one key."""
    for one in dictionaries_in(value):
        for key, found in one.items():
            words = found if isinstance(found, list) else [found]
            yield from (word for word in words if key != but and isinstance(word, str))
