"""Differences with the yardstick taken out: what a host's own speed did to both sides is gone, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.comparison.compare import Side, compare, sides_by_axis
from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Verdict
from vmlab.analysis.comparison.noise_of_control import noise_of
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.store.reader import RunReader

Reading = tuple[float, float | None, float | None]
"""The run time of a cell's workload, and the yardstick before and after it."""


def told(path: Path, sides: Mapping[str, Sequence[Reading]]) -> RunDocument:
    """A run with a cell for each cache mode and repeat, whose rate is 100 over its run time."""
    story = Story(path / "run.sqlite", run=path.name).begin({"cache": list(sides)}, cells=99)
    for cache, readings in sides.items():
        for repeat, (seconds, before, after) in enumerate(readings, start=1):
            story.start_cell({"cache": cache}, repeat)
            if before is not None:
                story.yardsticks(before, after)
            story.measure("web", seconds)
            story.measure("web", 100 / seconds, "pages_per_second", "1/s")
            story.measure("web", 300, "files", "1")
            story.end_cell(wall=seconds)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def rows_of(found: Comparison) -> dict[str, Row]:
    """By their metric."""
    return {row.metric: row for row in found.rows}


SPEEDS = (1.0, 1.3, 0.9, 1.1, 1.25, 0.8, 1.05, 0.95)


def moving(factor: float, speeds: Sequence[float]) -> list[Reading]:
    """Readings of a host whose speed moves, with a yardstick that is longer by as much in the mean."""
    noise = (0.01, -0.02, 0.005, -0.008, 0.012, -0.004, 0.007, -0.011)
    return [
        (10 * factor * (1 + own) * slow, 0.3 * slow * 0.9, 0.3 * slow * 1.1)
        for own, slow in zip(noise, speeds, strict=True)
    ]


def test_what_the_hosts_speed_did_to_one_side_is_taken_out(tmp_path: Path) -> None:
    sides = {"none": moving(1.0, SPEEDS), "writeback": moving(1.1, SPEEDS[::-1])}
    found = compare(sides_by_axis(told(tmp_path / "run", sides)))
    rows = rows_of(found)
    (raw,), (without,) = rows["run_time"].differences, rows["run_time"].without_yardstick
    assert without is not None
    assert (raw.verdict, without.verdict) == (Verdict.NOT_PROVEN, Verdict.PROVEN)
    assert without.percent == pytest.approx(10.0, abs=0.01)
    assert raw.interval is not None and raw.interval[1] - raw.interval[0] > 20
    assert (without.family, without.readings) == (raw.family, raw.readings)


def test_a_rate_is_multiplied_and_what_is_neither_has_nothing(tmp_path: Path) -> None:
    sides = {"none": [(10.0, 0.2, 0.2)], "writeback": [(20.0, 0.4, 0.4)]}
    found = compare(sides_by_axis(told(tmp_path / "run", sides)))
    rows = rows_of(found)
    for metric, raw in (("run_time", 100.0), ("pages_per_second", -50.0), ("wall_seconds", 100.0)):
        (without,) = rows[metric].without_yardstick
        assert without is not None
        assert rows[metric].differences[0].percent == pytest.approx(raw)
        assert without.percent == pytest.approx(0.0, abs=1e-9)
    assert rows["files"].without_yardstick == (None,)
    # At the median of both yardsticks, 0.3 s, the baseline would have taken 15 s.
    figure = rows["run_time"].figures_without_yardstick[0]
    assert figure.spread is not None and figure.spread.mean == pytest.approx(15.0)
    assert rows["pages_per_second"].figures_without_yardstick[1].readings[0].value == pytest.approx(5 * 4 / 3)


@pytest.mark.parametrize("missing", [(10.0, 0.3, None), (10.0, None, None)])
def test_a_place_where_one_cell_has_no_yardstick_has_none(missing: Reading, tmp_path: Path) -> None:
    before = told(tmp_path / "before", {"none": [(10.0, 0.3, 0.3)] * 3, "writeback": [(9.0, 0.3, 0.3)] * 3})
    after = told(tmp_path / "after", {"none": [(10.0, 0.3, 0.3)] * 3, "writeback": [(9.0, 0.3, 0.3), missing]})
    found = compare([Side.of(one["run"]["id"], one) for one in (before, after)])
    known = {(row.axes["cache"], row.metric): row.without_yardstick[0] is not None for row in found.rows}
    assert known["none", "run_time"] and not known["writeback", "run_time"]
    assert not known["writeback", "wall_seconds"]


def test_the_document_has_it_under_a_key_of_its_own(tmp_path: Path) -> None:
    sides = {"none": moving(1.0, SPEEDS), "writeback": moving(1.1, SPEEDS[::-1])}
    body = compare(sides_by_axis(told(tmp_path / "run", sides))).to_json()
    assert body["yardstick"] == {
        "median_seconds": pytest.approx(0.3 * 1.025),
        "shortest_seconds": pytest.approx(0.3 * 0.8),
        "longest_seconds": pytest.approx(0.3 * 1.3),
    }
    (candidate,) = body["rows"][0]["candidates"]
    assert candidate["difference"]["verdict"] == "no difference proven"
    assert candidate["without_yardstick"]["verdict"] == "difference proven"
    assert candidate["without_yardstick"].keys() == candidate["difference"].keys()
    none = compare(sides_by_axis(told(tmp_path / "bare", {"none": [(1.0, None, None)], "sync": [(2.0, None, None)]})))
    assert none.to_json()["yardstick"] is None
    assert none.to_json()["rows"][0]["candidates"][0]["without_yardstick"] is None


def test_noise_with_the_yardstick_taken_out_is_that_of_the_control_run_with_it_taken_out(tmp_path: Path) -> None:
    control = told(tmp_path / "control", {"none": moving(1.0, SPEEDS), "writeback": moving(1.0, SPEEDS[::-1])})
    noise = noise_of(control)
    key = ("web", "run_time")
    assert noise.percents[key] > 15 and noise.without_yardstick[key] < 3
    sides = {"none": moving(1.0, SPEEDS), "writeback": moving(1.1, SPEEDS[::-1])}
    row = rows_of(compare(sides_by_axis(told(tmp_path / "run", sides)), noise))["run_time"]
    (without,) = row.without_yardstick
    assert without is not None and without.verdict == Verdict.PROVEN
    assert (row.differences[0].noise, without.noise) == (noise.percents[key], noise.without_yardstick[key])
