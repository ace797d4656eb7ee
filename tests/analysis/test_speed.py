"""The CPUs' speed over a run and over spans of it: always relative to the best of the whole run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

import pytest

from tests.store.stories import Story
from vmlab.analysis.compared_runs import noise_of
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Noise, Row
from vmlab.analysis.comparison.difference import Difference, difference
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.speed_spans import SpeedTrace
from vmlab.analysis.statistics.descriptive import spread
from vmlab.model.cell_event import (
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.jsonable import jsonable
from vmlab.model.sample import Sample, SampleNames
from vmlab.report.comparison_text import comparison_table
from vmlab.report.headline import explanation
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader
from vmlab.store.samples import SampleWriter

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
    assert found is not None and jsonable(found) == {
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
    found = document.run.speed
    assert found is not None and found == compared.run.speed
    assert found.mean_percent == pytest.approx(71)
    line = "host speed: mean 71 % of its best (50 to 100 %), steal 0 %"
    assert line in run_table(document).splitlines()


def test_a_run_without_a_trace_says_nothing_of_it(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, cells=1)
    story.cell({"cache": "none"}, {"web": 2.0}, 2.0)
    with RunReader(story.end()) as reader:
        document = run_document(reader)
    assert document.run.speed is None
    assert "host speed" not in run_table(document)


def told_cell(story: Story, side: str, repeat: int, work: float, draw: random.Random, *, kind: str = "cpu") -> None:
    """A cell of `work` seconds at the best speed; each CPU runs at full or at half speed for some seconds each."""
    story.start_cell({"side": side}, repeat, settings={"workloads": {"primes": {"kind": kind}}})
    cell, now = story.cells, [draw.choice((50.0, 100.0)) for _ in range(2)]
    place = {"cell": cell, "workload": "primes", "tile": 1, "guest": "vm"}
    story.writer.append(PhaseStarted(**story.now(), cell=cell, phase="execute"))
    story.writer.append(WorkloadStarted(**story.now(0), **place, benchmark=kind, late_ms=0.0, uncertainty_ms=0.1))  # type: ignore[arg-type]
    write, done, seconds = SampleWriter(story.writer), 0.0, 0.0
    while done < work:
        now = [150.0 - one if draw.random() < 0.3 else one for one in now]
        rate = sum(now) / 200
        seconds += min(1.0, (work - done) / rate)
        done += rate
        at = story.now(1.0)
        layout = SampleNames.of(("tick_length_seconds", "tick_lateness_seconds", *speeds(0, 0)))
        write(Sample(at["wall"], at["mono"], 1.0, 0.0, layout, (1.0, 0.0, *speeds(*now).values())))
    story.writer.append(WorkloadEnded(**story.now(0), **place, outcome="passed", seconds=seconds))  # type: ignore[arg-type]
    story.writer.append(PhaseEnded(**story.now(0), cell=cell, phase="execute", seconds=seconds))
    story.measure("primes", seconds)
    story.measure("primes", 1000 / seconds, "events_per_second", "1/s")
    story.end_cell(wall=seconds)


def control_run(path: Path, seed: int, *, slower: float = 0.0, kind: str = "cpu") -> RunDocument:
    """Eight repeats of two sides, of which B takes so many percent longer; the work itself varies by 1 %."""
    draw = random.Random(seed)
    story = Story(path / f"{seed}.sqlite").begin({"side": ["A", "B"]}, cells=16)
    for repeat in range(1, 9):
        for side, factor in (("A", 1.0), ("B", 1 + slower / 100)):
            told_cell(story, side, repeat, 8 * factor * draw.gauss(1, 0.01), draw, kind=kind)
    with RunReader(story.end()) as reader:
        return compared_document(reader)


def by_metric(document: RunDocument) -> dict[str, Row]:
    return {row.metric: row for row in compare(sides_by_axis(document)).rows}


def half_width(found: Difference | None) -> float:
    assert found is not None and found.interval is not None
    return (found.interval[1] - found.interval[0]) / 2


def alarms(figures: Sequence[Figure]) -> float:
    """The share of relabellings, whole repeats of which swap sides, in which like is called different from like."""
    sides = [[one.value for one in figure.readings] for figure in figures]
    count, proven = len(sides[0]), 0
    for swapped in range(2 ** (count - 1)):
        swap = [bool(swapped >> place & 1) for place in range(count)]
        mixed = [[b if s else a for a, b, s in zip(sides[k], sides[1 - k], swap, strict=True)] for k in (0, 1)]
        readings = [tuple(OneReading(value, repeat) for repeat, value in enumerate(side)) for side in mixed]
        before, after = (Figure("passed", spread(side), 0, own) for side, own in zip(mixed, readings, strict=True))
        proven += difference(before, after, False).proven
    return float(proven / 2 ** (count - 1))


def test_corrected_intervals_are_a_third_as_wide_and_alarm_no_more_often(tmp_path: Path) -> None:
    raw, corrected, alarming = [], [], []
    for seed in range(20):
        rows = by_metric(control_run(tmp_path, seed))
        for metric in ("run_time", "events_per_second", "wall_seconds"):
            raw.append(half_width(rows[metric].differences[0]))
            corrected.append(half_width(rows[metric].differences_at_best[0]))
        at_best = rows["run_time"].at_best_speed
        alarming.append(alarms(at_best.figures if at_best else ()))
    assert median(corrected) <= median(raw) / 3
    assert median(raw) > 5, "the speed moved"
    assert mean(alarming) <= 0.05


def test_a_true_slowdown_is_seen_at_the_best_speed_and_the_figure_as_measured_decides(tmp_path: Path) -> None:
    document = control_run(tmp_path, 1, slower=8)
    comparison = compare(sides_by_axis(document))
    row = next(row for row in comparison.rows if row.metric == "run_time")
    (measured,), (at_best,) = row.differences, row.differences_at_best
    assert at_best is not None and at_best.proven and at_best.percent == pytest.approx(8, abs=1.5)
    assert not measured.proven
    body = jsonable(comparison)
    assert body["speed"]["highest_percent"] <= 100
    (candidate,) = body["rows"][0]["candidates"]
    assert candidate["difference"]["verdict"] == "no difference proven"
    assert candidate["at_best_speed"]["verdict"] == "difference proven"
    text = comparison_table(comparison)
    assert "at best speed" in text
    assert "At the CPUs' best speed the verdict differs for primes" in " ".join(explanation(comparison))


def test_work_that_does_not_follow_the_speed_keeps_its_figures(tmp_path: Path) -> None:
    rows = by_metric(control_run(tmp_path, 1, kind="fio"))
    assert rows["run_time"].at_best_speed is None
    assert rows["wall_seconds"].at_best_speed is None


def test_noise_at_the_best_speed_is_that_of_the_control_run_at_the_best_speed(tmp_path: Path) -> None:
    noise = noise_of(control_run(tmp_path, 3))
    at_best_speed = noise.percents["primes", "run_time", "at best speed"]
    assert at_best_speed < noise.percents["primes", "run_time", ""] / 3
    row = by_metric_with(control_run(tmp_path, 4, slower=8), noise)
    (at_best,) = row.differences_at_best
    assert at_best is not None and at_best.noise == at_best_speed


def by_metric_with(document: RunDocument, noise: Noise) -> Row:
    return next(row for row in compare(sides_by_axis(document), noise).rows if row.metric == "run_time")
