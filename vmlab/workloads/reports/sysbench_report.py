"""The report that sysbench 1.0 prints, as numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.workloads.reports.closed_loop import demand_busy
from vmlab.workloads.verification import R, demand_equal, demand_one_report, labelled, read_labelled, said
from vmlab.workloads.workload_steps import Progress

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_RATED = rf"{_NUMBER}\s+\({_NUMBER} per sec\.\)"
_INTERVAL = re.compile(rf"\[ {_NUMBER}s \] thds: [0-9]+ (?:tps|eps): {_NUMBER} ")
_QUEUE = re.compile(r"\[ [0-9]+s \] queue length: ([0-9]+), concurrency: ([0-9]+)")
_MARKS = (r"^General statistics:", r"\bsysbench [0-9]++\.[0-9]++\.\S++ \(using ")
"""What stands once in each report: its end, and the version at its beginning."""
_IDLE = re.compile(r"^(?:Total operations|Target transaction rate):", re.MULTILINE)
"""Stands in reports of threads that are not always busy with events: those of the memory test may be shorter than what
sysbench does between two; with ``--rate`` threads wait for events, and events for threads."""
_FEWEST_LINES = 10
_SLACK = 1.01
_GRAIN = 0.005
"""What the clocks of single events may add up to beside that of the whole, as a factor and in seconds."""
_ROUNDED, _CLASS, _LAST_CLASS = 1e-5, 1.02, 98.0
"""Of latencies, printed with two digits of a millisecond, and of the percentile; seconds from which that says less."""
_MEMORY_INTERVAL = re.compile(rf"\[ {_NUMBER}s \] {_NUMBER} MiB/sec")


@dataclass(frozen=True, slots=True)
class Report:
    """``General statistics`` and ``Latency``, which every test prints. Latencies are in seconds, as is `total_time`;
    `latency_sum` is that of all events of all `threads`."""

    threads: int = said("Number of threads", _NUMBER)
    total_time: float = said("total time", _NUMBER + "s")
    events: int = said("total number of events", _NUMBER)
    latency_avg: float = said("avg", _NUMBER, divisor=1000)
    latency_p95: float = said("95th percentile", _NUMBER, divisor=1000)
    latency_max: float = said("max", _NUMBER, divisor=1000)
    latency_sum: float = said("sum", _NUMBER, divisor=1000)


@dataclass(frozen=True, slots=True)
class DatabaseReport:
    """``SQL statistics``, which tests of databases print besides; plain counts."""

    transactions: int = said("transactions", _RATED)
    queries: int = said("queries", _RATED)
    ignored_errors: int = said("ignored errors", _RATED)
    reconnects: int = said("reconnects", _RATED)
    reads: int = said("read")
    writes: int = said("write")
    other: int = said("other")


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What the test of the memory prints besides, without its rounded rates, and the options that sysbench repeats; KiB
    and MiB are rounded down."""

    operations: int = said("Total operations", rf"([0-9]+) \( *{_NUMBER} per second\)")
    operation: str = said("operation", "(read|write)")
    scope: str = said("scope", "(local|global)")
    block_kib: int = said("block size", "([0-9]+)KiB")
    total_mib: int = said("total size", "([0-9]+)MiB")


def parse_sysbench(kind: type[R], text: str) -> R:
    """One part of the one report. Raises WorkloadError."""
    demand_one_report(text, *_MARKS, tool="sysbench")
    found = read_labelled(kind, text, "sysbench")
    if isinstance(found, Report):
        _demand_latencies(found)
        if not _IDLE.search(text):
            demand_busy("sysbench's events", found.latency_sum, found.threads, found.total_time, found.latency_max)
    return found


def _demand_latencies(report: Report) -> None:
    """The latencies follow from each other: their mean and sum are of all events, 95 % of which took no longer than the
    percentile and none longer than the longest, which took no longer than the whole.

    The percentile is one of 1,024 classes up to 100 s, each 1.8 % wide (sb_histogram.c); the last one has all above.
    """
    longest = report.latency_max + _ROUNDED
    percentile = report.latency_p95 + _ROUNDED if report.latency_p95 < _LAST_CLASS else longest
    wrong = (
        abs(report.latency_avg * report.events - report.latency_sum) > _ROUNDED * (report.events + 1)
        or report.latency_avg > longest
        or report.latency_max > report.total_time * _SLACK + _GRAIN
        or report.latency_p95 > longest * _CLASS
        or report.latency_avg > (0.95 * percentile * _CLASS + 0.05 * longest)
    )
    if wrong:
        raise WorkloadError(
            f"the latencies of sysbench's {report.events} events contradict each other: average "
            f"{report.latency_avg:g} s, 95th percentile {report.latency_p95:g} s, longest {report.latency_max:g} s, "
            f"sum {report.latency_sum:g} s, in {report.total_time:g} s"
        )


def parse_prime_limit(text: str) -> int:
    """The number up to which the test of the processor looked for primes. Raises WorkloadError."""
    return int(labelled(text, "Prime numbers limit", "([0-9]+)", "sysbench")[1])


def parse_seed(text: str) -> int:
    """The seed that sysbench was given. Raises WorkloadError where it took the time, or says none."""
    pattern = r"(?m)^Initializing random number generator from seed \(([0-9]+)\)\.$"
    if (match := re.search(pattern, text)) is None:
        raise WorkloadError("sysbench printed no seed")
    return int(match[1])


def parse_target_rate(text: str) -> float:
    """The events that were due in a second. Raises WorkloadError where sysbench had no such rate."""
    return float(labelled(text, "Target transaction rate", "([0-9]+)/sec", "sysbench")[1])


def demand_threads(report: Report, threads: int) -> None:
    """Raises WorkloadError unless as many threads as were asked for had the time for what they did one by one."""
    demand_equal("threads of sysbench", report.threads, threads)
    if report.latency_sum > threads * report.total_time * _SLACK + _GRAIN:
        raise WorkloadError(
            f"sysbench's events took {report.latency_sum:.3f} s together, more than {threads} threads have in its "
            f"{report.total_time:.3f} s"
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

    def progress(self, line: str, unit: str) -> Progress | None:
        """How far a line shows the test to be."""
        done = self.feed(line)
        return None if done is None else Progress(done, self.total, unit)
