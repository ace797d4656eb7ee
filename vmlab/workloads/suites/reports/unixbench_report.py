"""The report that UnixBench's ``Run`` writes: the score of each test, and the index where there is one.

The format is that of ``logResults``, ``logIndexCat`` and ``summarizeRun`` in ``UnixBench/Run`` 5.1.3 to 5.1.6 of the
public repository kdlucas/byte-unixbench; names, programs and numbers of passes are from its ``testParams``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.workloads.metrics import Unit
from vmlab.workloads.verification import demand_equal

_KIB = 1024.0


@dataclass(frozen=True, slots=True)
class Test:
    """A test of ``Run``: the name in reports, the unit there, and the metric with that unit's factor.

    `seconds` is what one pass takes; a `long` test has as many passes as there are iterations, others a third.
    """

    title: str
    label: str
    metric: str
    unit: Unit
    factor: float
    seconds: float
    long: bool = False


def _rate(title: str, metric: str, seconds: float, *, long: bool = False) -> Test:
    return Test(title, "lps", metric, "1/s", 1.0, seconds, long)


def _copy(block: int, blocks: int) -> Test:
    title = f"File Copy {block} bufsize {blocks} maxblocks"
    # A copy of 30 s comes after 2 s of writing and 2 s of reading, which make the file.
    return Test(title, "KBps", f"copy_{block}_throughput", "B/s", _KIB, 34.0)


TESTS: Mapping[str, Test] = {
    "dhry2reg": _rate("Dhrystone 2 using register variables", "dhrystones_per_second", 10.0, long=True),
    "whetstone-double": Test(
        "Double-Precision Whetstone", "MWIPS", "whetstones_per_second", "1/s", 1e6, 10.0, long=True
    ),
    "execl": _rate("Execl Throughput", "execs_per_second", 30.0),
    "fstime": _copy(1024, 2000),
    "fsbuffer": _copy(256, 500),
    "fsdisk": _copy(4096, 8000),
    "pipe": _rate("Pipe Throughput", "pipe_messages_per_second", 10.0, long=True),
    "context1": _rate("Pipe-based Context Switching", "context_switches_per_second", 10.0, long=True),
    "spawn": _rate("Process Creation", "processes_per_second", 30.0),
    "syscall": _rate("System Call Overhead", "system_calls_per_second", 10.0, long=True),
    "shell1": Test("Shell Scripts (1 concurrent)", "lpm", "shell_1_per_second", "1/s", 1 / 60, 60.0),
    "shell8": Test("Shell Scripts (8 concurrent)", "lpm", "shell_8_per_second", "1/s", 1 / 60, 60.0),
}
"""The tests of UnixBench's index, by the names that ``Run`` takes."""

_SCORE = re.compile(
    r"(?P<title>\S.*?) +(?P<score>\d+\.\d) (?P<label>\S+) +\((?P<time>\d+\.\d) s, (?P<kept>\d+) samples\)"
)
_COPIES = re.compile(r"\d+ CPUs? in system; running (?P<copies>\d+) parallel (?:copy|copies) of tests")
_INDEX = re.compile(r"System Benchmarks Index Score(?: \(Partial Only\))? +(?P<index>\d+\.\d)")


@dataclass(frozen=True, slots=True)
class Score:
    """One line of scores: the score in its label's unit, the mean seconds of a pass, the passes that were kept."""

    score: float
    label: str
    seconds: float
    kept: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says of its one run of the tests; `scores` by the tests' titles."""

    copies: int
    scores: Mapping[str, Score]
    index: float | None


def passes(test: Test, iterations: int) -> int:
    """How often ``Run -i ITERATIONS`` runs a test."""
    return iterations if test.long else max(1, (iterations + 1) // 3)


def parse_unixbench(text: str) -> Report:
    """A report, read as a whole. Raises WorkloadError where it is not one run of tests."""
    lines = [line.rstrip() for line in text.splitlines()]
    copies = [match for line in lines if (match := _COPIES.fullmatch(line))]
    if len(copies) != 1:
        raise WorkloadError(f"UnixBench's report has {len(copies)} runs of the tests, not one")
    scores: dict[str, Score] = {}
    for match in (match for line in lines if (match := _SCORE.fullmatch(line))):
        if match["title"] in scores:
            raise WorkloadError(f"UnixBench's report has {match['title']} twice")
        scores[match["title"]] = Score(float(match["score"]), match["label"], float(match["time"]), int(match["kept"]))
    indexes = [float(match["index"]) for line in lines if (match := _INDEX.fullmatch(line))]
    if len(indexes) > 1:
        raise WorkloadError(f"UnixBench's report has {len(indexes)} index scores")
    return Report(int(copies[0]["copies"]), scores, indexes[0] if indexes else None)


def figures_of(report: Report, tests: Sequence[str], copies: int, iterations: int) -> dict[str, float]:
    """The metrics of the tests, each of which ran as often as asked. Raises WorkloadError."""
    demand_equal("parallel copies of UnixBench's tests", report.copies, copies)
    wanted = {TESTS[name].title for name in tests}
    if odd := sorted(wanted ^ set(report.scores)):
        raise WorkloadError(f"UnixBench's report {'lacks' if odd[0] in wanted else 'has, unasked,'} {odd[0]}")
    values = {RUN_TIME: 0.0}
    for test in (TESTS[name] for name in tests):
        found, ran = report.scores[test.title], passes(test, iterations)
        if found.label != test.label:
            raise WorkloadError(f"UnixBench has {test.title} in {found.label}, which should be {test.label}")
        # Run leaves out the worst third of the passes.
        demand_equal(f"passes that count of UnixBench's {test.title}", found.kept, ran - ran // 3)
        if found.score <= 0:
            raise WorkloadError(f"UnixBench's {test.title} has the score {found.score:g}")
        values[test.metric] = found.score * test.factor
        values[RUN_TIME] += found.seconds * found.kept
    if report.index is not None:
        values["index"] = report.index
    return values
