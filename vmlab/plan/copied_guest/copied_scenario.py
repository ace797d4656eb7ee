"""The text of a scenario with a guest like one that was found: each key with where it was read, one axis with a change
of its disk at each point, and what is left out as comments with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vmlab.model.quantities import exact_bytes, parse_bytes
from vmlab.model.run import CACHE_FLAGS, SWITCHABLE
from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.model.visible import cut, visible_line
from vmlab.plan.copied_guest.found_guest import MOST_VCPUS, OF_DRIVER, FoundDisk, FoundGuest, Said
from vmlab.plan.copied_guest.trial import Trial
from vmlab.plan.scenario_file.written_text import flow_text, written_text

VM, SETTING, AS_IT_IS = "vm", "setting", "as-it-is"
_WORK = "blocks"
_FOR_ALL: dict[str, Any] = {
    "cache": "writeback",
    "io": "threads",
    "iothread": False,
    "detect_zeroes": "off",
} | dict.fromkeys(("limit_iops", "limit_bandwidth", "limit_iops_burst", "limit_bandwidth_burst", "limit_burst_length"))
"""Keys of all disks, of which the data disk may have its own with ``data_``; what a disk has that says nothing."""
_AFTER_DATA = ("bus", "queues", "packed", "format", "cluster", "extended_l2", "table_cache", "discard")
_OF_DATA = {"backing": "backing", **{key: f"data_{key}" for key in _AFTER_DATA}}
"""Keys of the data disk alone, first those that exclude others."""
_OF_FIRST = {"bus": "virtio", "format": "qcow2", "discard": "unmap", "packed": False}
"""What the lab's first disk has of them."""
_QUEUES = ("queues", "data_queues", "nic_queues")
_LIBVIRT = "libvirt "
_OWN = re.compile(rf"^guest {VM} has [a-z_]+: .*?, (?:but|and) ")
"""How a reason begins that is of one key of the guest, behind which it stands."""
_SHARED = "shared"
_TWO_DISKS = "the lab's guests have two disks"
_LEAST_DATA, _MOST_FILE = 2**26, 2**30
_SEED = re.compile(r".*\.iso|.*disk\.config|.*(?:cloud-?init|nocloud)[^/]*", re.IGNORECASE)
"""Files with the data for a guest's first boot, as KubeVirt, Nova and Proxmox VE name them."""
_MOST_SEED = 2**26
"""Nova's are as large as that; no other is larger."""
_LEAST_MEMORY, _USUAL_MEMORY, _USUAL_DISK = 2**26, 2**30, 8 * 2**30
_LEAST_DISK, _MOST_DISK = 2**30, 2**46
_AT_COLUMN = 44
_LONGEST_COMMENT = 500
_MEMORY = 1
"""The place of the memory among the lines that every guest has."""
_SMALL_DATA = "1 GiB"
_LONGEST_NAME = 31
Keys = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """A key of the guest, or a point of the axis, with the comment behind it; `off` is why it is a comment itself."""

    key: str
    value: Any
    where: str
    off: str = ""

    def text(self, indent: str) -> str:
        """As it stands in the file."""
        said = f"{indent}{'# ' if self.off else ''}{self.key}: {flow_text(self.value)}"
        words = f"{self.where}; {_OWN.sub('', self.off)}" if self.off else self.where
        return f"{said:<{_AT_COLUMN}}  # {_comment(words)}"


@dataclass(frozen=True, slots=True)
class Work:
    """What the guest does, on its data disk: `workloads`, and `axes` besides that of its settings, by the guest's keys.

    `smoke` is what changes for that size; there are so many `repeats` else. `target` is the disk of its own that the
    data disk copies, "" for the first but the one that it boots from; `changes` are the settings of it that are tried,
    all that there are for (), and `more` further keys of the scenario.
    """

    workloads: Callable[[Keys], dict[str, Keys]]
    smoke: Keys
    summary: str
    metrics: tuple[str, ...] = ("iops",)
    target: str = ""
    heading: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    axes: Callable[[Keys], Mapping[str, list[Line]]] = lambda keys: {}
    more: Keys = field(default_factory=dict)
    repeats: int = 8


def copied_scenario(guest: FoundGuest, trial: Trial, work: Work | None = None) -> str:
    """The text, which this host can plan where it can plan anything: keys that it cannot have are comments.

    The guest has a disk; the data disk is like the first other one that it writes and that is none for its first boot,
    or like that. Without `work` it reads and writes blocks at random.
    """
    root, *others = guest.in_order()
    target = work.target if work else ""
    all_written = [disk for disk in (*others, root) if disk.is_written]
    first = next(iter(all_written), root)
    written = next((disk for disk in all_written if disk is root or not _why_not_tested(disk)), first)
    data = next((disk for disk in (root, *others) if disk.target == target), written)
    rest = [disk for disk in others if disk is not data]
    words = f"A guest like {guest.name}, and at each point one change of its disk {data.target}."
    smoke = {_WORK: {"size": "16 MiB", "time": "2 s"}}
    work = work or Work(lambda keys: {_WORK: _blocks(keys)}, smoke, words)
    scenario = _Scenario(guest.name, list(_heading(guest, root, data, rest, trial)), work, trial)
    scenario.take_size(list(_size(guest, root, trial)))
    scenario.take_data(_data_size(root, data))
    for line in (*_of_guest(guest), *_of_disks(root, data), *_settings(guest, root, data)):
        scenario.take(line)
    for point in _points(scenario.keys(), data.target):
        if not work.changes or point.key in work.changes:
            scenario.take_point(point)
    return scenario.text()


class _Scenario:
    """A scenario that grows line by line; what would make it invalid, or unfit for this host, becomes a comment."""

    def __init__(self, name: str, heading: list[str], work: Work, trial: Trial) -> None:
        self._name, self._heading, self._work, self._trial = name, [*heading, *work.heading], work, trial
        self._lines: list[Line] = []
        self._points: list[Line] = [Line(AS_IT_IS, {}, "as the lines above say")]

    def take_size(self, lines: list[Line]) -> None:
        """Begin with what every guest has, with less memory where this host has too little."""
        self._lines = lines
        why, memory = self._trial.why_not(self.text()), lines[_MEMORY]
        size = parse_bytes(memory.value)
        for half in (size >> power for power in range(1, 16) if why is not None):
            less = Line("memory", exact_bytes(max(_LEAST_MEMORY, half >> 20 << 20)), memory.where)
            self._lines = [*lines[:_MEMORY], less, *lines[_MEMORY + 1 :]]
            if self._trial.why_not(self.text()) is None:
                where = f"{memory.value} in {memory.where}, and here {less.value}: {why}"
                self._lines[_MEMORY] = replace(less, where=where)
                return
        self._lines = lines
        if why is not None:
            self._heading += ["On this host nothing of it can run:", f"- {why}"]
            self._trial.leave_host_out()

    def take_data(self, line: Line) -> None:
        """Add the data disk, a small one where this host has no room for it."""
        self.take(line)
        if why := self._lines[-1].off:
            self._lines.pop()
            where = f"{line.value} in {line.where}, and here {_SMALL_DATA}: {why}"
            self.take(replace(line, value=_SMALL_DATA, where=where))

    def take(self, line: Line) -> None:
        """Add a line of the guest, of queues as many as it can use."""
        if line.key in _QUEUES and line.value > (vcpus := self.keys()["vcpus"]):
            line = replace(line, value=vcpus, where=f"{line.value} in {line.where}; it uses one for each of its CPUs")
        self._lines.append(line)
        if not line.off and (why := self._trial.why_not(self.text())) is not None:
            self._lines[-1] = replace(line, off=why)

    def take_point(self, point: Line) -> None:
        """Add a point of the axis."""
        self._points.append(point)
        if (why := self._trial.why_not(self.text())) is not None:
            self._points[-1] = replace(point, off=why)

    def keys(self) -> dict[str, Any]:
        """The guest's keys that are none of the comments."""
        return {line.key: line.value for line in self._lines if not line.off}

    def text(self) -> str:
        """All of it."""
        in_order = sorted(self._lines, key=lambda line: GUEST_ATTRIBUTES.index(line.key))
        of_guest = [line.text("    ") for line in in_order]
        work, more = self._work, self._work.axes(self.keys())
        axes = {SETTING: self._points, **more}
        rows = [*more, SETTING] if more else SETTING
        sides: dict[str, Any] = {"rows": rows, "columns": [WORKLOADS, METRICS], "metrics": [*work.metrics]}
        table = {**sides, "relative": "percent", "baseline": {SETTING: AS_IT_IS}}
        name = re.sub(r"[^a-z0-9]+", "-", f"like-{self._name.lower()}")[:_LONGEST_NAME].strip("-")
        lines = [
            *(f"# {_comment(words)}" for words in self._heading),
            *written_text({"name": name, "summary": visible_line(work.summary)}).splitlines(),
            "guests:",
            f"  {VM}:",
            *of_guest,
            "workloads:",
            *(f"  {name}: {flow_text(keys)}" for name, keys in work.workloads(self.keys()).items()),
            "axes:",
        ]
        for axis, points in axes.items():
            lines += [f"  {axis}:", "    points:", *(point.text("      ") for point in points)]
        lines += [
            f"repeats: {work.repeats}",
            *(["allow: {unsafe_cache: true}"] if self._is_unsafe() else []),
            f"table: {flow_text(table)}",
            f"sizes: {flow_text({'smoke': {**work.smoke, 'repeats': 1}})}",
            *written_text(work.more).splitlines(),
        ]
        return "\n".join([*lines, ""])

    def _is_unsafe(self) -> bool:
        return any(self.keys().get(key) == "unsafe" for key in ("cache", "data_cache"))


def _comment(words: str) -> str:
    return cut(visible_line(" ".join(words.split())), _LONGEST_COMMENT)


def most_file_bytes(keys: Keys) -> int:
    """How large a file on the data disk of a guest with these keys is: a quarter of it, at most 1 GiB."""
    size = parse_bytes(keys.get("data", "64 MiB"))
    return min(_MOST_FILE, max(2**24, size // 4 >> 20 << 20))


def _blocks(keys: Keys) -> dict[str, Any]:
    """fio on the data disk."""
    return {
        "kind": "fio",
        "on": VM,
        "rw": "randrw",
        "read_percent": 70,
        "block": "4 KiB",
        "size": exact_bytes(most_file_bytes(keys)),
        "depth": 8,
        "time": "10 s",
    }


def _heading(
    guest: FoundGuest, root: FoundDisk, data: FoundDisk, others: list[FoundDisk], trial: Trial
) -> Iterator[str]:
    yield f"A guest like {guest.name}: {guest.origin}. The comment behind a line says where it was read."
    if data is root:
        which = "one of its disks" if others else "its only disk"
        yield f"{root.target} is {which}. The data disk is like it: the lab's first is always virtio and qcow2."
    yield "`vmlab plan FILE` says how long it takes; `vmlab tune FILE` measures settings together."
    lacks = [*guest.found.lacks, *root.found.lacks, *([] if data is root else data.found.lacks)]
    lacks += _of_root(root) if data is not root else ()
    lacks += [f"{_named(disk)}: {_why_not_tested(disk) or _TWO_DISKS}" for disk in others]
    if trial.emulates and guest.is_emulated is False:
        lacks.insert(0, "KVM: this host emulates its guests (TCG)")
    if not trial.emulates and guest.is_emulated:
        lacks.insert(0, "emulation (TCG): guests of this host run on KVM")
    if lacks:
        yield "What the lab does not copy:"
    yield from (f"- {words}" for words in lacks)


def _why_not_tested(disk: FoundDisk) -> str:
    """Why a disk is not the one to test while there is another that is written; empty for a disk like others."""
    size = disk.found.value("size")
    if _SEED.fullmatch(disk.file) and (size is None or size <= _MOST_SEED):
        return "by its name it is for the guest's first boot; another disk is tested"
    if size is not None and size < _LEAST_DATA:
        return f"it has {exact_bytes(size)}, and the lab's data disk {exact_bytes(_LEAST_DATA)} at least"
    return ""


def _named(disk: FoundDisk) -> str:
    return f"{disk.target} ({disk.file})" + ("" if disk.is_written else ", which is read-only")


def _of_root(root: FoundDisk) -> Iterator[str]:
    """What the disk that it boots from has, and only the data disk has in the lab."""
    keys = [key for key in _OF_DATA if key != "queues" or root.found.value("bus") == "scsi"]
    said = [root.found.said[key] for key in keys if key in root.found.said]
    if has := [f"{one.key} {flow_text(one.value)}" for one in said if _OF_FIRST.get(one.key) != one.value]:
        yield f"{root.target}: {', '.join(has)}: the lab has these for the data disk alone"


def _size(guest: FoundGuest, root: FoundDisk, trial: Trial) -> Iterator[Line]:
    """What every guest has, the memory in the second place."""
    found = guest.found.said
    vcpus = found.get("vcpus") or Said("vcpus", 1, "nothing tells how many; 1")
    many = f"{vcpus.value} in {vcpus.where}; at most {MOST_VCPUS} here"
    yield Line("vcpus", min(vcpus.value, MOST_VCPUS), vcpus.where if vcpus.value <= MOST_VCPUS else many)
    memory = found.get("memory") or Said("memory", exact_bytes(_USUAL_MEMORY), "nothing tells how much; 1 GiB")
    small = parse_bytes(memory.value) < _LEAST_MEMORY
    where = f"{memory.value} in {memory.where}; at least 64 MiB here" if small else memory.where
    yield Line("memory", exact_bytes(_LEAST_MEMORY) if small else memory.value, where)
    yield _disk_size("disk", root, max(_LEAST_DISK, trial.image_bytes), 1)


def _data_size(root: FoundDisk, data: FoundDisk) -> Line:
    line = _disk_size("data", data, _LEAST_DATA, 4096)
    return replace(line, where=f"as {data.target}") if data is root else line


def _disk_size(key: str, disk: FoundDisk, least: int, unit: int) -> Line:
    said = disk.found.said.get("size")
    if said is None:
        return Line(key, exact_bytes(_USUAL_DISK), f"{disk.target}: nothing tells its size; 8 GiB")
    size = min(_MOST_DISK, max(least, -(-said.value // unit) * unit))
    is_other = abs(size - said.value) >= unit
    words = f"{exact_bytes(said.value)} in {said.where}; from {exact_bytes(least)} to {exact_bytes(_MOST_DISK)} here"
    return Line(key, exact_bytes(size), f"{disk.target}: {words if is_other else said.where}")


def _of_guest(guest: FoundGuest) -> Iterator[Line]:
    for said in guest.found.said.values():
        if said.key not in ("vcpus", "memory") and not said.key.startswith(_LIBVIRT):
            yield Line(said.key, said.value, said.where)


def _of_disks(root: FoundDisk, data: FoundDisk) -> Iterator[Line]:
    for key, name in _OF_DATA.items():
        if (said := data.found.said.get(key)) is not None:
            yield Line(name, said.value, said.where)
    both = data is not root
    threads = [disk.found.value("iothread") for disk in (root, data)]
    shared = both and threads[0] is not None and threads[0] == threads[1]

    def has(disk: FoundDisk, key: str) -> Said:
        said = disk.found.said.get(key) or Said(key, _FOR_ALL[key], f"{disk.target} says nothing of it")
        if key == "iothread":
            return replace(said, value=_SHARED if shared else said.value not in (None, False))
        return said

    for key, usual in _FOR_ALL.items():
        of_root, of_data = has(root, key), has(data, key)
        same = of_root.value == of_data.value
        if both and of_data.value is None and of_root.value is not None:
            yield Line(key, of_root.value, of_root.where, off=f"it would limit {data.target}, too, which has no limit")
            continue
        # What the data disk has of its own comes first: without it the key for all disks may exclude others of it.
        if both and not same:
            yield Line(f"data_{key}", of_data.value, of_data.where)
        if of_root.value != usual or key in root.found.said:
            where = of_root.where if not both or not same else f"{of_root.where}; {of_data.where}"
            yield Line(key, of_root.value, where)
    if (queues := root.found.said.get("queues")) is not None and root.found.value("bus") == "virtio":
        yield Line("queues", queues.value, queues.where)


def _settings(guest: FoundGuest, root: FoundDisk, data: FoundDisk) -> Iterator[Line]:
    """The key ``libvirt``; of the disks' drivers a SCSI disk's has none of these attributes."""
    own = [said for said in guest.found.said.values() if said.key.startswith(_LIBVIRT)]
    found = {said.key.removeprefix(_LIBVIRT): said.value for said in own}
    where = list(dict.fromkeys(said.where for said in own))
    for place, disk in (("disk", root), ("data", data)):
        if disk.found.value("bus") == "virtio":
            settings = [said for said in disk.found.said.values() if said.key.startswith(OF_DRIVER)]
            found |= {f"{place}/{said.key}": said.value for said in settings}
            where += [said.where for said in settings if said.where not in where]
    if found:
        yield Line("libvirt", found, "; ".join(where))


def _points(keys: dict[str, Any], target: str) -> Iterator[Line]:
    """One change each of what the data disk has."""

    def has(key: str) -> Any:
        return keys.get(f"data_{key}", keys.get(key, _FOR_ALL[key]))

    def point(name: str, where: str, **values: Any) -> Line:
        return Line(name, {f"guests.{VM}.data_{key}": value for key, value in values.items()}, where)

    cache, io = has("cache"), has("io")
    for mode in SWITCHABLE:
        if mode != cache:
            # Linux AIO needs O_DIRECT.
            more = {"io": "threads"} if io == "native" and not CACHE_FLAGS[mode].direct else {}
            yield point(f"cache-{mode}", f"{target}: cache={mode}", cache=mode, **more)
    direct = CACHE_FLAGS[cache].direct
    for other in ("threads", "native", "io_uring"):
        if other != io and (direct or other != "native"):
            yield point(f"io-{other}", f"{target}: io={other}", io=other)
    thread = has("iothread")
    words = "without an iothread" if thread else "an iothread of its own"
    yield point("iothread-off" if thread else "iothread-on", f"{target}: {words}", iothread=not thread)
    queues, vcpus = keys.get("data_queues", 1), keys["vcpus"]
    if queues > 1:
        yield point("queues-1", f"{target}: queues=1", queues=1)
    elif vcpus > 1:
        yield point(f"queues-{min(vcpus, 4)}", f"{target}: queues={min(vcpus, 4)}", queues=min(vcpus, 4))
    bus = "virtio" if keys.get("data_bus") == "scsi" else "scsi"
    if not any(path.startswith("data/") for path in keys.get("libvirt", {})):
        # Those are attributes of a virtio disk's driver.
        yield point(f"bus-{bus}", f"{target}: bus={bus}", bus=bus)
    if has("detect_zeroes") != "off":
        yield point("detect-zeroes-off", f"{target}: detect_zeroes=off", detect_zeroes="off")
