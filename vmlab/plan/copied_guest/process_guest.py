"""A guest by its QEMU process: the arguments, the files that it has open, and the CPUs that its threads may use.

Nothing is sent to the process: its monitor is none of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from vmlab.model.domain import UNKNOWN, DomainDisk
from vmlab.model.errors import RefusedError
from vmlab.model.grouping import grouped
from vmlab.model.quantities import exact_bytes, whole
from vmlab.model.scenarios.memory_levers import RESERVED_PAGES
from vmlab.model.visible import cut
from vmlab.plan.copied_guest.below_disk import look_below
from vmlab.plan.copied_guest.found_guest import (
    ABOVE,
    MOST_VCPUS,
    NOTHING_BELOW,
    OF_DRIVER,
    Findings,
    FoundDisk,
    FoundGuest,
    cpu_ranges,
    is_feature,
    limited,
    of_feature,
    on_board,
    say_own_queues,
)
from vmlab.plan.copied_guest.left_over import is_usual, left_options, option_text
from vmlab.plan.copied_guest.process_cgroup import cgroup_lines
from vmlab.plan.copied_guest.process_devices import NO_TUNING, SETTINGS, devices_of
from vmlab.system.mounts import mount_words, read_cpu_list
from vmlab.telemetry.domains.open_disks import open_files, with_open_files
from vmlab.telemetry.domains.qemu_arguments import dictionaries_in, pairs
from vmlab.telemetry.domains.qemu_disks import QemuDisk, switch
from vmlab.telemetry.domains.qemu_options import QemuOptions, size_in_bytes
from vmlab.telemetry.domains.qemu_processes import guest_name, shown_names
from vmlab.telemetry.source import THE_HOST, Roots

_BUSES = {"virtio-blk": "virtio", "scsi-hd": "scsi", "scsi-block": "scsi", "scsi-generic": "scsi"}
_IO = ("threads", "native", "io_uring")
_DISCARDS = ("unmap", "on")
_LIMIT = re.compile(r"(?:x-)?(iops|bps)(?:[-_](total|read|write|rd|wr))?([-_]max(?:-length)?)?")
_IOPS_SIZE = re.compile(r"(?:x-)?iops[-_]size")
_WAYS = {"read": "-read", "rd": "-read", "write": "-write", "wr": "-write"}
_LONGEST = 71
_SETTINGS = {**SETTINGS, "queue-size": "queue_size"}
_OF_DEVICE = (
    *("drive", "write-cache", "packed", "iothread", "iothread-vq-mapping", "num-queues", "num_queues"),
    *("channel", "scsi-id", "lun", "device_id", "serial", "wwn", "werror", "rerror", *NO_TUNING),
)
"""Options of a disk, or of its controller, that are read, and those that change nothing while all is well."""
_VCPU = re.compile(r"CPU (\d+)/")


def guest_of_process(pid: int, options: QemuOptions, roots: Roots = THE_HOST) -> FoundGuest:
    """The guest of the QEMU with these arguments, which runs as `pid`. Raises RefusedError for unknown ones."""
    if options.all("readconfig"):
        words = f"process {pid} was started with -readconfig {options.all('readconfig')[0]}, which cannot be read"
        raise RefusedError(words, remedy="run it as root")
    name = guest_name(options.name, pid)
    tried = options.accelerators
    guest = FoundGuest(name, f"QEMU process {pid}", is_emulated=None if len(tried) > 1 else tried == ("tcg",))
    found = guest.found
    _cpus(options, found)
    _memory(options, found, _huge_mounts(roots.proc / str(pid) / "mounts"))
    _cpu_model(options, found)
    _threads(roots, pid, found, options.vcpus)
    devices_of(options, found)
    for line in cgroup_lines(pid, roots):
        found.lack(line)
    guest.disks += _disks(pid, options, roots)
    return guest


def _last(options: QemuOptions, name: str) -> str:
    return next(reversed(options.all(name)), "")


def _cpus(options: QemuOptions, found: Findings) -> None:
    said = _last(options, "smp")
    found.say("vcpus", options.vcpus or None, f"-smp {said}" if said else "no -smp: one")
    topology = [f"{key}={value}" for key, value in options.merged("cpus", "smp").items() if key in ("cores", "threads")]
    if any(not one.endswith("=1") for one in topology):
        found.lack(f"-smp {','.join(topology)}: each virtual CPU of the lab's guests is a socket")
    machine = options.machine.get("type", "")
    on_board(found, machine, f"-machine {machine}")


def _memory(options: QemuOptions, found: Findings, mounts: Mapping[Path, str]) -> None:
    size, said = options.memory_bytes, _last(options, "m")
    found.say("memory", exact_bytes(size) if size else None, f"-m {said}" if said else "no -m")
    merges = [options.machine.get("mem-merge", "on")]
    if path := _last(options, "mem-path"):
        _huge_pages(found, path, "-mem-path", mounts)
    for one in options.nodes("object", "qom-type"):
        kind = str(one.get("qom-type", ""))
        if not kind.startswith("memory-backend-"):
            continue
        _huge_pages(found, str(one.get("mem-path", "")), f"-object {kind}", mounts)
        if switch(one.get("hugetlb")):
            page = str(one.get("hugetlbsize", "2M"))
            bytes_of_page = int(page) if page.isdigit() else size_in_bytes(page)
            found.say("huge_pages", RESERVED_PAGES.get(bytes_of_page), f"-object {kind},hugetlb=on,hugetlbsize={page}")
        nodes = one.get("host-nodes")
        nodes = str(nodes[0]) if isinstance(nodes, list) and len(nodes) == 1 else str(nodes)
        if one.get("policy") == "bind" and nodes.isdecimal():
            found.say("numa", whole(nodes), f"-object {kind},host-nodes={nodes},policy=bind")
        merges.append(str(one.get("merge", "on")))
    if any(switch(value) is False or value == "False" for value in merges):
        found.say("ksm", False, "-machine mem-merge=off, or merge=off of its memory")
    if switch(options.merged("", "overcommit").get("mem-lock")):
        found.say("memory_lock", True, "-overcommit mem-lock=on")
    if len(options.all("numa")) > 1:
        found.lack(f"{len(options.all('numa'))} -numa: guests of the lab have one node")


def _huge_mounts(mounts: Path) -> dict[Path, str]:
    """Where the process sees huge pages, with their size as the lab has it."""
    with suppress(OSError):
        found = {Path(point): options for _, point, kind, options, *_ in mount_words(mounts) if kind == "hugetlbfs"}
        sizes = {point: re.search(r"pagesize=(\w+)", options) for point, options in found.items()}
        return {
            point: RESERVED_PAGES.get(size_in_bytes(size[1]), "") for point, size in sizes.items() if size is not None
        }
    return {}


def _huge_pages(found: Findings, path: str, where: str, mounts: Mapping[Path, str]) -> None:
    holders = [point for point in mounts if Path(path).is_relative_to(point)]
    if holders:
        size = mounts[max(holders, key=lambda point: len(point.parts))]
        found.say("huge_pages", size or None, f"{where},mem-path={path}")


def _cpu_model(options: QemuOptions, found: Findings) -> None:
    said = _last(options, "cpu")
    model, features, others = "qemu64", dict[str, str](), list[str]()
    for place, (key, value) in enumerate(pairs(said, "model").items()):
        if place == 0 and key == "model":
            model = value
            continue
        wanted = key[0] == "+" if key[:1] in ("+", "-") else switch(value)
        name = key.lstrip("+-")
        if wanted is None or not is_feature(name):
            others.append(key if value == "on" else f"{key}={value}")
        else:
            features[name] = of_feature(name, wanted=wanted)
    value = " ".join([model, *features.values()])
    found.say("cpu", value, f"-cpu {cut(said, _LONGEST)}" if said else "no -cpu: QEMU's qemu64")
    if others:
        found.lack(f"-cpu {cut(','.join(others), _LONGEST)}: no features of a processor, and no key")


def _threads(roots: Roots, pid: int, found: Findings, vcpus: int) -> None:
    """The CPUs of the host that its threads may use, where these are not all."""
    folder = roots.proc / str(pid)
    try:
        every = set(read_cpu_list((roots.sys / "devices/system/cpu/online").read_text()))
        allowed = {int(task): _allowed(folder / "task" / task) for task in os.listdir(folder / "task")}  # noqa: PTH208
    except (OSError, ValueError, LookupError):
        return
    of_vcpus = {int(match[1]): cpus for name, cpus in allowed.values() if (match := _VCPU.match(name))}
    main = next((cpus for thread, (_, cpus) in allowed.items() if str(thread) == folder.name), every)
    own = [of_vcpus.get(number, main) for number in range(min(vcpus, MOST_VCPUS))]
    where = "Cpus_allowed_list of its threads"
    if own and any(cpus < every for cpus in own):
        sets = [cpu_ranges(cpus) for cpus in own]
        found.say("pin", sets[0] if len(set(sets)) == 1 else ";".join(sets), where)
    if main < every:
        found.say("emulator_pin", cpu_ranges(main), where)


def _allowed(task: Path) -> tuple[str, set[int]]:
    lines = dict(line.partition(":\t")[::2] for line in (task / "status").read_text(errors="replace").splitlines())
    return lines["Name"], set(read_cpu_list(lines["Cpus_allowed_list"]))


def _disks(pid: int, options: QemuOptions, roots: Roots) -> Iterator[FoundDisk]:
    folder = roots.proc / str(pid)
    opened = open_files(pid, roots)
    known = options.found_disks()
    proved = with_open_files([one.disk for one in known], opened, folder, options.words())
    if not known:
        # It got its disks over its monitor, as LXD's do.
        known = [QemuDisk(disk) for disk in proved]
    devices = {str(one.get("id")): one for one in options.nodes("device")}
    groups = {str(one.get("id")): one for one in options.nodes("object", "qom-type")}
    sharing = grouped((name, one.disk.target) for one in known for name in _groups_of(one))
    for one, disk in zip(known, proved, strict=True):
        made = FoundDisk(disk.target, disk.file or disk.protocol, whole(str(one.device.get("bootindex", ""))))
        _cache(made, one, disk)
        _drive(made, one)
        _bus(made, one, devices, options)
        shared = {name: targets for name, targets in sharing.items() if made.target in targets}
        limited(made.found, made.target, _throttled(one, groups), f"{made.target}: its throttling", shared)
        look_below(made, disk, roots, folder)
        yield made


def _cache(made: FoundDisk, one: QemuDisk, disk: DomainDisk) -> None:
    said, by = disk.cache, f"{made.target}: cache by its arguments"
    if disk.o_direct is not None and (said == UNKNOWN or disk.direct is not replace(disk, o_direct=None).direct):
        said = "none" if disk.o_direct else "writeback"
        by = f"{made.target}: its open file has {'O_DIRECT' if disk.o_direct else 'no O_DIRECT'}"
    if said == UNKNOWN:
        made.found.lack(f"{made.target}: nothing tells its cache mode")
    else:
        made.found.say("cache", said, by)


def _drive(made: FoundDisk, one: QemuDisk) -> None:
    found, name = made.found, made.target
    words = [str(layer["aio"]) for layer in one.layers if "aio" in layer]
    if words and words[-1] in _IO:
        found.say("io", words[-1], f"{name}: aio={words[-1]}")
    if one.disk.format in ("raw", "qcow2"):
        found.say("format", one.disk.format, f"{name}: driver {one.disk.format}")
    elif one.disk.format != UNKNOWN:
        found.lack(f"{name}: {one.disk.format}: the lab's data disks are raw or qcow2")
    if one.layers:
        # Each node has to pass it on; one below another does, unless it is told otherwise (block.c).
        first = str(one.layers[0].get("discard", "ignore"))
        passed = all(str(layer.get("discard", "unmap")) in _DISCARDS for layer in one.layers)
        where = f"{name}: discard={first}" if "discard" in one.layers[0] else f"{name} has no discard=: QEMU's ignore"
        found.say("discard", "unmap" if first in _DISCARDS and passed else "ignore", where)
    zeroes = [str(layer["detect-zeroes"]) for layer in one.layers if "detect-zeroes" in layer]
    if zeroes and zeroes[0] in ("off", "on", "unmap"):
        found.say("detect_zeroes", zeroes[0], f"{name}: detect-zeroes={zeroes[0]}")
    for layer in one.layers:
        if size := size_in_bytes(str(layer.get("cache-size", ""))):
            found.say("table_cache", exact_bytes(size), f"{name}: cache-size={layer['cache-size']}")
        if "l2-cache-size" in layer:
            found.lack(f"{name}: l2-cache-size={layer['l2-cache-size']}: the lab's table_cache is that of all tables")
    made.is_written = not any(switch(layer.get(key)) for layer in one.layers for key in ("read-only", "readonly"))
    if not made.is_written:
        found.lack(f"{name}: read-only=on: the lab's disks are written")
    if any(switch(layer.get("snapshot")) for layer in one.layers):
        found.lack(f"{name}: snapshot=on: {ABOVE}")
    made.is_chain_said = any("backing" in layer for layer in one.layers)
    for layer in one.layers[:-1]:
        if layer.get("driver") == "copy-on-read" or isinstance(layer.get("backing"), dict | str):
            found.lack(f"{name}: it reads other files below it; {NOTHING_BELOW}")


def _bus(made: FoundDisk, one: QemuDisk, devices: Mapping[str, Mapping[str, Any]], options: QemuOptions) -> None:
    name, device, found = made.target, one.device, made.found
    driver = str(device.get("driver", ""))
    bus = next((value for begin, value in _BUSES.items() if driver.startswith(begin)), None)
    if not driver:
        bus = one.interface if one.interface in ("virtio",) else None
    if bus is None:
        words = f"-device {driver}" if driver else f"if={one.interface}" if one.interface else "nothing tells its bus"
        found.lack(f"{name}: {words}: the lab's disks are virtio or scsi")
        return
    where = f"{name}: -device {driver}" if driver else f"{name}: if={one.interface}"
    holder, key = device, "num-queues"
    if bus == "scsi":
        holder, key = devices.get(str(device.get("bus", "")).rpartition(".")[0], {}), "num_queues"
        if not str(holder.get("driver", "")).startswith("virtio-scsi"):
            found.lack(f"{name}: controller {holder.get('driver', 'unknown')}: the lab's is virtio-scsi")
            return
        where += f" at -device {holder.get('driver')}"
        if driver != "scsi-hd":
            found.lack(f"{name}: {driver}: the guest's own SCSI commands go to the device")
    found.say("bus", bus, where)
    own = whole(str(holder.get(key, holder.get(key.replace("-", "_"), ""))))
    found.say("queues", own or None, f"{where},{key}={own}")
    say_own_queues(found, name, key, options.machine.get("type", ""), options.vcpus)
    if thread := holder.get("iothread"):
        found.say("iothread", str(thread), f"{where},iothread={thread}")
    if "iothread-vq-mapping" in holder:
        mapped = dictionaries_in(holder["iothread-vq-mapping"])
        threads = sorted(str(part["iothread"]) for part in mapped if "iothread" in part)
        found.say("iothread", ",".join(threads), f"{name}: iothread-vq-mapping")
        found.lack(f"{name}: iothread-vq-mapping: the lab's disk has one iothread")
    if (packed := switch(device.get("packed"))) is not None and bus == "virtio":
        found.say("packed", packed, f"{where},packed={device.get('packed')}")
    for option, path in _SETTINGS.items() if bus == "virtio" else ():
        if option in device and not is_usual(path, device[option]):
            value = option_text(device[option])
            found.say(f"{OF_DRIVER}{path}", value, f"{where},{option}={value}")
    taken = (*_OF_DEVICE, *(_SETTINGS if bus == "virtio" else ()))
    found.lack_key(f"{name}: -device {driver},", left_options(device, taken))
    if holder is not device:
        found.lack_key(f"{name}: -device {holder.get('driver')},", left_options(holder, _OF_DEVICE))


def _groups_of(one: QemuDisk) -> Iterator[str]:
    """The groups by whose limits it is throttled, which other disks may name, too."""
    for layer in one.layers:
        drive = layer.get("throttling")
        if name := layer.get("throttle-group") or (drive.get("group") if isinstance(drive, Mapping) else None):
            yield str(name)


def _throttled(one: QemuDisk, groups: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Limits by their names without ``-total``: of a ``-drive``, or of the group of a node."""
    found: dict[str, int] = {}
    for layer in one.layers:
        group = groups.get(str(layer.get("throttle-group")), {})
        for part in (group.get("limits"), layer.get("throttling"), group, layer):
            for key, value in part.items() if isinstance(part, Mapping) else ():
                if _IOPS_SIZE.fullmatch(str(key)) is not None:
                    found["iops-size"] = whole(str(value))
                elif (match := _LIMIT.fullmatch(str(key))) is not None:
                    burst = (match[3] or "").replace("_", "-")
                    found[f"{match[1]}{_WAYS.get(match[2], '')}{burst}"] = whole(str(value))
    return found


def named_so(options: Mapping[int, QemuOptions], wanted: str) -> Sequence[int]:
    """The processes of guests with this name, or this number in Proxmox VE, which it gives by ``-id``, or shown by this
    name: two of one name are told apart by the process's id.
    """
    by_name = [pid for pid, one in options.items() if guest_name(one.name, pid) == wanted]
    by_id = [pid for pid, one in options.items() if wanted in one.all("id")]
    return by_name or by_id or [pid for pid, one in options.items() if wanted in islice(shown_names(one.name, pid), 2)]
