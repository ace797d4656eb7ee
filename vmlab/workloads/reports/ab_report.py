"""The report that ab 2.3 prints, as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.workloads.reports.closed_loop import demand_busy, mean_bounds
from vmlab.workloads.verification import demand_one_report, read_labelled, said

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_MARKS = ("^This is ApacheBench, Version ", "^Server Software:")
_GRAIN = 0.6e-3
_MEAN_GRAIN = 0.6e-6
"""A little more than half of the last digit that ab prints of its time and of its mean latency, in seconds."""
_COMPLETED = re.compile(r"Completed ([0-9]+) requests")


@dataclass(frozen=True, slots=True)
class AbReport:
    """Times in seconds, bytes with headers. `host`, `port`, `path` and `concurrency` are what ab was told.

    ab leaves the lines of write errors and of other responses out when their count is 0.
    """

    host: str = said("Server Hostname", "(.+)")
    port: int = said("Server Port")
    path: str = said("Document Path", "(.+)")
    concurrency: int = said("Concurrency Level")
    total_time: float = said("Time taken for tests", _NUMBER + " seconds")
    requests: int = said("Complete requests", _NUMBER)
    failed: int = said("Failed requests", _NUMBER)
    write_errors: int = said("Write errors", _NUMBER, default=0)
    non_2xx: int = said("Non-2xx responses", _NUMBER, default=0)
    transferred: int = said("Total transferred", _NUMBER + " bytes")
    latency_mean: float = said("Time per request", _NUMBER + r" \[ms\] \(mean\)", divisor=1000)


def parse_ab(text: str) -> AbReport:
    """Read ab's report, which may follow the answers that it prints. Raises WorkloadError that quotes what it cannot
    read, and for several reports.
    """
    demand_one_report(text, *_MARKS, tool="ab")
    return read_labelled(AbReport, text[max(0, text.rfind("\nServer Software:")) :], "ab")


def demand_mean(report: AbReport) -> None:
    """Raises WorkloadError where ab's mean latency does not follow from its time, of which it is a part.

    ab computes it as concurrency * time / requests, and prints both in milliseconds, to three digits and in whole ones.
    """
    each = report.concurrency / report.requests
    if abs(report.latency_mean - each * report.total_time) > _GRAIN * each + _MEAN_GRAIN:
        raise WorkloadError(
            f"ab's mean latency of {report.latency_mean:.6f} s does not follow from its {report.total_time:.3f} s"
        )


def demand_room(report: AbReport, percentiles: Mapping[int, float]) -> None:
    """Raises WorkloadError where the requests took longer than ab's connections have in its time, or much less.

    ab begins the next request on a connection as soon as the last one is over.
    """
    some = {percent: percentiles[percent] for percent in (50, 95, 99, 100)}
    least, most = (report.requests * mean for mean in mean_bounds("ab", some))
    demand_busy("ab", most, report.concurrency, report.total_time, percentiles[100])
    if least > report.concurrency * (report.total_time + _GRAIN) + report.requests * _MEAN_GRAIN:
        raise WorkloadError(
            f"ab's requests took {least:.3f} s together, more than {report.concurrency} at a time have in its "
            f"{report.total_time:.3f} s"
        )


def parse_percentiles(text: str, requests: int) -> dict[int, float]:
    """The file that ``ab -e`` writes: percent served to seconds, from 0 to 100. Raises WorkloadError.

    With few requests ab rounds the rank of a high percentile up to one past the slowest request and writes whatever
    lies behind it in memory (apr's ab.c, ``output_results``); there it is the slowest request that is meant.
    """
    found: dict[int, float] = {}
    for line in text.splitlines()[1:]:
        match = re.fullmatch(rf"([0-9]+),{_NUMBER}", line.strip())
        if match is None:
            raise WorkloadError(f"ab wrote a percentile that cannot be read: {line[:200]!r}")
        if int(match[1]) in found:
            raise WorkloadError(f"ab wrote the percentile {match[1]} twice, so the file is not of one report")
        found[int(match[1])] = float(match[2]) / 1000
    if not found.keys() >= {50, 95, 99, 100}:
        raise WorkloadError(f"ab wrote {len(found)} percentiles, without 50, 95, 99 and 100 among them")
    return {percent: found[_written(percent, requests)] for percent in found}


def _written(percent: int, requests: int) -> int:
    """The percentile whose value stands for `percent`."""
    return percent if int(0.5 + requests * percent / 100) < requests else 100


class RequestCount:
    """How far ab is, from its words of progress or, with ``-v 2``, from the headers of each answer."""

    def __init__(self) -> None:
        self._done = 0

    def feed(self, line: str) -> int | None:
        """Requests done so far; None for a line of another sort."""
        if match := _COMPLETED.fullmatch(line):
            self._done = max(self._done, int(match[1]))
        elif line == "LOG: header received:":
            self._done += 1
        else:
            return None
        return self._done
