"""The types of what events carry, with bounds: what a file says is checked against them as it is read."""

from __future__ import annotations

from typing import Annotated, Any

from vmlab.model.checked import Condition, Keys, Within
from vmlab.model.errors import ExitCode
from vmlab.model.quantities import LARGEST_BYTES
from vmlab.model.run import HIGHEST_SEED, MOST_NUMBERED, MOST_OF_EACH, MOST_REPEATS, MOST_TILES, WARM_UP, AxisValue

# A run never ends with this code; a command that shows the run does.
_CODES = frozenset(map(int, ExitCode)) - {ExitCode.READER_GONE}
_YEAR_10000 = 253402300800
TimeOfDay = Annotated[float, Condition(lambda value: 0 <= value < _YEAR_10000)]
"""Seconds since the epoch, up to the year 9999."""
Clock = Annotated[float, Within(-_YEAR_10000, _YEAR_10000)]
"""Seconds of a monotonic clock; of another host's it may be negative."""
Code = Annotated[int, Condition(lambda value: value in _CODES)]
Cell = Annotated[int, Within(0, MOST_NUMBERED)]
"""The number of a cell, or how many there are. What a scenario counts has the bounds that it has in a scenario."""
Repeat = Annotated[int, Within(WARM_UP, MOST_REPEATS)]
Seed = Annotated[int, Within(0, HIGHEST_SEED)]
Tile = Annotated[int, Within(0, MOST_TILES)]
"""The number of a tile, or how many there are."""
Guests = Annotated[int, Within(0, MOST_TILES * MOST_OF_EACH)]
Count = Annotated[int, Within(0, 2**53)]
"""What was counted while a run went on. No reader takes it for the length of anything."""
_Size = Annotated[int, Within(0, LARGEST_BYTES)]
_Disk = Annotated[
    dict[str, Any], Condition(lambda disk: not disk.get("emulated") or isinstance(disk.get("profile"), str))
]
_Ordered = Annotated[
    dict[str, Any],
    Keys({"cpus": Count | None, "memory_bytes": _Size | None}),
    Condition(lambda size: not size or size.keys() >= {"cpus", "memory_bytes"}),
]
HostBody = Annotated[dict[str, Any], Keys({"cpus": Count, "disk": _Disk | None, "ordered": _Ordered | None})]
"""The configuration of a host, as `lab.run.host_facts` finds it."""
_Named = dict[str, dict[str, Any]]
_Guests = dict[str, Annotated[dict[str, Any], Keys({"vcpus": Count | None})]]
Axes = Annotated[dict[str, AxisValue], Keys({"tiles": Tile})]
Settings = Annotated[
    dict[str, Any],
    Keys({"tiles": Tile, "guests": _Guests, "workloads": _Named, "host": dict[str, str | int | None]}),
]
"""The configuration of the cell, with the values that a named point sets; {} in records of older versions."""
_COMING = {"cell": Cell, "axes": Axes, "repeat": Repeat, "state": str, "planned": Axes}
CellToCome = Annotated[dict[str, Any], Keys(_COMING), Condition(lambda value: value.keys() >= _COMING.keys())]
"""A cell to come: its number, ``axes`` and ``repeat``, its ``state`` (planned, changed or skipped), and the axes as
``planned``.
"""
_Boot = Annotated[dict[str, Any], Keys({"units": list[str], "failed": list[str]})]
_DataDisk = Annotated[dict[str, Any], Keys({"bytes": int, "queues": int, "read_ahead_bytes": int})]
Seen = Annotated[dict[str, Any], Keys({"boot": _Boot, "data_disk": _DataDisk})]
_MOST_DECADES = 20


def _is_scale(scale: list[int]) -> bool:
    return len(scale) == 3 and min(scale) > 0 and scale[2] <= _MOST_DECADES * scale[1] <= 100 * _MOST_DECADES


LatencyScale = Annotated[list[int], Condition(_is_scale)]
"""The bins of a latency histogram: the first boundary in ns, boundaries in a decade, boundaries in all."""
_LatencyCounts = Annotated[
    list[int], Condition(lambda counts: 1 < len(counts) <= 100 * _MOST_DECADES + 2 and min(counts) >= 0)
]
"""The number of the first bin that has requests, and how many they are in it and in those that follow."""
_MOST_DISKS, _MOST_OPERATIONS = 64, 8
_Operations = Annotated[dict[str, _LatencyCounts], Condition(lambda counts: len(counts) <= _MOST_OPERATIONS)]
LatencyCounts = Annotated[dict[str, _Operations], Condition(lambda disks: len(disks) <= _MOST_DISKS)]
"""By disk and operation."""
