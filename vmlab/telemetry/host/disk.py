"""Each whole disk, from /proc/diskstats (Documentation/admin-guide/iostats.rst); the same as ``iostat -x``."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from vmlab.telemetry.host.counter import NAN, growths
from vmlab.telemetry.host.group import FigureSource, GroupMaker, Watched
from vmlab.telemetry.host.shown_figure import HostFigure
from vmlab.telemetry.place import disks_under
from vmlab.telemetry.source import KernelFile, Roots

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

FIGURES = (
    HostFigure("disk_reads_per_second", "disk reads", "reads/s", "Disk"),
    HostFigure("disk_writes_per_second", "disk writes", "writes/s", "Disk"),
    HostFigure(
        "disk_await_ms", "disk await", "await", "Disk", headline=True, of_stages=True, chart="Disk wait", tone="three"
    ),
    HostFigure("disk_read_await_ms", "disk read await", "rd await", "Disk"),
    HostFigure("disk_write_await_ms", "disk write await", "wr await", "Disk"),
    HostFigure(
        "disk_util_percent", "disk util", "util", "Disk", headline=True, of_stages=True, chart="Disk busy", tone="two"
    ),
    # The table of disks in `vmlab top` has eight columns in 80 characters, and no room for a ninth.
    HostFigure("disk_queue_depth", "disk queue", "queue", "Disk queue"),
    HostFigure("disk_read_bytes_per_second", "disk read", "read", "Disk", headline=True, chart="Disk rate", tone="one"),
    HostFigure(
        "disk_write_bytes_per_second", "disk write", "write", "Disk", headline=True, chart="Disk rate", tone="three"
    ),
)

_SECTOR = 512
# Columns 3… of a line: reads, merged, sectors, ms, writes, merged, sectors, ms, in flight, ms busy, weighted ms.
_IN_FLIGHT = 8
_COUNTERS = 11
_STILL = [0.0] * len(METRICS)
_UNKNOWN = [NAN] * len(METRICS)


class _Row(NamedTuple):
    """A line and its numbers; `disk` is None where the line is not of a whole disk."""

    line: bytes
    disk: bytes | None
    counters: list[int]
    active: bool


_NO_ROW = _Row(b"", None, [], False)


class Disks:
    """Rates, waits and utilisation of every disk that has done I/O; without partitions and idle loop devices.

    Names without an instance are for the disks that hold the lab's files: rates and queue are added up, a wait is that
    of the average request, and utilisation is that of the busiest disk.
    """

    title = "disks"

    def __init__(self, roots: Roots, lab_disks: Collection[str]) -> None:
        self._file = KernelFile(roots.proc / "diskstats")
        self._blocks = roots.sys / "block"
        self._lab_disks = [name.encode() for name in lab_disks]
        self._whole: dict[bytes, bool] = {}
        self._rows: list[_Row] = []
        self._shown: tuple[bytes, ...] | None = None
        self.names: tuple[str, ...] = ()

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        figures = self._figures(self._file.read(), length)
        shown = tuple(figures)
        if shown != self._shown:
            self._shown = shown
            self.names = (*METRICS, *(f"{metric}[{disk.decode()}]" for disk in shown for metric in METRICS))
        values = _together([figures[disk] for disk in self._lab_disks if disk in figures])
        for each in figures.values():
            values += each
        return values

    def _figures(self, text: bytes, length: float) -> dict[bytes, list[float]]:
        lines = text.split(b"\n")
        rows, known = self._rows, {row.disk: row for row in self._rows if row.disk is not None}
        if len(rows) != len(lines):
            rows = [_NO_ROW] * len(lines)
            self._whole.clear()
        figures: dict[bytes, list[float]] = {}
        self._rows = []
        for line, row in zip(lines, rows, strict=True):
            # Most lines have not changed since the last tick: partitions, loop devices, idle disks.
            now = row if line == row.line else self._row(line)
            self._rows.append(now)
            if now.disk is None or not now.active:
                continue
            before = known.get(now.disk)
            if before is None:
                figures[now.disk] = _UNKNOWN
            else:
                figures[now.disk] = _STILL if before is now else _rates(now.counters, before.counters, length)
        return figures

    def _row(self, line: bytes) -> _Row:
        fields = line.split(None, 3)
        if len(fields) < 4 or not self._is_whole(fields[2]):
            return _Row(line, None, [], False)
        counters = list(map(int, fields[3].split(None, _COUNTERS)[:_COUNTERS]))
        return _Row(line, fields[2], counters, any(counters))

    def _is_whole(self, disk: bytes) -> bool:
        whole = self._whole.get(disk)
        if whole is None:
            whole = self._whole[disk] = (self._blocks / disk.decode().replace("/", "!")).exists()
        return whole


def _rates(now: list[int], before: list[int], length: float) -> list[float]:
    in_flight = now[_IN_FLIGHT]
    grown = growths(now[:_IN_FLIGHT] + now[_IN_FLIGHT + 1 :], before[:_IN_FLIGHT] + before[_IN_FLIGHT + 1 :])
    if grown is None or in_flight < 0:
        return _UNKNOWN
    reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, busy_ms, weighted_ms = grown
    requests = reads + writes
    return [
        reads / length,
        writes / length,
        read_sectors * _SECTOR / length,
        write_sectors * _SECTOR / length,
        (read_ms + write_ms) / requests if requests else 0.0,
        read_ms / reads if reads else 0.0,
        write_ms / writes if writes else 0.0,
        min(100.0, busy_ms / (length * 10)),
        weighted_ms / (length * 1000),
    ]


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
        max(columns[7]),
        sum(columns[8]),
    ]


def _average(waits: tuple[float, ...], requests: list[float] | tuple[float, ...]) -> float:
    """The wait of the average request: each disk's wait is weighted by its number of requests."""
    asked = sum(requests)
    return sum(wait * count for wait, count in zip(waits, requests, strict=True)) / asked if asked else 0.0


def _disks(watched: Watched) -> Disks:
    return Disks(watched.roots, disks_under(watched.lab_folders, watched.roots, watched.notify))


SOURCE = FigureSource((GroupMaker(Disks.title, _disks),), FIGURES, place=4)
