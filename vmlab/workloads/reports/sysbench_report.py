"""The report that sysbench 1.0 prints, as numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.workloads.verification import demand_one_report, labelled

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_RATED = rf"{_NUMBER}\s+\({_NUMBER} per sec\.\)"
_INTERVAL = re.compile(rf"\[ {_NUMBER}s \] thds: [0-9]+ (?:tps|eps): {_NUMBER} ")
_QUEUE = re.compile(r"\[ [0-9]+s \] queue length: ([0-9]+), concurrency: ([0-9]+)")
_MARKS = (r"^General statistics:", r"\bsysbench [0-9]+\.[0-9]+\.[0-9]+\S* \(using ")
"""What stands once in each report: its end, and the version at its beginning."""
_FEWEST_LINES = 10
_MEMORY_INTERVAL = re.compile(rf"\[ {_NUMBER}s \] {_NUMBER} MiB/sec")


@dataclass(frozen=True, slots=True)
class Report:
    """The part that every test prints. Latencies are in seconds, as is `total_time`."""

    total_time: float
    events: int
    latency_avg: float
    latency_p95: float
    latency_max: float


@dataclass(frozen=True, slots=True)
class DatabaseReport:
    """The part that tests of databases print besides; plain counts."""

    transactions: int
    queries: int
    ignored_errors: int
    reconnects: int


def parse_report(text: str) -> Report:
    """Read ``General statistics`` and ``Latency`` of the one report. Raises WorkloadError."""
    demand_one_report(text, *_MARKS, tool="sysbench")

    def field(label: str, pattern: str = _NUMBER) -> float:
        return float(labelled(text, label, pattern, "sysbench")[1])

    return Report(
        total_time=field("total time", _NUMBER + "s"),
        events=int(field("total number of events")),
        latency_avg=field("avg") / 1000,
        latency_p95=field("95th percentile") / 1000,
        latency_max=field("max") / 1000,
    )


def parse_database_report(text: str) -> DatabaseReport:
    """Read ``SQL statistics`` of the one report. Raises WorkloadError."""
    demand_one_report(text, *_MARKS, tool="sysbench")

    def count(label: str) -> int:
        return int(float(labelled(text, label, _RATED, "sysbench")[1]))

    return DatabaseReport(
        transactions=count("transactions"),
        queries=count("queries"),
        ignored_errors=count("ignored errors"),
        reconnects=count("reconnects"),
    )


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What the test of the memory prints besides, without its rounded rates; `block_kib` is rounded down."""

    operations: int
    operation: str
    scope: str
    block_kib: int
    threads: int


def parse_memory_report(text: str) -> MemoryReport:
    """Read ``Total operations`` and the options that sysbench repeats, of the one report. Raises WorkloadError."""
    demand_one_report(text, *_MARKS, tool="sysbench")
    return MemoryReport(
        operations=int(labelled(text, "Total operations", rf"([0-9]+) \( *{_NUMBER} per second\)", "sysbench")[1]),
        operation=labelled(text, "operation", "(read|write)", "sysbench")[1],
        scope=labelled(text, "scope", "(local|global)", "sysbench")[1],
        block_kib=int(labelled(text, "block size", "([0-9]+)KiB", "sysbench")[1]),
        threads=int(labelled(text, "Number of threads", "([0-9]+)", "sysbench")[1]),
    )


@dataclass(frozen=True, slots=True)
class Queue:
    """With ``--rate``, at the last interval: events that were begun by then, and events that were due and not begun."""

    begun: int
    waiting: int


def parse_queue(text: str) -> Queue:
    """Read the lines that ``--report-interval=1`` prints with ``--rate``. Raises WorkloadError where there is none."""
    done, queue = IntervalCount(2**62), None
    events = 0.0
    for line in text.split("\n"):
        events = done.feed(line) or events
        if match := _QUEUE.fullmatch(line.strip()):
            queue = Queue(round(events) + int(match[2]), int(match[1]))
    if queue is None:
        raise WorkloadError("sysbench printed no length of its queue, so nothing tells whether the pace was kept")
    return queue


def half_of(text: str, events: int) -> float | None:
    """Seconds until half of the events were done, by the lines that ``--report-interval=1`` prints.

    Between two lines the rate is taken to be even. None for fewer than ten lines before then, since each has a second.
    """
    count, before, lines = IntervalCount(2 * events), (0.0, 0.0), 0
    for line in text.split("\n"):
        if (done := count.feed(line)) is None:
            continue
        lines += 1
        if 2 * done >= events:
            share = (events / 2 - before[1]) / (done - before[1])
            return before[0] + share * (count.at - before[0]) if lines >= _FEWEST_LINES else None
        before = count.at, done
    return None


class IntervalCount:
    """Adds up the rates that ``--report-interval=1`` prints, of events or of MiB; the sum is about what was done so
    far.

    The total and what `feed` returns are events, or bytes; `at` is the second of the last line.
    """

    def __init__(self, total: int) -> None:
        self.total = float(total)
        self.at = 0.0
        self._done = 0.0

    def feed(self, line: str) -> float | None:
        """What was done so far, never more than the total; None for a line of another sort."""
        events, moved = _INTERVAL.match(line), _MEMORY_INTERVAL.match(line)
        match = events or moved
        if match is None:
            return None
        at = float(match[1])
        rate = float(match[2]) * (2**20 if moved else 1)
        self._done = min(self._done + rate * max(0.0, at - self.at), self.total)
        self.at = at
        return self._done
