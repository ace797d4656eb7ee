"""The pooled figures of README, the tutorial and the page of performance are those of the runs that are kept."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from vmlab.analysis.statistics.descriptive import student_t
from vmlab.analysis.statistics.random_effects import RandomEffects, random_effects

ROOT = Path(__file__).parents[3]
KEPT = json.loads((ROOT / "docs/evidence/first-runs.json").read_text(encoding="utf-8"))
"""What ``vmlab compare --pooled RUN… --json`` printed."""


def _again(row: dict[str, Any]) -> RandomEffects:
    """The answer by what the row has of each run: a figure, and Student's interval around it."""
    runs = row["of_runs"]
    assert len(runs) == len(KEPT["runs"]) == row["runs"]
    ends = [[math.log1p(end / 100) for end in one["interval_percent"]] for one in runs]
    errors = [(high - low) / 2 / student_t(one["blocks"] - 1) for one, (low, high) in zip(runs, ends, strict=True)]
    return random_effects([math.log1p(one["percent"] / 100) for one in runs], [error**2 for error in errors])


@pytest.mark.parametrize("row", KEPT["rows"], ids=lambda row: row["workload"])
def test_the_answer_follows_from_its_runs(row: dict[str, Any]) -> None:
    found = _again(row)
    ends = [found.mean, *found.interval(), *found.prediction(found.within)]
    told = [row["percent"], *row["interval_percent"], *row["prediction_percent"]]
    assert [100 * math.expm1(end) for end in ends] == pytest.approx(told)


def test_pages_have_these_figures() -> None:
    by_name = {row["workload"]: row for row in KEPT["rows"]}
    estimate, interval, other = _words(by_name["database"])
    for name in ("README.md", "docs/tutorial.md"):
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert estimate in text and other in text
    assert f"{estimate} ({interval})" in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = (ROOT / "docs/evidence/performance.md").read_text(encoding="utf-8")
    for name in ("database", "mail", "total wall clock"):
        estimate, interval, other = _words(by_name[name])
        row = by_name[name]
        spread = f"{row['spread_percent']:.1f} % | {row['q']:.1f} ({row['q_p']:.2g})"
        assert f"| {name} | {estimate} ({interval}) | {other} % | {spread} |" in page


def _words(row: dict[str, Any]) -> tuple[str, str, str]:
    """``-46.2 %``, and both intervals as ``-48.1 to -44.3``."""
    ends = (row["interval_percent"], row["prediction_percent"])
    interval, other = (" to ".join(f"{end:+.1f}" for end in both) for both in ends)
    return f"{row['percent']:+.1f} %", interval, other
