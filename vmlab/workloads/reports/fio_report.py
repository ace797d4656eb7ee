"""The JSON that fio 3 prints, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vmlab.model.errors import WorkloadError
from vmlab.workloads.verification import is_amount, only_document

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
    document, _ = only_document(text, "fio")
    try:
        jobs = document["jobs"]
        if len(jobs) != 1:
            raise WorkloadError(f"fio reported {len(jobs)} groups of jobs, not one")
        job = jobs[0]
        options = {**document.get("global options", {}), **job["job options"]}
        return FioReport(
            error=int(job["error"]),
            options={str(name): str(value) for name, value in options.items()},
            read=_direction(job["read"], "reads"),
            write=_direction(job["write"], "writes"),
        )
    except KeyError as missing:
        raise WorkloadError(f"fio's JSON cannot be read: it has no {missing.args[0]!r}") from missing
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise WorkloadError(f"fio's JSON cannot be read: {error}") from error


def _direction(said: dict[str, Any], word: str) -> Direction:
    def count(name: str) -> int:
        value = said[name]
        if not is_amount(value):
            raise WorkloadError(f"fio's JSON cannot be read: it has {value!r} as {name} of its {word}")
        return int(value)

    blocks = count("total_ios")
    return Direction(
        blocks=blocks,
        bytes=count("io_bytes"),
        seconds=count("runtime") / 1000,
        short=count("short_ios"),
        dropped=count("drop_ios"),
        latency_mean=_nanoseconds(said["lat_ns"], "mean", word),
        percentiles=_percentiles(said["lat_ns"], word) if blocks else {},
    )


def _percentiles(said: dict[str, Any], word: str) -> dict[int, float]:
    """Those of the whole latency, which fio leaves out by default."""
    known = said.get("percentile", {})
    lacking = [str(one) for one in PERCENTILES if f"{one:.6f}" not in known]
    if lacking:
        raise WorkloadError(
            f"fio's JSON has no percentiles {', '.join(lacking)} of the latency of its {word} (lat_ns); fio gives "
            "them with lat_percentiles=1, unless disable_lat, gtod_reduce or a percentile_list leaves them out"
        )
    return {one: _nanoseconds(known, f"{one:.6f}", word) for one in PERCENTILES}


def _nanoseconds(said: dict[str, Any], name: str, word: str) -> float:
    """A latency in seconds."""
    if not is_amount(said[name]):
        raise WorkloadError(f"fio's JSON cannot be read: it has {said[name]!r} as {name} of the latency of its {word}")
    return float(said[name]) / 1e9
