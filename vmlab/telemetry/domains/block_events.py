"""What the kernel's trace says of requests to block devices, counted for each disk by its place on its device.

The lines are those of a ``trace_pipe`` (include/trace/events/block.h; Documentation/trace/ftrace.rst), with the clock
``mono``:

    qemu-71 [001] d..1.  12.345678: block_bio_queue: 8,1 WS 4096 + 8 [qemu]
    qemu-71 [001] ..s1.  12.345999: block_rq_complete: 8,0 WS () 4096 + 8 none,0,0 [0]

Requests to a disk end with ``block_rq_complete``, in which several may be merged, those to a device above others, such
as a logical volume, with ``block_bio_complete``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SECTOR = 512
EVENTS = ("block_bio_queue", "block_bio_complete", "block_rq_complete")
_EVENT = re.compile(
    rb"\s(\d+\.\d+): block_(bio_queue|bio_complete|rq_complete): "
    rb"(\d+),(\d+) F?([RW])[A-Z]* (?:\([^)]*\) )?(\d+) \+ (\d+) ",
    re.ASCII,
)
_LOST = re.compile(rb"^CPU:\d+ \[LOST ", re.ASCII)
_STREAMS = 16
"""Ends of requests that are remembered for each direction, as VMware's vscsiStats has it: so many sequences may be
under way at once. On a small disk each more of them makes random requests look sequential.
"""
_MOST_UNDER_WAY, _LONGEST = 1024, 60.0
"""Beyond so many requests without an end, those that began so many seconds ago are forgotten: their end was missed."""


class Extent(NamedTuple):
    """Bytes of a disk that lie together on its device: place on the device, place in the disk, length."""

    physical: int
    logical: int
    length: int


class Placed(NamedTuple):
    """A disk by its name, and where it lies on a device. `devices` are the numbers (major, minor) that an event may
    have for it: a partition's and, last, that of its whole disk, on which the kernel counts the sectors.
    """

    name: str
    devices: tuple[tuple[int, int], ...]
    extents: tuple[Extent, ...]


@dataclass(slots=True)
class WayCounts:
    """Reads, or writes, of a disk since the start: their number, how many began where an earlier one had ended, bytes,
    and the seconds that they took together.
    """

    requests: int = 0
    sequential: int = 0
    moved: int = 0
    waited: float = 0.0

    def values(self) -> tuple[float, ...]:
        """All of them."""
        return (self.requests, self.sequential, self.moved, self.waited)


@dataclass(slots=True)
class _Way:
    counts: WayCounts = field(default_factory=WayCounts)
    ends: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Where the last requests ended in the disk, the newest last."""


_Device = tuple[int, int]


class BlockEvents:
    """Counts requests by disk. `lost` grows with each part of the trace that the kernel dropped."""

    def __init__(self) -> None:
        self.lost = 0
        self._ways: dict[tuple[str, str], _Way] = {}
        self._places: dict[_Device, list[tuple[int, int, int, str]]] = {}
        self._whole: dict[_Device, _Device] = {}
        self._under_way: dict[tuple[_Device, str], dict[int, tuple[float, _Way]]] = {}

    def place(self, disks: Iterable[Placed]) -> None:
        """Where the disks are from now on."""
        places: dict[_Device, list[tuple[int, int, int, str]]] = {}
        self._whole = {}
        for disk in disks:
            own = [(one.physical, one.physical + one.length, one.logical, disk.name) for one in disk.extents]
            for device in disk.devices:
                places.setdefault(device, []).extend(own)
                self._whole[device] = disk.devices[-1]
        self._places = {device: sorted(found) for device, found in places.items()}

    def counts(self) -> Mapping[tuple[str, str], WayCounts]:
        """By disk and ``R`` or ``W``."""
        return {key: way.counts for key, way in self._ways.items()}

    def feed(self, lines: Iterable[bytes]) -> None:
        """Count whole lines; those of other events and of other places say nothing."""
        for line in lines:
            if (found := _EVENT.search(line)) is not None:
                at, what, major, minor, way, sector, length = found.groups()
                device = self._whole.get((int(major), int(minor)))
                if device is None:
                    continue
                own = self._under_way.setdefault((device, way.decode()), {})
                if what == b"bio_queue":
                    self._begin(own, float(at), device, way.decode(), int(sector), int(length))
                else:
                    self._end(own, float(at), int(sector), int(length))
            elif _LOST.match(line):
                self.lost += 1
                self._under_way.clear()
                for one in self._ways.values():
                    one.ends.clear()

    def _begin(
        self, under_way: dict[int, tuple[float, _Way]], at: float, device: _Device, way: str, sector: int, length: int
    ) -> None:
        found = self._found(device, sector * SECTOR)
        if found is None or not length:
            return
        name, logical = found
        own = self._ways.setdefault((name, way), _Way())
        own.counts.requests += 1
        own.counts.moved += length * SECTOR
        if logical in own.ends:
            own.counts.sequential += 1
            del own.ends[logical]
        own.ends[logical + length * SECTOR] = None
        if len(own.ends) > _STREAMS:
            own.ends.popitem(last=False)
        under_way[sector + length] = at, own
        if len(under_way) > _MOST_UNDER_WAY:
            for end in [end for end, (since, _) in under_way.items() if at - since > _LONGEST]:
                del under_way[end]

    def _end(self, under_way: dict[int, tuple[float, _Way]], at: float, sector: int, length: int) -> None:
        """All that end within these sectors; an event without a length is at the end itself."""
        last = sector + length
        first = sector if length else last - 1
        for end in [last] if last - first == 1 else [end for end in under_way if first < end <= last]:
            if (begun := under_way.pop(end, None)) is not None:
                begun[1].counts.waited += max(0.0, at - begun[0])

    def _found(self, device: _Device, byte: int) -> tuple[str, int] | None:
        """The disk that has a byte of a device, and the byte's place in it."""
        places = self._places.get(device)
        if not places:
            return None
        place = bisect_right(places, (byte, float("inf"))) - 1
        if place < 0:
            return None
        begin, end, logical, name = places[place]
        return (name, logical + byte - begin) if byte < end else None
