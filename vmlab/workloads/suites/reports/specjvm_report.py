"""The text report that SPECjvm2008 writes beside its raw result, ``SPECjvm2008.NNN.txt``.

The format is that of a published report of version 1.01 on OpenJDK 17: ``SPECjvm2008.012.txt`` among the examples of
the public repository microsoft/VirtualClient. Its words on the run's state are those of ``Utils.getRunStatus`` in
the suite's reporter. How benchmarks make groups is said in SPEC's "Run and Reporting Rules", 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.workloads.reports.jvm_report import score_name
from vmlab.workloads.verification import demand_equal

GROUPS: tuple[str, ...] = (
    *("compiler", "compress", "crypto", "derby", "mpegaudio", "scimark.large", "scimark.small"),
    *("serial", "startup", "sunflow", "xml"),
)
"""The groups of benchmarks that have a score."""

_MONTE_CARLO = "scimark.monte_carlo"
"""It has no size, and counts in both groups of scimark."""
_STATES = ("Run is compliant", "Run is valid, but not compliant")
_GROUP = re.compile(r"(?P<group>[a-z]+(?:\.[a-z]+)?) +(?P<score>\S+)")
_COMPOSITE = re.compile(r"(?:Noncompliant c|C)omposite result: (?P<score>\d+(?:\.\d+)?) .*ops/m")
_DETAIL = re.compile(
    r"(?P<name>[a-z][\w.]*) +(?P<stage>warmup|iteration \d+) +\S+ +(?P<milliseconds>\d+) +"
    r"(?P<operations>\d+(?:\.\d+)?) +(?P<score>\d+(?:\.\d+)?)"
)
_REACHED = 0.99
_ROUNDED = 0.011
"""Operations and scores are printed with two decimals."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One timed iteration of a benchmark; `score` is in operations a minute."""

    seconds: float
    operations: float
    score: float


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says: the composite score, that of each group, and each benchmark's iterations without warm-up."""

    state: str
    score: float
    groups: Mapping[str, float]
    iterations: Mapping[str, tuple[Iteration, ...]]
    warmups: Mapping[str, tuple[Iteration, ...]]


def groups_of(benchmarks: Sequence[str]) -> set[str]:
    """The groups that benchmarks fall into."""
    found: set[str] = set()
    for name in benchmarks:
        if name == _MONTE_CARLO:
            found |= {"scimark.large", "scimark.small"}
        elif name.startswith("scimark."):
            found.add(f"scimark.{name.rpartition('.')[2]}")
        else:
            found.add(name.partition(".")[0])
    return found


def parse_specjvm(text: str) -> Report:
    """A report, read as a whole. Raises WorkloadError where it is not one of a valid run."""
    lines = [line.strip() for line in text.splitlines()]
    states = [line for line in lines if line.startswith("Run is")]
    if len(states) != 1:
        raise WorkloadError(f"SPECjvm2008's report has {len(states)} lines on the run's state, not one")
    if states[0] not in _STATES:
        raise WorkloadError(f"SPECjvm2008 says: {states[0]}")
    composites = [float(match["score"]) for line in lines if (match := _COMPOSITE.fullmatch(line))]
    if len(composites) != 1:
        raise WorkloadError(f"SPECjvm2008's report has {len(composites)} composite results, not one")
    return Report(states[0], composites[0], _groups(lines), *_iterations(lines))


def _groups(lines: Sequence[str]) -> dict[str, float]:
    groups: dict[str, float] = {}
    for match in (match for line in lines if (match := _GROUP.fullmatch(line))):
        if match["group"] not in GROUPS:
            continue
        try:
            score = float(match["score"])
        except ValueError:
            raise WorkloadError(f"SPECjvm2008's {match['group']} has no score, but {match['score']!r}") from None
        if match["group"] in groups:
            raise WorkloadError(f"SPECjvm2008's report has {match['group']} twice")
        groups[match["group"]] = score
    return groups


def _iterations(lines: Sequence[str]) -> tuple[dict[str, tuple[Iteration, ...]], dict[str, tuple[Iteration, ...]]]:
    timed: dict[str, tuple[Iteration, ...]] = {}
    warmups: dict[str, tuple[Iteration, ...]] = {}
    for match in (match for line in lines if (match := _DETAIL.fullmatch(line))):
        one = Iteration(int(match["milliseconds"]) / 1e3, float(match["operations"]), float(match["score"]))
        where = f"SPECjvm2008's {match['name']}, {match['stage']},"
        if one.seconds <= 0 or one.operations <= 0:
            raise WorkloadError(f"{where} has {one.operations:g} operations in {one.seconds:g} s")
        rate = 60 * one.operations / one.seconds
        if abs(rate - one.score) > _ROUNDED * (1 + 60 / one.seconds):
            raise WorkloadError(f"{where} has the score {one.score:g}, and its operations make {rate:.2f} a minute")
        found = warmups if match["stage"] == "warmup" else timed
        found[match["name"]] = (*found.get(match["name"], ()), one)
    return timed, warmups


def demand_lasted(report: Report, time: float, warmup: float) -> None:
    """Raises WorkloadError where an iteration or a warm-up was shorter than was asked for.

    The suite makes them longer where too few operations fit; those that start Java anew are of one operation each.
    """
    for what, asked, stages in (("an iteration", time, report.iterations), ("the warm-up", warmup, report.warmups)):
        for name, one in ((name, one) for name, every in stages.items() for one in every):
            if one.seconds < _REACHED * asked and not name.startswith("startup"):
                raise WorkloadError(
                    f"{what} of SPECjvm2008's {name} took {one.seconds:.1f} s, but {asked:g} s were asked for"
                )


def figures_of(report: Report, benchmarks: Sequence[str], iterations: int) -> dict[str, float]:
    """The metrics of a report whose benchmarks ran as often as asked. Raises WorkloadError."""
    for name in benchmarks:
        demand_equal(f"iterations of SPECjvm2008's {name}", len(report.iterations.get(name, ())), iterations)
    if odd := sorted(set(report.iterations) - set(benchmarks)):
        raise WorkloadError(f"SPECjvm2008 ran {odd[0]}, which was not asked for")
    if lacking := sorted(groups_of(benchmarks) - set(report.groups)):
        raise WorkloadError(f"SPECjvm2008's report has no score of {lacking[0]}")
    timed = [one for every in report.iterations.values() for one in every]
    return {
        RUN_TIME: sum(one.seconds for one in timed),
        "score": report.score,
        **{score_name(group): score for group, score in report.groups.items()},
        "operations": sum(one.operations for one in timed),
    }
