"""Targets in the documents of runs: which figures meet which limits, and what that says of a cell."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.document import run_document
from vmlab.analysis.tiles.target_results import delivered
from vmlab.model.errors import StoreError
from vmlab.report.exports.junit import write_junit
from vmlab.report.exports.tidy import Exported
from vmlab.report.listing import runs_text
from vmlab.report.page.answer import answers
from vmlab.report.run.cell_text import cell_text
from vmlab.report.run.run_page import run_table
from vmlab.report.run.target_text import verdict_words
from vmlab.store.reader import RunReader
from vmlab.store.run_summary import summarise
from vmlab.tui.feed.run_facts import rows_of
from vmlab.workloads.kinds.fio import Fio
from vmlab.workloads.kinds.http import Http
from vmlab.workloads.metrics import Metric
from vmlab.workloads.target_limits import Target, judgeable, limit_of

PACED = {"tiles": 2, "workloads": {"web": {"kind": "http", "params": {"requests": 60, "pace": 5.0}}}}
SAID = {"workloads": {"web": {"kind": "http"}}, "targets": {"web": {"latency_p95": "500 ms"}}}
UNITS = {"latency_p95": "s", "delivered_percent": "%"}
Figures = Mapping[str, tuple[float, float]]
GOOD: Figures = {"latency_p95": (0.2, 0.5), "delivered_percent": (100.0, 95.0)}


def tell(path: Path, figures: Figures, outcome: str = "passed", **said: Any) -> Path:
    """A run of one cell with two tiles; figures by metric, one for each tile."""
    story = Story(path).begin({"tiles": [2]}, said={**SAID, **said}, cells=1)
    story.start_cell({"tiles": 2}, settings=PACED)
    story.execute(20.0)
    for metric, values in figures.items():
        for tile, value in enumerate(values, start=1):
            story.measure("web", value, metric, UNITS[metric], tile)
    story.end_cell(outcome=outcome, reasons=["the host swapped"] if outcome == "invalid" else (), wall=20.0)
    return story.end(outcome)


def cell_of(path: Path) -> CellDocument:
    with RunReader(path) as reader:
        (cell,) = run_document(reader).cells
    return cell


def test_a_figure_at_its_limit_meets_it_and_a_pace_is_a_target_of_its_own(tmp_path: Path) -> None:
    cell = cell_of(tell(tmp_path / "run.sqlite", GOOD))
    told = [(one.metric, one.tile, one.limit, one.at_least, one.implied) for one in cell.targets]
    assert told == [
        ("latency_p95", 1, 0.5, False, False),
        ("latency_p95", 2, 0.5, False, False),
        ("delivered_percent", 1, 95.0, True, True),
        ("delivered_percent", 2, 95.0, True, True),
    ]
    assert [(one.met, one.load) for one in cell.targets] == [(True, 0.4), (True, 1.0), (True, 0.95), (True, 1)]
    assert delivered(cell) is True


@pytest.mark.parametrize(
    ("metric", "values", "load"), [("latency_p95", (0.2, 0.6), 1.2), ("delivered_percent", (50.0, 100.0), 1.9)]
)
def test_one_tile_that_misses_one_target_is_enough(
    tmp_path: Path, metric: str, values: tuple[float, float], load: float
) -> None:
    cell = cell_of(tell(tmp_path / "run.sqlite", {**GOOD, metric: values}))
    (missed,) = [one for one in cell.targets if one.met is False]
    assert missed.metric == metric
    assert missed.load == pytest.approx(load)
    assert delivered(cell) is False
    assert cell.outcome == "passed", "a missed target makes no cell invalid"


def test_an_own_limit_on_the_pace_takes_the_place_of_the_implied_one(tmp_path: Path) -> None:
    targets = {"web": {"delivered_percent": "99 %"}}
    cell = cell_of(tell(tmp_path / "run.sqlite", GOOD, targets=targets))
    assert [(one.limit, one.implied, one.met) for one in cell.targets] == [
        (99.0, False, True),
        (99.0, False, False),
    ]


def test_nothing_is_known_of_what_was_not_measured_or_is_not_to_be_believed(tmp_path: Path) -> None:
    assert delivered(cell_of(tell(tmp_path / "a" / "run.sqlite", GOOD, "invalid"))) is None
    assert delivered(cell_of(tell(tmp_path / "b" / "run.sqlite", {"latency_p95": (0.2, 0.3)}))) is None
    missed = tell(tmp_path / "c" / "run.sqlite", {"latency_p95": (0.2, 0.9)})
    assert delivered(cell_of(missed)) is False, "what was missed stays missed, whatever else is not known"


def test_a_cell_without_targets_has_no_verdict(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 3.0}, 3.0)
    cell = cell_of(story.end())
    assert (cell.targets, delivered(cell)) == ([], None)


def test_targets_that_no_lab_writes_are_damage(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="targets of an unknown form"):
        cell_of(tell(tmp_path / "run.sqlite", GOOD, targets={"web": ["latency_p95"]}))


def test_the_table_says_what_was_asked_and_what_was_missed(tmp_path: Path) -> None:
    with RunReader(tell(tmp_path / "run.sqlite", {**GOOD, "latency_p95": (0.2, 0.6)})) as reader:
        document = run_document(reader)
    for text in (run_table(document, 200), cell_text(document, document.cells[0], 200)):
        assert "missed 1 target: web.latency_p95 600.0 ms in tile 2 (at most 500 ms)" in text
    assert "web.latency_p95 at most 500 ms, web.delivered_percent at least 95 %" in run_table(document, 200)


@pytest.mark.parametrize(
    ("unit", "said", "value"),
    [("s", "500 ms", 0.5), ("%", "99.5 %", 99.5), ("1/s", "30/min", 0.5), ("B/s", "20 MB/s", 20e6), ("1", 3, 3.0)],
)
def test_limits_have_the_unit_of_their_metric(unit: Any, said: Any, value: float) -> None:
    assert limit_of(Metric(unit, "less", "x"), said) == value


@pytest.mark.parametrize(("unit", "said"), [("s", 5), ("%", "99"), ("1/s", "5 s"), ("B/s", "20 MB"), ("1", "3")])
def test_a_limit_in_another_unit_is_refused(unit: Any, said: Any) -> None:
    with pytest.raises(ValueError, match="needs"):
        limit_of(Metric(unit, "less", "x"), said)


def test_a_limit_that_anything_reaches_is_refused() -> None:
    with pytest.raises(ValueError, match="reached by anything"):
        limit_of(Metric("%", "more", "x"), "0 %")


def test_only_metrics_with_a_better_end_can_be_targets() -> None:
    assert "requests" not in judgeable(Http, {"pace": 5.0})
    assert "delivered_percent" in judgeable(Http, {"pace": 5.0})
    assert "delivered_percent" not in judgeable(Http, {"pace": None})
    assert "latency_p95" in judgeable(Fio, {"rw": "read"})
    assert "latency_p95" not in judgeable(Fio, {"rw": "randrw"})


def test_a_target_that_a_cell_cannot_measure_is_not_applicable_there(tmp_path: Path) -> None:
    mixed = {"tiles": 1, "workloads": {"web": {"kind": "fio", "params": {"rw": "randrw"}}}}
    story = Story(tmp_path / "run.sqlite")
    story.begin({"tiles": [1]}, said={"targets": {"web": {"latency_p95": "500 ms", "iops": "5/s"}}}, cells=1)
    story.start_cell({"tiles": 1}, settings=mixed)
    story.measure("web", 10.0, "iops", "1/s")
    story.end_cell(wall=20.0)
    story.end()
    cell = cell_of(tmp_path / "run.sqlite")
    assert [(one.metric, one.applicable, one.met) for one in cell.targets] == [
        ("latency_p95", False, None),
        ("iops", True, True),
    ]
    assert delivered(cell) is True
    assert verdict_words(cell) == "every tile met its targets; not applicable here: web.latency_p95"


def test_what_is_missed_stands_first_and_fails_the_junit_file_where_targets_decide(tmp_path: Path) -> None:
    for decide in (False, True):
        path = tmp_path / str(decide) / "run.sqlite"
        story = Story(path).begin({"tiles": [1]}, said=SAID, cells=1, targets_decide=decide)
        story.start_cell({"tiles": 1}, settings=PACED)
        story.measure("web", 0.6, "latency_p95", "s")
        story.measure("web", 100.0, "delivered_percent", "%")
        story.end_cell(wall=20.0, missed=1)
        story.end()
        with RunReader(path) as reader:
            document, file = run_document(reader), io.BytesIO()
            write_junit([Exported(reader)], file)
        text = file.getvalue().decode()
        words = "missed 1 target: web.latency_p95 "
        assert f'<property name="targets" value="{words}' in text
        assert (f'<failure type="target" message="{words}' in text) is decide
        assert "in tile" not in text, "there is one tile only"
        assert any(line.startswith("targets missed in 1 of 1 cell") for line in run_table(document).splitlines()[:8])
        assert any(line.startswith("Targets missed in 1 of 1 cell, most of all web.") for line in answers(document))
        summary = summarise(path)
        assert summary.cells_missed == 1
        assert "passed, targets missed" in runs_text([summary])
        assert rows_of([summary])[0].what.endswith(", targets missed")


def test_nothing_delivered_is_beyond_any_limit() -> None:
    target = Target("web", "delivered_percent", "%", 95.0, at_least=True, implied=True)
    assert (target.load(0.0), target.met_by(0.0)) == (float("inf"), False)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("1500 ms", "web.latency_p95 1800 ms in tile 2 (at most 1500 ms)"),
        ("1.5 s", "web.latency_p95 1.80 s in tile 2 (at most 1.5 s)"),
        ("2000 us", "web.latency_p95 1800000 us in tile 2 (at most 2000 us)"),
    ],
)
def test_a_figure_beside_its_target_has_the_unit_that_the_scenario_writes(
    tmp_path: Path, said: str, words: str
) -> None:
    figures = {**GOOD, "latency_p95": (0.001, 1.8)}
    cell = cell_of(tell(tmp_path / "run.sqlite", figures, targets={"web": {"latency_p95": said}}))
    assert words in verdict_words(cell)
    assert [one.value for one in cell.targets if one.metric == "latency_p95"] == [0.001, 1.8], "base units"
