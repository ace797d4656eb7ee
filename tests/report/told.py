"""Runs of each kind, told to a store, whose tables are kept as golden texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.store.stories import Story
from vmlab.model.run import AxisValue

BUSY = {
    "cpu_user_percent": 61.0,
    "cpu_system_percent": 12.0,
    "cpu_iowait_percent": 20.5,
    "disk_reads_per_second": 10.0,
    "disk_writes_per_second": 90.0,
    "disk_await_ms": 12.5,
    "disk_util_percent": 97.0,
    "disk_read_bytes_per_second": 1e6,
    "disk_write_bytes_per_second": 5.5e6,
    "memory_used_bytes": 4e9,
    "memory_cached_bytes": 2e9,
    "ksm_saved_bytes": 0.0,
}
TILE = {"filecopy": 31.9, "database": 12.25, "web": 9.125, "mail": 118.5}
BY_CACHE = {"columns": "cache", "rows": "workloads", "baseline": "none"}


def _tile(path: Path) -> Path:
    story = Story(path).begin({"tiles": [1], "cache": ["none", "writeback"]}, BY_CACHE)
    for cache, faster in (("none", 1.0), ("writeback", 0.4)):
        story.start_cell({"tiles": 1, "cache": cache})
        story.execute(120 * faster, [{**BUSY, "disk_await_ms": 12.5 / faster}] * 5)
        for workload, seconds in TILE.items():
            story.measure(workload, seconds * faster)
        story.end_cell(wall=120 * faster)
    return story.end()


def _two_tiles(path: Path) -> Path:
    story = Story(path).begin({"tiles": [1, 2], "cache": ["none", "writeback"]}, BY_CACHE, accelerator="kvm", cells=4)
    for tiles in (1, 2):
        for cache, faster in (("none", 1.0), ("writeback", 0.4)):
            story.start_cell({"tiles": tiles, "cache": cache}, guests=4 * tiles)
            story.prove(o_direct=cache == "none", expected=cache)
            story.execute(120 * faster, [BUSY] * 3)
            for tile in range(1, tiles + 1):
                for workload, seconds in TILE.items():
                    story.measure(workload, seconds * faster * (1 + 0.1 * tile), tile=tile)
            story.end_cell(wall=130 * faster * tiles)
    return story.end()


def _doubtful(path: Path) -> Path:
    """Three repeats: none is measured well, writeback once invalid, writethrough always failed, unsafe not at all."""
    modes = ["none", "writeback", "writethrough", "directsync", "unsafe"]
    story = Story(path).begin({"cache": modes}, BY_CACHE, cells=15)
    for repeat in (1, 2, 3):
        story.cell({"cache": "none"}, {"web": 9.0 + repeat, "mail": 100.0 + repeat}, 101.0 + repeat, repeat)
        story.start_cell({"cache": "writeback"}, repeat)
        story.measure("web", 4.0 + 0.1 * repeat)
        story.measure("mail", 80.0)
        late = repeat == 2
        reasons = ["clients started 700 ms apart; the limit is 500 ms"] if late else []
        story.end_cell("invalid" if late else "passed", reasons, wall=81.0)
        story.start_cell({"cache": "writethrough"}, repeat)
        story.measure("web", 4.0)
        story.fail("mail", "3 of 600 mails were not delivered")
        story.end_cell("failed", ["tile 1 mail: 3 of 600 mails were not delivered"])
        story.start_cell({"cache": "directsync"}, repeat)
        story.measure("web", 12.0)
        story.measure("mail", 140.0)
        story.end_cell("invalid", ["file-a: cache=directsync is not what QEMU has on /run/file-a.qcow2"], wall=141.0)
    story.note("memory is overcommitted: 9.0 GiB of guests on 8.0 GiB")
    return story.end("failed", 1, "6 cells did not pass")


def _aborted(path: Path) -> Path:
    story = Story(path).begin({"tiles": [1], "cache": ["none", "writeback"]}, BY_CACHE)
    story.cell({"tiles": 1, "cache": "none"}, TILE, 120.0)
    story.start_cell({"tiles": 1, "cache": "writeback"})
    story.measure("web", 3.65)
    return story.close()


def _not_begun(path: Path) -> Path:
    return Story(path).begin({"tiles": [1], "cache": ["none", "writeback"]}, BY_CACHE).close()


def _cpu_overhead(path: Path) -> Path:
    table = {"columns": "place", "rows": "threads", "baseline": "host"}
    axes: dict[str, list[AxisValue]] = {"place": ["guest", "host"], "threads": [1, 2, 4, 6]}
    story = Story(path, "cpu-overhead", "20261121-143000-cpu-overhead-7f3a").begin(axes, table, cells=8)
    for place, slower in (("guest", 1.004), ("host", 1.0)):
        for threads in (1, 2, 4, 6):
            story.cell({"place": place, "threads": threads}, {"primes": 85.37 / min(threads, 4) * slower}, 90.0)
    return story.end()


def _cpu_priority(path: Path) -> Path:
    table = {"columns": "workloads", "rows": "threads", "baseline": None}
    story = Story(path, "cpu-priority", "20261121-143000-cpu-priority-7f3a").begin(
        {"threads": [1, 4, 6]}, table, cells=3
    )
    for threads, high, low, got in ((1, 85.92, 85.77, 0.5), (4, 32.96, 43.51, 0.66), (6, 32.37, 43.18, 0.67)):
        story.start_cell({"threads": threads}, guests=2)
        story.execute(low, [BUSY] * 3)
        story.measure("pr100", high)
        story.measure("pr50", low)
        for workload, configured, share in (("pr100", 2 / 3, got), ("pr50", 1 / 3, 1 - got)):
            story.measure(workload, configured, "cpu_share_configured", "1")
            story.measure(workload, share, "cpu_share_got", "1")
        story.end_cell(wall=low)
    return story.end()


def _points(path: Path) -> Path:
    """A host that runs once beside two cache modes, a guest that has both, and a point that is absent."""
    points = {"host": {"without": ["cache"]}, "guest": {}, "windows": {"absent": "needs an image of your own"}}
    axes: dict[str, list[AxisValue]] = {"setup": [*points], "cache": ["none", "writeback"]}
    story = Story(path).begin(
        axes,
        {"columns": "cache", "rows": "setup", "baseline": "none"},
        cells=3,
        said={"axes": {"setup": {"points": points}}},
    )
    force = {"ksm": "off", "thp": "madvise", "read_ahead_bytes": 131072}
    cells: list[tuple[dict[str, AxisValue], int, float]] = [
        ({"setup": "host"}, 1, 10.0),
        ({"setup": "guest", "cache": "none"}, 2, 14.0),
        ({"setup": "guest", "cache": "writeback"}, 2, 12.0),
    ]
    for place, tiles, seconds in cells:
        guests = 0 if place["setup"] == "host" else tiles
        story.start_cell(place, guests=guests, settings={"tiles": tiles, "host": force})
        story.execute(seconds, [BUSY])
        story.measure("job", seconds)
        story.end_cell(wall=seconds)
    return story.end()


TOLD: dict[str, Callable[[Path], Path]] = {
    "tile": _tile,
    "two-tiles": _two_tiles,
    "doubtful": _doubtful,
    "aborted": _aborted,
    "not-begun": _not_begun,
    "cpu-overhead": _cpu_overhead,
    "cpu-priority": _cpu_priority,
    "points": _points,
}
"""By the name of their golden text."""
