"""A guest may print a line of any length, and what reads reports takes no more time for a letter of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads import query_log
from vmlab.workloads.kinds import bonnie, fio, memcpy
from vmlab.workloads.reports import ab_report, sysbench_report
from vmlab.workloads.suites import specjvm, unixbench
from vmlab.workloads.verification import OBJECT_OR_ARRAY, UNREADABLE, demand_one_report, labelled

LETTERS = 400_000
"""So many that a pattern whose time grows with their square takes minutes."""
_RUN = re.compile(r"[0-9]+|[ \t]+|[A-Za-z]+|[^\w\s]+")


def reports(marks: tuple[str, ...]) -> Callable[[str], object]:
    return lambda text: demand_one_report(text, *marks, tool="it")


def label(name: str, pattern: str) -> Callable[[str], object]:
    return lambda text: labelled(text, name, pattern, "it")


READERS: list[tuple[Callable[[str], object], str]] = [
    (unixbench._SCORE.fullmatch, "Execl Throughput                  1234.5 lps   (29.7 s, 2 samples)"),
    (unixbench._COPIES.fullmatch, "4 CPUs in system; running 1 parallel copy of tests"),
    (unixbench._INDEX.fullmatch, "System Benchmarks Index Score (Partial Only)        1234.5"),
    (specjvm._GROUP.fullmatch, "scimark.large        12.34"),
    (specjvm._COMPOSITE.fullmatch, "Noncompliant composite result: 12.34 SPECjvm2008 Base ops/m"),
    (specjvm._DETAIL.fullmatch, "scimark.fft.small    iteration 1    4    120000    12.00    6.00"),
    (specjvm._RESULT.search, "/a/results/SPECjvm2008.001/SPECjvm2008.001.txt"),
    (bonnie._TABLE.findall, "vmlab           512M:8k  100  99"),
    (fio._DONE.findall, "Jobs: 1 (f=1): [r(1)][12.5%][r=10MiB/s]"),
    (memcpy._LINE.fullmatch, "0\tMethod: MEMCPY\tElapsed: 0.12345\tMiB: 32.00000\tCopy: 300.123 MiB/s"),
    (memcpy._BLOCK.findall, "Using 262144 bytes as blocks for memcpy block copy test."),
    (sysbench_report._INTERVAL.match, "[ 5s ] thds: 1 eps: 123.45 lat (ms,95%): 1.00"),
    (sysbench_report._QUEUE.match, "[ 5s ] queue length: 12, concurrency: 3"),
    (sysbench_report._MEMORY_INTERVAL.match, "[ 5.0s ] 123.45 MiB/sec"),
    (reports(sysbench_report._MARKS), "sysbench 1.0.20 (using system LuaJIT 2.1.0)"),
    (label("transactions", sysbench_report._RATED), "transactions:    1234   (123.4 per sec.)"),
    (
        label("Total operations", rf"([0-9]+) \( *{ab_report._NUMBER} per second\)"),
        "Total operations: 12 (  3.4 per second)",
    ),
    (label("Time per request", ab_report._NUMBER + r" \[ms\] \(mean\)"), "Time per request: 12.34 [ms] (mean)"),
    (ab_report._COMPLETED.match, "Completed 100 requests"),
    (query_log._ENTRY.fullmatch, "260130 12:00:00\t     5 Query\tSELECT 1"),
    (OBJECT_OR_ARRAY.findall, "[ 1.5e3, 2 ]"),
]


def stretched(line: str) -> Iterator[str]:
    """The line with each of its parts in turn as a very long one, whole and broken off behind it."""
    for run in _RUN.finditer(line):
        long = line[: run.start()] + run[0][0] * LETTERS
        yield long + line[run.end() :]
        yield long + "\N{BULLET}"
        yield long + " \N{BULLET}"
        yield line[: run.start()] + f"{run[0][0]} " * (LETTERS // 2) + line[run.end() :]


@pytest.mark.parametrize(("read", "line"), READERS, ids=[line[:12] for _, line in READERS])
def test_no_pattern_takes_the_square_of_a_line(read: Callable[[str], object], line: str) -> None:
    assert read(line) is not None or "sysbench" in line
    for long in stretched(line):
        with suppress(WorkloadError, *UNREADABLE):
            read(long)
