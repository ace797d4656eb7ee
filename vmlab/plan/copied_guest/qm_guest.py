"""A guest by the text of Proxmox VE's `qm config`, or of its file in /etc/pve/qemu-server.

What the text leaves out has Proxmox VE's defaults, which are its own and not QEMU's (qm.conf(5), and
`aio_cmdline_option` and `detect_zeroes_cmdline_option` of qemu-server).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from vmlab.model.errors import ScenarioError
from vmlab.model.quantities import exact_bytes, whole
from vmlab.model.scenarios.memory_levers import RESERVED_PAGES
from vmlab.plan.copied_guest.found_guest import (
    ABOVE,
    NOTHING_BELOW,
    Findings,
    FoundDisk,
    FoundGuest,
    is_feature,
    limited,
    of_feature,
    on_board,
    say_own_queues,
    say_settings,
)
from vmlab.plan.copied_guest.left_over import left_options

_LINE = re.compile(r"([a-z][a-z0-9_-]*):(?: (.*))?", re.ASCII)
_SECTION = re.compile(r"\[[^\]]+\]")
_KNOWN = re.compile(
    r"(?:scsi|virtio|sata|ide|net|hostpci|numa|efidisk|unused)\d+|cores|sockets|vcpus|memory|ostype|scsihw"
)
_OF_CONTAINERS = ("rootfs", "lxc.include", "unprivileged")
_DISK = re.compile(r"(scsi|virtio|sata|ide)(\d+)", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)", re.ASCII)
_BASE = re.compile(r"[:/](base-[^/]+)/")
"""The volume that a linked clone reads, in the clone's name."""
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_LIMIT = re.compile(r"(mbps|bps|iops)(_rd|_wr)?(_max(_length)?)?")
_FIRST = {"ide": "file", "sata": "file", "scsi": "file", "virtio": "file", "net": "model"}
_OF_CARD = ("model", "virtio", "macaddr", "bridge", "queues", "mtu", "rate")
_OF_DRIVE = (
    *("file", "volume", "media", "size", "format", "cache", "aio", "discard", "detect_zeroes", "iothread", "queues"),
    *("ro", "snapshot", "backup", "replicate", "shared", "serial", "wwn", "werror", "rerror"),
)
"""Parts that are read, and those that change nothing while all is well."""
_LINUX = ("", "l24", "l26", "other")
_SWITCHED_ON = ("1", "on", "yes", "true")
"""`parse_boolean` of pve-common."""
_LEVELS = "+popcnt +pni +sse4.1 +sse4.2 +ssse3"
_V3 = f"+aes {_LEVELS} +avx +avx2 +bmi1 +bmi2 +f16c +fma +abm +movbe +xsave"
_MODELS = {
    "kvm64": "kvm64 +lahf_lm +sep",
    "kvm32": "kvm32 +sep",
    "x86-64-v2": f"qemu64 {_LEVELS}",
    "x86-64-v2-AES": f"qemu64 +aes {_LEVELS}",
    "x86-64-v3": f"qemu64 {_V3}",
    "x86-64-v4": f"qemu64 {_V3} +avx512f +avx512bw +avx512cd +avx512dq +avx512vl",
}
"""Its own models, and what it gives QEMU for them and two of QEMU's (PVE/QemuServer/CPUConfig.pm)."""
_ABSTRACT = ("nested-virt",)
"""Flags for which it has others, by the host's processor."""
_USUAL_WEIGHT, _LABS_WEIGHT = 100, 1024
_OTHERS = {
    "hostpci": "a device of the host is passed through",
    "usb": "guests of the lab have no USB",
    "tpmstate": "guests of the lab have no TPM",
    "efidisk": "the lab's UEFI keeps its variables in memory",
    "virtiofs": "guests of the lab share no folder with the host",
    "audio": "guests of the lab have no sound",
    "vga": "guests of the lab have no screen",
    "watchdog": "guests of the lab have no watchdog",
    "ivshmem": "guests of the lab share no memory",
    "args": "no key",
    "amd-sev": "the memory of the lab's guests is not encrypted",
    "intel-tdx": "the memory of the lab's guests is not encrypted",
}


def is_qm_config(text: str) -> bool:
    """Whether each line has the form of `qm config`, and one of them is of a guest."""
    lines = [line for line in _before_snapshots(text) if line.strip() and not line.startswith("#")]
    matches = [_LINE.fullmatch(line) for line in lines]
    keys = [match[1] for match in matches if match]
    return bool(keys) and all(matches) and any(map(_KNOWN.fullmatch, keys))


def guest_of_qm_config(text: str, file: Path | str, origin: str) -> FoundGuest:
    """The guest that the text describes. Raises ScenarioError for that of a container."""
    said: dict[str, str] = {}
    for number, line in enumerate(_before_snapshots(text), start=1):
        if (match := _LINE.fullmatch(line)) is not None:
            said.setdefault(match[1], (match[2] or "").strip())
            if match[1] in _OF_CONTAINERS:
                words = "is the configuration of a container (`pct config`), which has no QEMU"
                raise ScenarioError(words, file=file, line=number, column=1)
    guest = FoundGuest(said.get("name") or "guest", origin, is_emulated=said.get("kvm") == "0")
    vcpus = _cpus(said, guest.found)
    _memory(said, guest.found)
    _card(said, guest.found)
    _others(said, guest.found)
    guest.disks += _disks(said, vcpus, guest.found)
    return guest


def _before_snapshots(text: str) -> Iterator[str]:
    for line in text.lstrip("\ufeff").splitlines():
        if _SECTION.fullmatch(line.strip()):
            return
        yield line.rstrip()


def _parts(value: str, first: str) -> dict[str, str]:
    """``local:vm-1,cache=none`` by keys; `first` is that of a word without one."""
    found: dict[str, str] = {}
    for place, part in enumerate(value.split(",")):
        key, equals, text = part.partition("=")
        found[key.strip() if equals else (first if place == 0 else key.strip())] = text if equals else key
    return found


def _cpus(said: Mapping[str, str], found: Findings) -> int:
    cores, sockets = (whole(said.get(key)) or 1 for key in ("cores", "sockets"))
    count = whole(said.get("vcpus")) or cores * sockets
    given = [f"{key}: {said[key]}" for key in ("vcpus", "sockets", "cores") if key in said]
    found.say("vcpus", count, ", ".join(given) or "no cores: 1")
    if cores > 1:
        found.lack(f"cores: {cores}: each virtual CPU of the lab's guests is a socket")
    _cpu_model(said, found)
    if limit := _number(said.get("cpulimit")):
        found.say("libvirt cputune/global_period", "100000", f"cpulimit: {said['cpulimit']}")
        found.say("libvirt cputune/global_quota", str(round(100_000 * limit)), f"cpulimit: {said['cpulimit']}")
    if weight := whole(said.get("cpuunits")):
        shares = max(2, round(weight * _LABS_WEIGHT / _USUAL_WEIGHT))
        where = f"cpuunits: {weight}, where {_USUAL_WEIGHT} is usual, as {_LABS_WEIGHT} in the lab"
        found.say("cpu_shares", shares, where)
    if affinity := said.get("affinity"):
        for key in ("pin", "emulator_pin"):
            found.say(key, affinity.replace(" ", ""), f"affinity: {affinity}")
    return count


def _left(parts: Mapping[str, str], taken: Collection[str]) -> str:
    """Parts that no reader takes; 0 switches off what is off anyway."""
    return left_options({key: value for key, value in parts.items() if value != "0"}, taken)


def _cpu_model(said: Mapping[str, str], found: Findings) -> None:
    text = said.get("cpu", "")
    parts = _parts(text, "cputype") if text else {}
    usual = "qemu64" if said.get("kvm") == "0" else "kvm64"
    model = parts.get("cputype", usual)
    if _is_on(parts.get("hidden")):
        say_settings(found, {"features/kvm/hidden/@state": "on"}, f"cpu: hidden={parts['hidden']}")
    found.lack_key("cpu: ", _left(parts, ("cputype", "flags", "hidden")))
    if model.startswith("custom-"):
        found.lack(f"cpu: {model}: it is defined in /etc/pve/virtual-guest/cpu-models.conf")
        return
    given = [word for word in parts.get("flags", "").split(";") if word]
    flags = [word for word in given if word[0] in "+-" and is_feature(word[1:]) and word[1:] not in _ABSTRACT]
    if others := [word for word in given if word not in flags]:
        found.lack(f"cpu: flags={';'.join(others)}: no features of a processor, and no key")
    value = [_MODELS.get(model, model), *(of_feature(word[1:], wanted=word[0] == "+") for word in flags)]
    found.say("cpu", " ".join(value), f"cpu: {text}" if text else f"no cpu: Proxmox VE's {usual}")


def _memory(said: Mapping[str, str], found: Findings) -> None:
    given = said.get("memory", "")
    size = whole(_parts(given, "current").get("current")) if given else 512
    if size:
        found.say("memory", exact_bytes(size << 20), f"memory: {given}" if given else "no memory: Proxmox VE's 512")
    balloon = whole(said.get("balloon"))
    if balloon and balloon != size:
        found.lack(f"balloon: {balloon}: the lab's guests keep all of their memory")
    if not _is_on(said.get("allow-ksm", "1")):
        found.say("ksm", False, f"allow-ksm: {said['allow-ksm']}")
    if pages := said.get("hugepages"):
        # Of any size it takes the largest of which the memory is a multiple (PVE/QemuServer/Memory.pm).
        size_of_page = ("2" if size % 1024 else "1024") if pages == "any" else pages
        found.say("huge_pages", RESERVED_PAGES.get(whole(size_of_page) << 20), f"hugepages: {pages}")
    _node(said, found)
    machine = said.get("machine", "")
    where = f"machine: {machine}" if machine else "no machine: Proxmox VE's i440fx"
    on_board(found, _machine_type(said), where)
    found.lack_key("machine: ", _left(_parts(machine, "type"), ("type",)))


def _machine_type(said: Mapping[str, str]) -> str:
    return _parts(said.get("machine", ""), "type").get("type") or "pc"


def _node(said: Mapping[str, str], found: Findings) -> None:
    """Of one node of the guest, the node of the host to which its memory is bound."""
    if not _is_on(said.get("numa")):
        return
    nodes = {key: _parts(value, "cpus") for key, value in said.items() if re.fullmatch(r"numa\d+", key)}
    if len(nodes) != 1:
        found.lack("numa: 1: guests of the lab have one node")
    for key, parts in nodes.items():
        host = parts.get("hostnodes", "")
        if len(nodes) == 1 and parts.get("policy") == "bind" and host.isascii() and host.isdigit():
            found.say("numa", whole(host), f"{key}: hostnodes={host},policy=bind")
        else:
            found.lack(f"{key}: {said[key]}: the lab takes a guest's memory from one node or from any")


def _is_on(text: str | None) -> bool:
    return text is not None and text.lower() in _SWITCHED_ON


def _card(said: Mapping[str, str], found: Findings) -> None:
    cards = sorted((key for key in said if re.fullmatch(r"net\d+", key)), key=lambda key: whole(key[3:]))
    for key in cards[1:]:
        found.lack(f"{key}: {said[key]}: the lab's guests have one network card")
    if not cards:
        found.lack("no net0; guests of the lab have a network card")
        return
    key = cards[0]
    parts = _parts(said[key], "model")
    if "virtio" not in (*parts, parts.get("model")):
        found.lack(f"{key}: {said[key].partition('=')[0]}: the lab's network card is virtio")
        return
    found.lack_key(f"{key}: ", _left(parts, _OF_CARD))
    found.say("nic_queues", whole(parts.get("queues")) or None, f"{key}: queues={parts.get('queues')}")
    # 1 stands for that of the bridge.
    if (mtu := whole(parts.get("mtu"))) > 1:
        found.say("mtu", mtu, f"{key}: mtu={mtu}")
    elif mtu:
        found.lack(f"{key}: mtu=1: as the bridge, of which the text says nothing")
    if rate := parts.get("rate"):
        found.lack(f"{key}: rate={rate}: a limit of what the guest gets; the key `bandwidth` limits both directions")


def _others(said: Mapping[str, str], found: Findings) -> None:
    for key, value in said.items():
        words = _OTHERS.get(key.rstrip("0123456789"))
        is_none = key == "vga" and value.startswith(("none", "serial"))
        if words is not None and not is_none:
            found.lack(f"{key}: {value}: {words}")
    if (system := said.get("ostype", "")) not in _LINUX:
        found.lack(f"ostype: {system}: guests of the lab run Linux, without what Proxmox VE sets for this system")
    if _is_on(said.get("localtime")):
        found.lack(f"localtime: {said['localtime']}: the lab's clock is UTC")
    if not _is_on(said.get("acpi", "1")):
        found.lack(f"acpi: {said['acpi']}: guests of the lab have ACPI")
    if said.get("bios") == "ovmf":
        found.say("firmware", "uefi", "bios: ovmf")
    if said.get("arch", "x86_64") != "x86_64":
        found.lack(f"arch: {said['arch']}: guests of the lab are x86_64")


def _disks(said: Mapping[str, str], vcpus: int, guest: Findings) -> Iterator[FoundDisk]:
    order = _boot_order(said)
    for key, value in said.items():
        match = _DISK.fullmatch(key)
        if match is None:
            continue
        parts = _parts(value, "file")
        if parts.get("media") == "cdrom" or parts.get("file") in ("none", "cdrom"):
            if parts.get("file") != "none":
                guest.lack(f"{key}: {parts.get('file', '')}: guests of the lab have disks alone")
            continue
        place = order.index(key) + 1 if key in order else 0
        disk = FoundDisk(key, parts.get("file", ""), place)
        _bus(disk, match[1], said, parts, vcpus)
        _drive(disk, parts)
        yield disk


def _boot_order(said: Mapping[str, str]) -> list[str]:
    boot = _parts(said.get("boot", ""), "legacy")
    return [*boot.get("order", "").split(";"), said.get("bootdisk", "")]


def _bus(disk: FoundDisk, bus: str, said: Mapping[str, str], parts: Mapping[str, str], vcpus: int) -> None:
    name, hardware = disk.target, said.get("scsihw", "lsi")
    if bus == "scsi" and not hardware.startswith("virtio-scsi"):
        usual = "" if "scsihw" in said else ", as it is not said"
        disk.found.lack(f"{name}: scsihw: {hardware}{usual}: the lab's is virtio-scsi")
    elif bus not in ("scsi", "virtio"):
        disk.found.lack(f"{name}: bus {bus}: the lab's disks are virtio or scsi")
    else:
        disk.found.say("bus", bus, f"{name}" + (f" with scsihw: {hardware}" if bus == "scsi" else ""))
        disk.found.say("queues", whole(parts.get("queues")) or None, f"{name}: queues={parts.get('queues')}")
        say_own_queues(disk.found, name, "queues", _machine_type(said), vcpus)
    if _is_on(parts.get("iothread")):
        if bus == "scsi" and hardware != "virtio-scsi-single":
            disk.found.lack(
                f"{name}: iothread={parts['iothread']}: it needs scsihw: virtio-scsi-single, and does nothing"
            )
        else:
            disk.found.say("iothread", f"iothread-{name}", f"{name}: iothread={parts['iothread']}")


def _drive(disk: FoundDisk, parts: Mapping[str, str]) -> None:
    name, found = disk.target, disk.found

    def where(key: str, usual: str) -> str:
        return f"{name}: {key}={parts[key]}" if key in parts else f"{name} has no {key}=: Proxmox VE's {usual}"

    cache = parts.get("cache", "none")
    found.say("cache", "none" if cache == "off" else cache, where("cache", "none"))
    found.say("io", parts.get("aio", "io_uring"), where("aio", "io_uring (native or threads on LVM)"))
    discard = parts.get("discard", "ignore")
    found.say("discard", "unmap" if discard == "on" else "ignore", where("discard", "ignore"))
    zeroes = "on" if _is_on(parts.get("detect_zeroes", "1")) else "off"
    if zeroes == "on" and discard == "on":
        found.say("detect_zeroes", "unmap", f"{name}: discard=on, with which zeroes are discarded")
    else:
        found.say("detect_zeroes", zeroes, where("detect_zeroes", "1"))
    found.say("size", _bytes(parts.get("size", "")), f"size={parts.get('size')}")
    file = parts.get("file", "")
    ending = parts.get("format") or file.rpartition(".")[2]
    if ending in ("raw", "qcow2"):
        found.say("format", ending, f"{name}: {file}")
    elif ending == "vmdk":
        found.lack(f"{name}: vmdk: the lab's data disks are raw or qcow2")
    else:
        found.say("format", "raw", f"{name}: {file}, which has no file's ending")
    if base := _BASE.search(file):
        found.lack(f"{name}: it reads {base[1]} below it; {NOTHING_BELOW}")
    storage, is_volume, _ = file.partition(":")
    if is_volume and not file.startswith("/"):
        words = f"/etc/pve/storage.cfg says where storage {storage} lies; `backing` puts the data disk there"
    else:
        words = f"it is {file} of its host; `backing` puts the data disk elsewhere"
    found.lack(f"{name}: {words}")
    limited(found, name, dict(_limits(parts)), f"{name}: its limits")
    found.lack_key(f"{name}: ", _left(parts, (*_OF_DRIVE, *(key for key in parts if _LIMIT.fullmatch(key)))))
    disk.is_written = not _is_on(parts.get("ro"))
    for key, words in (("ro", "the lab's disks are written"), ("snapshot", ABOVE)):
        if _is_on(parts.get(key)):
            found.lack(f"{name}: {key}={parts[key]}: {words}")


def _limits(parts: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """In bytes: ``mbps`` is MiB a second (`print_drive_commandline_full` of qemu-server)."""
    for key, value in parts.items():
        match = _LIMIT.fullmatch(key)
        number = _number(value)
        if match is None or number is None:
            continue
        kind = "iops" if match[1] == "iops" else "bps"
        way = {"_rd": "-read", "_wr": "-write"}.get(match[2] or "", "")
        unit = 1 << 20 if match[1] == "mbps" and not match[4] else 1
        yield f"{kind}{way}{(match[3] or '').replace('_', '-')}", round(number * unit)


def _number(text: Any) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", str(text), re.ASCII) else None


def _bytes(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return round(float(match[1]) * (1 << _POWERS[match[2]])) if match else None
