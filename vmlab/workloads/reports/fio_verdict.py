"""Whether fio did what it was asked: by its own report, by the files, and by what the kernel saw of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.workloads.programs import Account
from vmlab.workloads.reports.fio_report import Direction, FioReport
from vmlab.workloads.verification import demand_equal

_REACHED = 0.99
"""fio ends between two of its own readings of the clock."""
_SLACK, _GRAIN = 1.02, 0.02
"""Blocks that are under way at the end are waited for; as a factor and in seconds."""
_LEAST_SECONDS = 0.1
"""fio prints its times in whole milliseconds."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What fio was asked for, in its own `options` too. `bytes` is of all jobs together, and counts where `time`, in
    seconds, is 0."""

    options: Mapping[str, str]
    block: int
    jobs: int
    time: float
    bytes: int
    direct: bool
    verify: bool
    reads: bool
    writes: bool


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


def demand_work(report: FioReport, asked: Asked) -> None:
    """Raises WorkloadError unless fio met no error and moved as much, for as long, as it was asked."""
    if report.error:
        raise WorkloadError(f"fio ended with error {report.error}")
    for option, value in asked.options.items():
        if report.options.get(option) != value:
            raise WorkloadError(f"fio ran with {option}={report.options.get(option)}, not with {value}")
    used = [(name, one) for name, one, wanted in _directions(report, asked) if wanted]
    for name, one in used:
        demand_equal(f"short {name}s of fio", one.short, 0)
        demand_equal(f"dropped {name}s of fio", one.dropped, 0)
        demand_equal(f"bytes of fio's {name}s, which are {one.blocks} blocks", one.bytes, one.blocks * asked.block)
        if one.blocks == 0:
            raise WorkloadError(f"fio did no {name} at all; give it more time or bytes")
    seconds = max(one.seconds for _, one in used)
    if asked.time and seconds < _REACHED * asked.time:
        raise WorkloadError(f"fio ran for {seconds:.3f} s, but {asked.time:g} s were asked for")
    if not asked.time:
        demand_equal("bytes that fio moved", sum(one.bytes for _, one in used), asked.bytes)
    if seconds < _LEAST_SECONDS:
        raise WorkloadError(f"fio took {seconds:.3f} s, too quick to be measured; give it more time or bytes")
    _demand_little(used, seconds, asked)
    if asked.verify and not asked.reads:
        demand_equal("bytes that fio read again to verify them", report.read.bytes, report.write.bytes)


def _demand_little(used: Sequence[tuple[str, Direction]], seconds: float, asked: Asked) -> None:
    """Raises WorkloadError where blocks took longer together than fio had places for them (Little's law)."""
    places = asked.jobs * int(asked.options["iodepth"])
    together = sum(one.blocks * one.latency_mean for _, one in used)
    if together > places * (seconds * _SLACK + _GRAIN):
        raise WorkloadError(
            f"fio's blocks took {together:.3f} s together, more than {places} at a time have in its {seconds:.3f} s"
        )


def _directions(report: FioReport, asked: Asked) -> tuple[tuple[str, Direction, bool], ...]:
    return (("read", report.read, asked.reads), ("write", report.write, asked.writes))


def demand_access(account: Account, report: FioReport, asked: Asked) -> None:
    """Raises WorkloadError unless the kernel saw fio open its files as asked, and with O_DIRECT move as much."""
    if len(account.direct) < asked.jobs:
        raise WorkloadError(
            f"fio ended before {asked.jobs - len(account.direct)} of its {asked.jobs} open files could be looked at; "
            "give it more time or bytes"
        )
    for path, direct in account.direct.items():
        if direct != asked.direct:
            how = "with" if direct else "without"
            raise WorkloadError(f"fio had {path} open {how} O_DIRECT, but direct is {str(asked.direct).lower()}")
    if asked.direct:
        for name, moved, counted in (
            ("read from", report.read.bytes, account.read),
            ("written to", report.write.bytes, account.written),
        ):
            if counted < moved:
                raise WorkloadError(f"fio claims {moved} bytes {name} storage; the kernel counted {counted}")
