"""The JSON that fio 3 prints, as numbers; and whether fio did what it was asked: by that, by the files, and by what the
kernel saw of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vmlab.model.errors import WorkloadError
from vmlab.workloads.programs import Account
from vmlab.workloads.reports.closed_loop import demand_busy, mean_bounds
from vmlab.workloads.verification import demand_equal, is_amount, only, only_document

PERCENTILES = (50, 95, 99)
MIXES = ("rw", "randrw")
"""What fio calls orders of both reads and writes."""
_REACHED = 0.99
"""fio ends between two of its own readings of the clock."""
_SLACK, _GRAIN = 1.02, 0.02
"""Blocks that are under way at the end are waited for; as a factor and in seconds."""
_BUCKET, _LAST_BUCKET = 1.02, 17.0
"""How wide fio's buckets are, as a factor, and the seconds from which the last one has all (stat.h)."""
_BETWEEN = ("rate", "fdatasync", "verify")
"""Options with which jobs do something else between two blocks: they wait, flush the disk, or compute checksums."""
_LEAST_SECONDS = 0.1
"""fio prints its times in whole milliseconds."""
_OF_EACH_JOB = frozenset(
    (
        *("name", "directory", "filename_format", "thread", "group_reporting", "time_based", "randseed"),
        *("verify_fatal", "lat_percentiles", "clat_percentiles", "percentile_list"),
    )
)
"""The options that each job of the lab has, whatever it is asked for."""
_OVER_RATE = 1.05
"""By how much fio may be ahead of a rate, beside the blocks with which it begins."""
_RANDOM_ERRORS = 5
"""Standard errors of a number of blocks that come at random (Poisson) by which there may be more."""


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
    latency_max: float
    percentiles: dict[int, float]


@dataclass(frozen=True, slots=True)
class FioReport:
    """All jobs together. `error` is fio's errno, `options` what fio understood of its command line, `syncs` how many
    calls of fsync and fdatasync it counted.
    """

    error: int
    options: dict[str, str]
    read: Direction
    write: Direction
    syncs: int

    def used(self, rw: str) -> dict[str, Direction]:
        """What an order of blocks, as fio calls it, is made of: reads, writes, or both."""
        directions = {"read": self.read, "write": self.write}
        return directions if rw in MIXES else {name: one for name, one in directions.items() if rw.endswith(name)}


def parse_fio(text: str) -> FioReport:
    """Read the output of ``--output-format=json --group_reporting --lat_percentiles=1``. Raises WorkloadError.

    fio may print remarks before it and after it.
    """
    document, _ = only_document(text, "fio")
    try:
        job = only(document["jobs"], "fio reported", "groups of jobs")
        options = {**document.get("global options", {}), **job["job options"]}
        return FioReport(
            error=int(job["error"]),
            options={str(name): str(value) for name, value in options.items()},
            read=_direction(job["read"], "reads"),
            write=_direction(job["write"], "writes"),
            # The number of their latencies: in `total_ios` fio has calls of fsync alone.
            syncs=int(job.get("sync", {}).get("lat_ns", {}).get("N", 0)),
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
    direction = Direction(
        blocks=blocks,
        bytes=count("io_bytes"),
        seconds=count("runtime") / 1000,
        short=count("short_ios"),
        dropped=count("drop_ios"),
        latency_mean=_nanoseconds(said["lat_ns"], "mean", word),
        latency_max=_nanoseconds(said["lat_ns"], "max", word),
        percentiles=_percentiles(said["lat_ns"], word) if blocks else {},
    )
    if blocks:
        _demand_latencies(direction, word)
    return direction


def _demand_latencies(direction: Direction, word: str) -> None:
    """The mean lies where the percentiles and the longest latency say; those of the last bucket say less."""
    percentiles = {percent: value for percent, value in direction.percentiles.items() if value < _LAST_BUCKET}
    # A percentile is the middle of its bucket, which may be above the longest.
    percentiles[100] = direction.latency_max * _BUCKET
    least, most = mean_bounds(f"the latency of fio's {word}", percentiles)
    if not least / _BUCKET <= direction.latency_mean <= most * _BUCKET:
        raise WorkloadError(
            f"the latencies of fio's {word} contradict each other: the mean is {direction.latency_mean:g} s, which "
            f"must be {least:g} to {most:g} s by the percentiles and the longest"
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


def demand_layout(listed: str, size: int, jobs: int) -> None:
    """Raises WorkloadError where a file is missing, short, or has holes.

    `listed` has a line for each file: its size, its blocks, and the size of these blocks.
    """
    lines = [line.split() for line in listed.splitlines()]
    demand_equal("files laid out", len(lines), jobs)
    for length, blocks, unit in lines:
        demand_equal("bytes of a file that was laid out", int(length), size)
        if int(blocks) * int(unit) < size:
            raise WorkloadError(f"a file of {size} bytes has only {int(blocks) * int(unit)} on the disk: it has holes")


def demand_sizes(found: Mapping[str, int], size: int, jobs: int) -> None:
    """As `demand_layout`, of `found` bytes by a file's name: whether a file has holes cannot be seen by that."""
    demand_equal("files laid out", len(found), jobs)
    for length in found.values():
        demand_equal("bytes of a file that was laid out", length, size)


def demand_work(report: FioReport, asked: Mapping[str, str]) -> None:
    """Raises WorkloadError unless fio met no error and moved as much, for as long, as the options `asked`, and had no
    other ones.
    """
    if report.error:
        raise WorkloadError(f"fio ended with error {report.error}")
    for option, value in asked.items():
        if report.options.get(option) != value:
            raise WorkloadError(f"fio ran with {option}={report.options.get(option)}, not with {value}")
    for option, value in report.options.items():
        if option not in asked and option not in _OF_EACH_JOB:
            raise WorkloadError(f"fio ran with {option}={value}, which was not asked for")
    used, jobs, time = report.used(asked["rw"]), int(asked["numjobs"]), float(asked.get("runtime", 0))
    for name, one in used.items():
        demand_equal(f"short {name}s of fio", one.short, 0)
        demand_equal(f"dropped {name}s of fio", one.dropped, 0)
        demand_equal(f"bytes of fio's {name}s, which are {one.blocks} blocks", one.bytes, one.blocks * int(asked["bs"]))
        if one.blocks == 0:
            raise WorkloadError(f"fio did no {name} at all; give it more time or bytes")
    seconds = max(one.seconds for one in used.values())
    if time and seconds < _REACHED * time:
        raise WorkloadError(f"fio ran for {seconds:.3f} s, but {time:g} s were asked for")
    if not time:
        demand_equal("bytes that fio moved", sum(one.bytes for one in used.values()), jobs * int(asked["io_size"]))
    if seconds < _LEAST_SECONDS:
        raise WorkloadError(f"fio took {seconds:.3f} s, too quick to be measured; give it more time or bytes")
    # Little's law: blocks cannot take longer together than fio had places for them.
    places = jobs * int(asked["iodepth"])
    together = sum(one.blocks * one.latency_mean for one in used.values())
    if together > places * (seconds * _SLACK + _GRAIN):
        raise WorkloadError(
            f"fio's blocks took {together:.3f} s together, more than {places} at a time have in its {seconds:.3f} s"
        )
    if not any(name in asked for name in _BETWEEN) and (asked["direct"], asked["end_fsync"]) == ("1", "0"):
        # From the page cache blocks come faster than fio asks for them. Without a time a job may end before the others.
        clients = min((jobs if time else 1) * int(asked["iodepth"]), sum(one.blocks for one in used.values()))
        demand_busy("fio's blocks", together, clients, seconds, max(one.latency_max for one in used.values()))
    if "rate" in asked:
        most = jobs * int(asked["rate"])
        moved = sum(one.bytes for one in used.values())
        more = places + jobs
        if "rate_process" in asked:
            more += math.ceil(_RANDOM_ERRORS * math.sqrt(most * seconds / int(asked["bs"])))
        if moved > most * seconds * _OVER_RATE + more * int(asked["bs"]):
            raise WorkloadError(f"fio moved {moved / seconds:.0f} bytes a second, more than its rate of {most}")
    if "fdatasync" in asked:
        least = max(0, report.write.blocks // int(asked["fdatasync"]) - places - jobs)
        if report.syncs < least:
            raise WorkloadError(f"fio called fdatasync {report.syncs} times for {report.write.blocks} writes")
    if "verify" in asked and "read" not in used:
        demand_equal("bytes that fio read again to verify them", report.read.bytes, report.write.bytes)


def demand_access(account: Account, report: FioReport, jobs: int, direct: bool) -> None:
    """Raises WorkloadError unless the kernel saw fio open its files as asked, and with O_DIRECT move as much."""
    if len(account.direct) < jobs:
        raise WorkloadError(
            f"fio ended before {jobs - len(account.direct)} of its {jobs} open files could be looked at; "
            "give it more time or bytes"
        )
    for path, seen in account.direct.items():
        if seen != direct:
            how = "with" if seen else "without"
            raise WorkloadError(f"fio had {path} open {how} O_DIRECT, but direct is {str(direct).lower()}")
    if direct:
        for name, moved, counted in (
            ("read from", report.read.bytes, account.read),
            ("written to", report.write.bytes, account.written),
        ):
            if counted < moved:
                raise WorkloadError(f"fio claims {moved} bytes {name} storage; the kernel counted {counted}")
