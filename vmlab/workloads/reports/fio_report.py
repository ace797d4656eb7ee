"""The JSON that fio 3 prints, as numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from vmlab.model.errors import WorkloadError

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Direction:
    """What fio counted for reads, or for writes: blocks and bytes exactly, times in seconds.

    `seconds` runs from the first to the last block, an ``end_fsync`` included, and is that of the slowest job.
    `percentiles` of the latency are those of fio's buckets, which are at most 1.6 % wide; it is empty without a block.
    """

    blocks: int
    bytes: int
    seconds: float
    short: int
    dropped: int
    latency_mean: float
    percentiles: dict[int, float]


@dataclass(frozen=True, slots=True)
class FioReport:
    """All jobs together. `error` is fio's errno, `options` what fio understood of its command line."""

    error: int
    options: dict[str, str]
    read: Direction
    write: Direction


def parse_fio(text: str) -> FioReport:
    """Read the output of ``--output-format=json --group_reporting --lat_percentiles=1``. Raises WorkloadError.

    fio may print remarks before it and after it.
    """
    try:
        start = 0 if text.startswith("{\n") else text.index("\n{\n") + 1
        document, _ = json.JSONDecoder().raw_decode(text, start)
        jobs = document["jobs"]
        if len(jobs) != 1:
            raise WorkloadError(f"fio reported {len(jobs)} groups of jobs, not one")
        job = jobs[0]
        options = {**document.get("global options", {}), **job["job options"]}
        return FioReport(
            error=int(job["error"]),
            options={str(name): str(value) for name, value in options.items()},
            read=_direction(job["read"]),
            write=_direction(job["write"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        lines = text.strip().splitlines()
        raise WorkloadError(f"fio's JSON cannot be read; it begins with {lines[0][:200] if lines else ''!r}") from error


def _direction(said: dict[str, Any]) -> Direction:
    percentiles = said["lat_ns"].get("percentile", {})
    blocks = int(said["total_ios"])
    return Direction(
        blocks=blocks,
        bytes=int(said["io_bytes"]),
        seconds=int(said["runtime"]) / 1000,
        short=int(said["short_ios"]),
        dropped=int(said["drop_ios"]),
        latency_mean=float(said["lat_ns"]["mean"]) / 1e9,
        percentiles={one: float(percentiles[f"{one:.6f}"]) / 1e9 for one in PERCENTILES} if blocks else {},
    )
