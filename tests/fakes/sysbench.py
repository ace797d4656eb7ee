"""What a stand-in for sysbench prints: the captured report of another test, as one of the test's own amounts."""

from __future__ import annotations

import re
from pathlib import Path

_CAPTURED = Path(__file__).parents[1] / "workloads/captured/sysbench-cpu.txt"
EVENTS = 2500
"""In the captured report."""


def cpu_report(*, threads: int = 1, limit: int = 1000, events: int = EVENTS, seconds: float = 0.001) -> str:
    """A report of all `events`; stand-ins end at once, so that it has to say that sysbench did, too."""
    text = _CAPTURED.read_text()
    each = f"{threads * seconds * 1000 / events:.2f}"
    for pattern, value in (
        (r"(Number of threads: )\d+", threads),
        (r"(Prime numbers limit: )\d+", limit),
        (r"(total number of events: +)\d+", events),
        (r"(total time: +)[\d.]+", f"{seconds:.4f}"),
        (r"( sum: +)[\d.]+", f"{threads * seconds * 1000:.2f}"),
        (r"(avg: +)[\d.]+", each),
        (r"(95th percentile: +)[\d.]+", each),
        (r"(max: +)[\d.]+", each),
    ):
        text, found = re.subn(pattern, rf"\g<1>{value}", text)
        assert found == 1
    return text


def few_lines(report: str) -> str:
    """Without the lines that nobody reads: each is a message of its own."""
    return "\n".join(line for line in report.splitlines() if re.match(r" *[A-Za-z0-9 ]+: +[0-9]", line))
