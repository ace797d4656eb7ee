"""The readings that mbw prints, one line for each copy of the array and one for their average."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.workloads.verification import demand_one_report

_LINE = re.compile(
    r"(?P<run>AVG|[0-9]+)\tMethod: (?P<method>[A-Z]+)\tElapsed: (?P<elapsed>[0-9]+\.[0-9]{5})"
    r"\tMiB: (?P<mib>[0-9]+\.[0-9]+)\tCopy: (?P<rate>[0-9]+\.[0-9]{3}) MiB/s"
)
_ELAPSED_GRAIN = 0.5e-5
_RATE_GRAIN = 0.5e-3
"""Half of the last digit that mbw prints, in seconds and in MiB/s."""
_SLACK = 1.001
_LEAST_SECONDS = 1e-4
"""mbw takes its times from gettimeofday(2), in microseconds: below this a step of them would be more than 1 %."""
_BLOCK = re.compile(r"^Using ([0-9]+) bytes as blocks for memcpy block copy test\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Copy:
    """One reading, or an average: seconds and MiB/s as printed, and the MiB that were copied."""

    elapsed: float
    mib: float
    rate: float

    @property
    def seconds(self) -> float:
        """The time that follows from the rate, which is printed with more digits where the time is short."""
        return self.mib / self.rate


@dataclass(frozen=True, slots=True)
class MethodReport:
    """What mbw printed for one method."""

    copies: tuple[Copy, ...]
    average: Copy

    @property
    def seconds(self) -> float:
        """Of all copies together."""
        return sum(copy.seconds for copy in self.copies)


def parse_mbw(text: str) -> dict[str, MethodReport]:
    """Method to its readings. Raises WorkloadError for a line that cannot be read, and for a method without average."""
    copies: dict[str, list[Copy]] = {}
    averages: dict[str, Copy] = {}
    for line in text.splitlines():
        if "Method:" not in line:
            continue
        match = _LINE.fullmatch(line.strip())
        copy = Copy(float(match["elapsed"]), float(match["mib"]), float(match["rate"])) if match else None
        if match is None or copy is None or copy.rate <= 0:
            raise WorkloadError(f"mbw printed a line that cannot be read: {line[:200]!r}")
        if match["method"] in averages:
            raise WorkloadError(f"mbw printed more of {match['method']} behind its average, so it is not one report")
        if match["run"] == "AVG":
            averages[match["method"]] = copy
        elif int(match["run"]) != len(copies.setdefault(match["method"], [])):
            raise WorkloadError(f"mbw printed the runs of {match['method']} out of order: {line[:200]!r}")
        else:
            copies[match["method"]].append(copy)
    for method in copies:
        if method not in averages:
            raise WorkloadError(f"mbw printed no average of {method}")
    return {method: MethodReport(tuple(made), averages[method]) for method, made in copies.items()}


def parse_block(text: str) -> int:
    """The size of the blocks of ``mcblock``, in bytes. Raises WorkloadError."""
    demand_one_report(text, _BLOCK.pattern, tool="mbw")
    match = _BLOCK.search(text)
    if match is None:
        raise WorkloadError("mbw did not print the size of its blocks")
    return int(match[1])


def demand_measurable(method: str, report: MethodReport) -> None:
    """Raises WorkloadError for a copy that was too quick for mbw's clock."""
    shortest = min(copy.seconds for copy in report.copies)
    if shortest < _LEAST_SECONDS:
        raise WorkloadError(
            f"a copy of mbw's {method} took {shortest:.6f} s, too quick to be measured; make array larger"
        )


def demand_average(method: str, report: MethodReport) -> None:
    """Raises WorkloadError when mbw's average does not follow from its single readings.

    mbw divides the sum of the times by the number of runs, and the amount by that. Both sides may differ by what
    rounding takes from each printed number.
    """
    mean = report.seconds / len(report.copies)
    copies = report.copies
    grain = sum(copy.seconds * _RATE_GRAIN / copy.rate for copy in copies) / len(copies)
    said = report.average
    by_time = abs(said.elapsed - mean) <= (_ELAPSED_GRAIN + grain) * _SLACK
    by_rate = abs(said.seconds - mean) <= (grain + said.seconds * _RATE_GRAIN / said.rate) * _SLACK + _ELAPSED_GRAIN
    if not (by_time and by_rate):
        raise WorkloadError(
            f"mbw's average of {method}, {said.rate:.3f} MiB/s in {said.elapsed:.5f} s, does not agree with its "
            f"{len(copies)} readings, whose mean time is {mean:.5f} s"
        )
