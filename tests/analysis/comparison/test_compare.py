"""Comparisons: figures meet where their axes do, and nothing doubtful is compared silently."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.report.told import TOLD
from tests.store.stories import HOST, Story
from vmlab.analysis.compared_runs import noise_of
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Verdict
from vmlab.analysis.comparison.gate import Condition
from vmlab.analysis.comparison.judging import judge
from vmlab.analysis.comparison.meetings import Side, sides_by_axis
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import jsonable
from vmlab.store.reader import RunReader


def _told(path: Path, times: dict[str, list[float]], **beginning: Any) -> RunDocument:
    """A run with a cell for each cache mode and repeat, whose one workload took `times`."""
    story = Story(path / "run.sqlite", run=path.name).begin({"cache": list(times)}, **beginning)
    for cache, repeats in times.items():
        for repeat, seconds in enumerate(repeats, start=1):
            story.cell({"cache": cache}, {"web": seconds}, seconds + 1, repeat)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def percents(row: Row) -> list[float | None]:
    return [difference.percent for difference in row.differences]


def _compared(*documents: RunDocument) -> Comparison:
    return compare([Side.of(document.run.id, document) for document in documents])


def test_cells_meet_where_their_axes_agree(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    after = _told(tmp_path / "after", {"writeback": [5.0], "none": [9.0]})
    rows = {(row.axes["cache"], row.workload): row for row in _compared(before, after).rows}
    assert percents(rows["none", "web"]) == [pytest.approx(-10.0)]
    assert percents(rows["writeback", "web"]) == [pytest.approx(25.0)]
    assert percents(rows["none", "total wall clock"]) == [pytest.approx(-100 / 11)]


def test_repeats_become_a_spread_and_runs_one_a_side(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0, 12.0, 14.0]})
    after = _told(tmp_path / "after", {"none": [11.0, 13.0, 15.0]})
    body = jsonable(_compared(before, after))
    (row, _) = body["rows"]
    assert body["schema"] == "vmlab.compare/2"
    assert row["baseline"]["count"] == 3
    assert row["baseline"]["half_width_95"] == pytest.approx(4.968, abs=1e-3)
    assert row["baseline"]["readings"][1] == {
        "run": "before",
        "repeat": 2,
        "value": 12.0,
        "outlier": False,
    }
    found = row["candidates"][0]["difference"]
    assert (found["verdict"], found["better"], found["interval_percent"], found["p"]) == (
        "one a side",
        None,
        None,
        None,
    )
    assert found["percent"] == pytest.approx(100 / 12)
    assert (found["readings"], found["paired"], found["readings_needed"]) == (1, False, 5)


def test_repeats_of_one_run_are_paired(tmp_path: Path) -> None:
    times = {"none": [10.0 + 0.1 * n for n in range(8)], "writeback": [11.0 + 0.09 * n for n in range(8)]}
    sides = sides_by_axis(_told(tmp_path / "run", times))
    (web, wall) = jsonable(compare(sides))["rows"]
    found = web["candidates"][0]["difference"]
    assert found["verdict"] == "difference proven" and found["better"] is False
    assert found["p"] == 2 / 2**8 and found["p_adjusted"] == 4 / 2**8
    assert (found["readings"], found["paired"], found["family"], found["effect_size"]) == (8, True, 2, 1.0)
    low, high = found["interval_percent"]
    assert 0 < low < found["percent"] < high and found["ratio"] == pytest.approx(1 + found["percent"] / 100)
    assert wall["candidates"][0]["difference"]["verdict"] == "difference proven"


def test_the_baseline_is_the_value_written_first_whatever_ran_first(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=5)
    story.cell({"cache": "writeback"}, {"web": 99.0}, 100.0, 0)
    for repeat, order in ((1, ("writeback", "none")), (2, ("none", "writeback"))):
        for cache in order:
            story.cell({"cache": cache}, {"web": 10.0 if cache == "none" else 20.0}, 21.0, repeat)
    with RunReader(story.end()) as reader:
        sides = sides_by_axis(run_document(reader))
    assert [side.label for side in sides] == ["cache none", "cache writeback"]
    assert [[cell.repeat for cell in side.cells] for side in sides] == [[1, 2], [1, 2]]
    assert compare(sides).rows[0].differences[0].percent == pytest.approx(100.0)


def test_a_repeat_that_did_not_pass_on_one_side_is_left_out_on_both(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=16)
    for repeat in range(1, 9):
        story.cell({"cache": "none"}, {"web": 10.0 + 0.01 * repeat}, 11.0, repeat)
        story.start_cell({"cache": "writeback"}, repeat)
        story.measure("web", 20.0 if repeat != 3 else 1.0)
        story.end_cell("passed" if repeat != 3 else "invalid", wall=21.0)
    with RunReader(story.end()) as reader:
        row = compare(sides_by_axis(run_document(reader))).rows[0]
    (found,) = row.differences
    assert (found.verdict, found.readings, found.needed) == (Verdict.PROVEN, 7, 7)
    assert row.figures[0].readings[2].value == pytest.approx(10.03)
    assert (len(row.figures[0].readings), len(row.figures[1].readings)) == (8, 7)


def test_sides_that_began_from_snapshots_of_their_own_are_one_a_side(tmp_path: Path) -> None:
    times = {"none": [10.0 + 0.1 * n for n in range(8)], "writethrough": [20.0 + 0.1 * n for n in range(8)]}
    document = _told(tmp_path / "run", times)
    for cell in document.cells:
        cell.provision.snapshots.update({"t1-front": "aa", "t1-database": str(cell.axes["cache"])})
    (found,) = compare(sides_by_axis(document)).rows[0].differences
    assert (found.verdict, found.better) == (Verdict.ONE_A_SIDE, None)
    assert found.because == "one snapshot a side, which all of its repeats begin from"


def test_the_noise_of_a_control_run_is_the_far_end_of_its_interval(tmp_path: Path) -> None:
    noisy = [0.3, -0.2, 0.25, -0.35, 0.1, -0.15, 0.05, -0.1]
    control = _told(tmp_path / "control", {"none": [10.0] * 8, "writeback": [10.0 + one for one in noisy]})
    noise = noise_of(control)
    (row, _) = compare(sides_by_axis(control)).rows
    assert row.differences[0].interval is not None
    assert noise.percents["web", "run_time", ""] == max(map(abs, row.differences[0].interval))
    assert (noise.run, noise.repeats) == ("control", 8)
    sides = sides_by_axis(_told(tmp_path / "run", {"none": [10.0] * 8, "writeback": [10.2] * 8}))
    (alone, with_noise) = (compare(sides, given).rows[0].differences[0] for given in (None, noise))
    assert (alone.verdict, with_noise.verdict) == (Verdict.PROVEN, Verdict.NOT_PROVEN)
    said = jsonable(compare(sides, noise))["noise"]
    assert (said["run"], said["readings"], said["blocks"]) == ("control", 8, 8)
    assert (said["control"], said["started"]) == (False, "2026-11-21T14:30:00.000+00:00")
    assert said["figures"][0] == {
        "workload": "web",
        "metric": "run_time",
        "percent": noise.percents["web", "run_time", ""],
        "percent_without_yardstick": None,
        "percent_at_best_speed": None,
    }


def test_a_run_that_cannot_show_noise_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too few repeats to show"):
        noise_of(_told(tmp_path / "short", {"none": [10.0] * 3, "writeback": [10.1] * 3}))
    with pytest.raises(UsageError, match="no control run: it has not two sides"):
        noise_of(_told(tmp_path / "three", {"none": [10.0], "writeback": [10.1], "unsafe": [10.2]}))


def test_figures_that_are_asked_for_and_further_ones_are_families_apart(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=16)
    for repeat in range(1, 9):
        for cache, seconds in (("none", 10.0), ("writeback", 11.0)):
            story.start_cell({"cache": cache}, repeat)
            for workload in ("web", "mail"):
                story.measure(workload, seconds)
                story.measure(workload, 300, "files", "1")
                for metric in ("p50", "p95", "p99", "max"):
                    story.measure(workload, seconds, metric, "ms")
            story.end_cell(wall=seconds)
    with RunReader(story.end()) as reader:
        rows = compare(sides_by_axis(run_document(reader))).rows
    families = {row.metric: (row.differences[0].family, row.differences[0].verdict) for row in rows}
    asked, further = (3, Verdict.PROVEN), (8, Verdict.TOO_FEW)
    assert families == {
        "run_time": asked,
        "p50": further,
        "p95": further,
        "p99": further,
        "max": further,
        "files": (2, Verdict.SAME),
        "tile_index": (1, Verdict.PROVEN),
        "wall_seconds": asked,
    }
    assert rows[2].differences[0].needed == 9


def test_what_else_differs_is_told(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0]})
    host = {**HOST, "kernel": "6.12.0", "qemu": "9.0.0"}
    after = _told(tmp_path / "after", {"none": [9.0]}, size="full", accelerator="kvm", seed=7, host=host)
    warnings = _compared(before, after).warnings
    assert warnings == (
        "size differs: before smoke, after full",
        "accelerator differs: before tcg, after kvm",
        "seed differs: before 1, after 7",
        "host kernel differs: before 6.1.0-18-amd64, after 6.12.0",
        "host qemu differs: before 7.2.22, after 9.0.0",
    )


def test_what_did_not_pass_is_shown_and_never_compared(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    story = Story(tmp_path / "after" / "run.sqlite", run="after").begin({"cache": ["none", "writeback"]})
    story.start_cell({"cache": "none"})
    story.measure("web", 1.0)
    story.fail("mail", "3 of 8 mails were lost")
    story.end_cell("failed", ["tile 1 mail: 3 of 8 mails were lost"])
    story.start_cell({"cache": "writeback"})
    story.measure("web", 5.0)
    story.end_cell("invalid", ["clients started 700 ms apart"], wall=6.0)
    with RunReader(story.end("failed", 1)) as reader:
        comparison = _compared(before, run_document(reader))
    web = {row.axes["cache"]: row for row in comparison.rows if row.workload == "web"}
    assert web["none"].figures[1].state == "invalid"
    assert web["writeback"].figures[1].state == "invalid"
    assert web["writeback"].figures[1].spread is not None
    assert [percents(row) for row in web.values()] == [[None], [None]]
    assert "after: cell 1: failed, tile 1 mail: 3 of 8 mails were lost" in comparison.warnings
    assert "after: cell 2: invalid, clients started 700 ms apart" in comparison.warnings


def test_single_cells_meet_whatever_their_axes_say(tmp_path: Path) -> None:
    document = _told(tmp_path / "run", {"none": [10.0], "writeback": [4.0]})
    comparison = compare([Side.of("last:1", document, 1), Side.of("last:2", document, 2)])
    assert percents(comparison.rows[0]) == [pytest.approx(-60.0)]
    assert comparison.warnings == ()


def test_a_cell_without_a_counterpart_is_told(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    after = _told(tmp_path / "after", {"none": [9.0], "unsafe": [1.0]})
    assert _compared(before, after).warnings == (
        "before: cell 2: left out, as it has no counterpart",
        "after: cell 2: left out, as it has no counterpart",
    )


def test_nothing_to_compare_is_one_line(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    after = _told(tmp_path / "after", {"unsafe": [1.0], "directsync": [2.0]})
    with pytest.raises(UsageError, match="no cell with the same axes"):
        _compared(before, after)
    with pytest.raises(UsageError, match="needs two"):
        _compared(before)
    with pytest.raises(UsageError, match="last:9: has no cell 9"):
        Side.of("last:9", before, 9)


@pytest.mark.parametrize("name", sorted(set(TOLD) - {"not-begun"}))
def test_what_a_comparison_reads_is_what_the_whole_document_says(name: str, tmp_path: Path) -> None:
    with RunReader(TOLD[name](tmp_path / "run.sqlite")) as reader:
        whole, read = run_document(reader), compared_document(reader)
    assert (read.run, read.tables) == (whole.run, [])
    for cell, full in zip(read.cells, whole.cells, strict=True):
        assert cell.host.items() <= full.host.items()
        left_out: dict[str, Any] = {"host": cell.host, "stages": [], "disk_traffic": None, "bound_by": None}
        assert cell == replace(full, **left_out)
    assert len(sides_by_axis(read)) == len(sides_by_axis(whole)) > 1
    assert compare(sides_by_axis(read)) == compare(sides_by_axis(whole))


def test_a_comparison_reads_whether_the_disk_was_busy(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none", "writeback"]})
    for cache, busy in (("none", 3.0), ("writeback", 5.0)):
        story.start_cell({"cache": cache}, settings={"cache": cache})
        story.execute(2.0, [{"disk_util_percent": busy, "cpu_user_percent": 40.0}] * 2)
        story.measure("web", 2.0)
        story.end_cell(wall=2.0)
    with RunReader(story.end()) as reader:
        read = compared_document(reader)
    assert list(read.cells[0].host) == ["disk_util_percent"]
    (warning,) = [text for text in compare(sides_by_axis(read)).warnings if "disk" in text]
    assert warning.startswith("the disk was busy for at most 5.0 % of the time")


def _of_a_command(path: Path, unit: str, better: str | None, kind: str = "command") -> RunDocument:
    """A run whose scenario says what its metric `rate` is."""
    metrics = {"rate": {"find": "(a)", "unit": unit, "better": better}, "size": {"find": "(b)", "unit": "B"}}
    workload = {"kind": kind, "run": "true", "metrics": metrics}
    story = Story(path / "run.sqlite", run=path.name).begin({}, said={"workloads": {"web": workload}})
    for repeat in (1, 2):
        story.start_cell({}, repeat)
        story.execute(10.0)
        story.measure("web", 9.0)
        story.measure("web", 7.0, "rate", unit)
        story.measure("web", 70.0, "size", "B")
        story.end_cell(wall=10.0)
    with RunReader(story.end()) as reader:
        return run_document(reader)


@pytest.mark.parametrize(
    ("unit", "better", "words"),
    [
        ("s", "lower", "old: in 1/s, more is better; new: in s, less is better"),
        ("1/s", "lower", "old: in 1/s, more is better; new: in 1/s, less is better"),
        ("1/s", None, "old: in 1/s, more is better; new: in 1/s, neither end is better"),
    ],
)
def test_a_metric_that_means_something_else_now_is_not_compared(
    tmp_path: Path, unit: str, better: str | None, words: str
) -> None:
    documents = [_of_a_command(tmp_path / "old", "1/s", "higher"), _of_a_command(tmp_path / "new", unit, better)]
    sides = [Side.of(document.run.id, document) for document in documents]
    found = compare(sides)
    line = f"web rate is not compared, as it is not the same: {words}"
    assert line in found.warnings
    assert {row.metric for row in found.rows if row.workload == "web"} == {"run_time", "size"}
    with pytest.raises(UsageError, match=f"^--metric 'rate': {line}$"):
        compare(sides, chosen=["rate"])
    with pytest.raises(UsageError, match=f"^--fail-if 'web.rate < -5 %': {line}$"):
        judge(found, [Condition.parse("web.rate < -5 %")])


def _of_an_axis(path: Path, units: dict[str, str]) -> RunDocument:
    """A run whose metric `rate` has a unit of its own at each value of its axis `tool`."""
    said = {"workloads": {"web": {"kind": "command", "run": "true", "metrics": {"rate": {"find": "(a)"}}}}}
    story = Story(path / "run.sqlite", run=path.name).begin({"tool": list(units)}, said=said)
    for tool, unit in units.items():
        for repeat in (1, 2):
            story.start_cell({"tool": tool}, repeat)
            story.execute(10.0)
            story.measure("web", 9.0)
            story.measure("web", 7.0, "rate", unit)
            story.end_cell(wall=10.0)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def test_a_unit_that_another_place_has_is_no_matter_where_the_sides_of_each_place_agree(tmp_path: Path) -> None:
    units = {"dd": "B/s", "redis": "1/s"}
    found = _compared(*(_of_an_axis(tmp_path / name, units) for name in ("old", "new")))
    assert {row.axes["tool"]: row.unit for row in found.rows if row.metric == "rate"} == units
    assert found.unlike == {} and not any("not compared" in warning for warning in found.warnings)
    other = _compared(*(_of_an_axis(tmp_path / f"{dd}", {"dd": dd, "redis": "1/s"}) for dd in ("B", "s")))
    assert list(other.unlike) == [("web", "rate")]


def test_a_metric_that_means_the_same_is_compared(tmp_path: Path) -> None:
    found = _compared(*(_of_a_command(tmp_path / name, "1/s", "higher") for name in ("old", "new")))
    assert {row.metric for row in found.rows if row.workload == "web"} == {"run_time", "rate", "size"}
    assert not any("not compared" in warning for warning in found.warnings)


@pytest.mark.parametrize("first", [0, 1])
def test_a_record_that_does_not_tell_a_workloads_kind_does_not_tell_better_ends(tmp_path: Path, first: int) -> None:
    known = _of_a_command(tmp_path / "old", "B", "lower")
    unknown = _of_a_command(tmp_path / "new", "B", "lower", kind="gone")
    found = _compared(*((known, unknown) if first == 0 else (unknown, known)))
    (rate,) = (row for row in found.rows if row.metric == "rate")
    assert rate.more_is_better is False and found.unlike == {}
