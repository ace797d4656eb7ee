"""Each whole disk, from /proc/diskstats (Documentation/admin-guide/iostats.rst); the same as ``iostat -x``."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Sequence
from functools import partial
from operator import sub
from typing import NamedTuple

from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, HostChart, HostFigure, Watched
from vmlab.telemetry.place import disks_under
from vmlab.telemetry.source import MOST_BYTES_PER_SECOND, NAN, KernelFile, Roots, growth_within, most_seconds

METRICS = (
    "disk_reads_per_second",
    "disk_writes_per_second",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "disk_await_ms",
    "disk_read_await_ms",
    "disk_write_await_ms",
    "disk_util_percent",
    "disk_queue_depth",
)

_TITLE = "Disk"
_BUSY_CHART = HostChart("Disk busy", panel=3, top=100.0, title=_TITLE, page="% of the time", track="disk busy %")
_WAIT_CHART = HostChart("Disk wait", panel=4, title=_TITLE, page="ms")
_RATE_CHART = HostChart("Disk rate", panel=5, stacked=False, title=_TITLE, page="MB/s", track="MB/s")
_shown = partial(HostFigure, group="Disk")
FIGURES = (
    _shown("disk_reads_per_second", "disk reads", "reads/s"),
    _shown("disk_writes_per_second", "disk writes", "writes/s"),
    _shown("disk_await_ms", "disk await", "await", headline=True, of_stages=True, chart=_WAIT_CHART, tone="three"),
    _shown("disk_read_await_ms", "disk read await", "rd await"),
    _shown("disk_write_await_ms", "disk write await", "wr await"),
    _shown("disk_util_percent", "disk util", "util", headline=True, of_stages=True, chart=_BUSY_CHART, tone="two"),
    # The table of disks in `vmlab top` has eight columns in 80 characters, and no room for a ninth.
    HostFigure("disk_queue_depth", "disk queue", "queue", ""),
    _shown("disk_read_bytes_per_second", "disk read", "read", headline=True, chart=_RATE_CHART),
    _shown("disk_write_bytes_per_second", "disk write", "write", headline=True, chart=_RATE_CHART, tone="three"),
)

_SECTOR = 512
# Columns 3… of a line: reads, merged, sectors, ms, writes, merged, sectors, ms, in flight, ms busy, weighted ms.
_IN_FLIGHT, _BUSY = 8, 9
_WAITS = (3, 7, 10)
_COUNTERS = 11
_MOST_SECTORS = MOST_BYTES_PER_SECOND / _SECTOR
_DEEPEST = 1 << 16
"""More requests than a queue holds."""
_STILL = [0.0] * len(METRICS)
_UNKNOWN = [NAN] * len(METRICS)
_UTIL = METRICS.index("disk_util_percent")
_NVME_PATH = re.compile(rb"(nvme\d+)c\d+(n\d+)")


class _Row(NamedTuple):
    """A line and its numbers; `disk` is None where the line is not of a whole disk.

    `number` is the device's, major and minor. `head` is the disk that this one is only a path to.
    """

    line: bytes
    disk: bytes | None
    number: list[bytes]
    head: bytes | None
    counters: list[int]
    active: bool


_NO_ROW = _Row(b"", None, [], None, [], False)


class Disks:
    """Rates, waits and utilisation of every disk that has done I/O; without partitions and idle loop devices.

    Names without an instance are for the disks that hold the lab's files: rates and queue are added up, a wait is that
    of the average request, and utilisation is that of the busiest disk.

    An NVMe namespace with several controllers is one disk, ``nvme0n1``, whatever the kernel counts on. Its paths
    (``nvme0c1n1``, ``nvme0c2n1``) are no disks. In each tick its figures are its own, or those of its paths together
    where it has counted nothing: multipath disks count since Linux 6.4, and only where ``queue/iostats`` is 1.
    """

    title = "disks"

    def __init__(self, roots: Roots, lab_disks: Collection[str]) -> None:
        self._file = KernelFile(roots.proc / "diskstats")
        self._blocks = roots.sys / "block"
        self._partitions = roots.sys / "class/block"
        self._lab_disks = [name.encode() for name in lab_disks]
        self._whole: dict[bytes, bool] = {}
        self._rows: list[_Row] = []
        self._shown: tuple[bytes, ...] | None = None
        self._began = math.inf
        self.names: tuple[str, ...] = ()

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        began = time.monotonic()
        text = self._file.read()
        # This thread may have waited for a CPU between the tick's begin and the reading.
        passed = max(length, time.monotonic() - self._began)
        self._began = began
        figures = self._figures(text, length, passed)
        shown = tuple(figures)
        if shown != self._shown:
            self._shown = shown
            self.names = (*METRICS, *(f"{metric}[{disk.decode()}]" for disk in shown for metric in METRICS))
        values = _together([figures[disk] for disk in self._lab_disks if disk in figures])
        for each in figures.values():
            values += each
        return values

    def _figures(self, text: bytes, length: float, passed: float) -> dict[bytes, list[float]]:
        lines = text.split(b"\n")
        rows, known = self._rows, {row.disk: row for row in self._rows if row.disk is not None}
        if len(rows) != len(lines):
            rows = [_NO_ROW] * len(lines)
            self._whole.clear()
        figures: dict[bytes, list[float]] = {}
        paths: list[_Row] = []
        self._rows = []
        for line, row in zip(lines, rows, strict=True):
            # Most lines have not changed since the last tick: partitions, loop devices, idle disks.
            now = row if line == row.line else self._row(line, text)
            self._rows.append(now)
            if now.head is not None:
                paths.append(now)
            if now.disk is None or not now.active:
                continue
            before = known.get(now.disk)
            if before is None or before.number != now.number:
                figures[now.disk] = _UNKNOWN
            else:
                figures[now.disk] = _STILL if before is now else _rates(now.counters, before.counters, length, passed)
        if paths:
            self._join(figures, paths)
        return figures

    def _join(self, figures: dict[bytes, list[float]], paths: list[_Row]) -> None:
        """Take the paths out of `figures`, and give them to their disks where these have counted nothing."""
        of_heads: dict[bytes, list[list[float]]] = {}
        for path in paths:
            own = figures.pop(path.disk or b"", None)
            if own is not None and path.head is not None:
                of_heads.setdefault(path.head, []).append(own)
        listed = {row.disk for row in self._rows}
        for head, of_paths in of_heads.items():
            has_counted = any(value > 0 for value in figures.get(head, ()))
            if not has_counted and (head in listed or (self._blocks / head.decode()).exists()):
                figures[head] = _together(of_paths)

    def _row(self, line: bytes, text: bytes) -> _Row:
        fields = line.split(None, 3)
        if len(fields) < 4:
            return _Row(line, None, [], None, [], False)
        path = _NVME_PATH.fullmatch(fields[2])
        if not path and not self._is_whole(fields[2], text):
            return _Row(line, None, [], None, [], False)
        try:
            counters = list(map(int, fields[3].split(None, _COUNTERS)[:_COUNTERS]))
        except ValueError:
            counters = []
        active = len(counters) < _COUNTERS or any(counters)
        return _Row(line, fields[2], fields[:2], path and path[1] + path[2], counters, active)

    def _is_whole(self, disk: bytes, text: bytes) -> bool:
        whole = self._whole.get(disk)
        if whole is None:
            name = disk.decode().replace("/", "!")
            whole = (self._blocks / name).exists()
            if not whole and not (self._partitions / name).exists():
                whole = not _is_partition(disk, text)
            self._whole[disk] = whole
        return whole


def _is_partition(disk: bytes, text: bytes) -> bool:
    """By its name, where sysfs does not show the device: a disk of `text` with a number, after a ``p`` if the disk's
    name ends in a digit (``disk_name`` in block/genhd.c).
    """
    stem = disk.rstrip(b"0123456789")
    whole = stem[:-1] if stem[-2:-1].isdigit() and stem.endswith(b"p") else stem
    return stem != disk and b" " + whole + b" " in text


def _rates(now: list[int], before: list[int], length: float, passed: float) -> list[float]:
    grown = _grown(now, before, passed)
    if grown is None:
        return _UNKNOWN
    reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, _, busy_ms, weighted_ms = grown
    requests = reads + writes
    return [
        reads / length,
        writes / length,
        read_sectors * _SECTOR / length,
        write_sectors * _SECTOR / length,
        (read_ms + write_ms) / requests if requests else 0.0,
        read_ms / reads if reads else 0.0,
        write_ms / writes if writes else 0.0,
        # Within what the counting of ticks may be off by; NaN stays NaN.
        100.0 if busy_ms > length * 1000 else busy_ms / (length * 10),
        weighted_ms / (length * 1000),
    ]


def _grown(now: list[int], before: list[int], passed: float) -> Sequence[float] | None:
    """How far each counter grew in `passed` seconds, 0 for requests in flight; None where the disk is another one.

    The milliseconds wrap at 32 bits, and all others on kernels of 32 bits. More time with requests under way than
    passed is another disk's, unless one was under way before: before Linux 5.18 such time was counted when a request
    ended. It is then unknown alone.
    """
    if len(now) != len(before) or len(now) < _COUNTERS or now[_IN_FLIGHT] < 0:
        return None
    grown: list[float] = list(map(sub, now, before))
    grown[_IN_FLIGHT] = 0
    most_waits, most_busy = _DEEPEST * (passed + 1) * 1000, most_seconds(passed) * 1000
    if min(grown) < 0 or max(grown) > most_waits:
        if sum(value < 0 for value in grown) > 1:
            return None
        most: list[float] = [_MOST_SECTORS * passed] * _COUNTERS
        for column in _WAITS:
            most[column] = most_waits
        most[_BUSY] = most_busy if grown[_BUSY] < 0 else math.inf
        grown = [
            value if value == 0 else growth_within(*each) for value, *each in zip(grown, now, before, most, strict=True)
        ]
        if any(value != value for value in grown):
            return None
    if grown[_BUSY] > most_busy:
        if not before[_IN_FLIGHT]:
            return None
        grown[_BUSY] = NAN
    return grown


def _together(disks: list[list[float]]) -> list[float]:
    if len(disks) == 1:
        return list(disks[0])
    if not disks:
        return list(_UNKNOWN)
    columns = list(zip(*disks, strict=True))
    reads, writes = columns[0], columns[1]
    requests = [r + w for r, w in zip(reads, writes, strict=True)]
    return [
        *(sum(column) for column in columns[:4]),
        _average(columns[4], requests),
        _average(columns[5], reads),
        _average(columns[6], writes),
        NAN if any(util != util for util in columns[_UTIL]) else max(columns[_UTIL]),
        sum(columns[8]),
    ]


def _average(waits: tuple[float, ...], requests: list[float] | tuple[float, ...]) -> float:
    """The wait of the average request: each disk's wait is weighted by its number of requests."""
    asked = sum(requests)
    return sum(wait * count for wait, count in zip(waits, requests, strict=True)) / asked if asked else 0.0


def _disks(watched: Watched) -> Disks:
    return Disks(watched.roots, disks_under(watched.lab_folders, watched.roots, watched.notify))


SOURCE = FigureSource((GroupMaker(Disks.title, _disks),), FIGURES, place=4)
