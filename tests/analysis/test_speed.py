"""The CPUs' speed over a run and over spans of it: always relative to the best of the whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.speed import SpeedTrace
from vmlab.model.sample import Sample, SampleNames
from vmlab.report.tables import run_table
from vmlab.store.reader import RunReader

LAYOUT = SampleNames.of(
    (
        "cpu_speed_percent",
        "cpu_speed_percent[0]",
        "cpu_speed_percent[1]",
        "cpu_speed_best_ms[0]",
        "cpu_speed_best_ms[1]",
    )
)


def tick(end: float, of_0: float, of_1: float, best_0: float = 0.05, best_1: float = 0.05) -> Sample:
    return Sample(end, end, 1.0, 0.0, LAYOUT, ((of_0 + of_1) / 2, of_0, of_1, best_0, best_1))


def test_the_mean_is_over_the_time_in_the_span_and_over_cpus() -> None:
    trace = SpeedTrace()
    trace.add([tick(1, 100, 50), tick(2, 50, 50), tick(3, 100, 100)])
    assert trace.mean_percent(0, 2) == pytest.approx((75 + 50) / 2)
    assert trace.mean_percent(0.5, 2) == pytest.approx(((0.5 * 100 + 50) / 1.5 + 50) / 2)
    assert trace.mean_percent(0, 2, cpus=1) == pytest.approx(50), "the last CPU"
    assert trace.mean_percent(2.9, 4.0) is None, "known for a tenth of it"
    assert trace.mean_percent(7, 8) is None


def test_what_was_the_best_at_first_is_relative_to_a_later_best() -> None:
    trace = SpeedTrace()
    trace.add([tick(1, 100, 100, best_0=0.1, best_1=0.1)])
    trace.add([tick(2, 100, 50, best_0=0.05, best_1=0.1)])
    assert trace.mean_percent(0, 1) == pytest.approx((50 + 100) / 2)
    found = trace.document([(0, 2)])
    assert found is not None and dict(found) == {
        "mean_percent": pytest.approx((75 + 75) / 2),
        "lowest_percent": pytest.approx(50),
        "highest_percent": pytest.approx(100),
        "steal_percent": None,
    }


def speeds(of_0: float, of_1: float) -> dict[str, float]:
    bests = dict.fromkeys(("cpu_speed_best_ms[0]", "cpu_speed_best_ms[1]"), 0.05)
    both = {"cpu_speed_percent[0]": of_0, "cpu_speed_percent[1]": of_1}
    return {"cpu_speed_percent": (of_0 + of_1) / 2, **both, **bests, "cpu_steal_percent": 0.0}


def test_the_head_of_a_run_says_what_speed_its_host_had(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, cells=1)
    story.start_cell({"cache": "none"})
    story.execute(2.0, [speeds(50, 100), speeds(60, 74)])
    story.measure("web", 2.0)
    story.end_cell(wall=2.0)
    with RunReader(story.end()) as reader:
        document, compared = run_document(reader), compared_document(reader)
    found = document["run"]["speed"]
    assert found is not None and found == compared["run"]["speed"]
    assert found["mean_percent"] == pytest.approx(71)
    line = "host speed: mean 71 % of its best (50 to 100 %), steal 0 %"
    assert line in run_table(document).splitlines()


def test_a_run_without_a_trace_says_nothing_of_it(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, cells=1)
    story.cell({"cache": "none"}, {"web": 2.0}, 2.0)
    with RunReader(story.end()) as reader:
        document = run_document(reader)
    assert document["run"]["speed"] is None
    assert "host speed" not in run_table(document)
