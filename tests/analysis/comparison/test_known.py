"""How well figures are known, against intervals calculated by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.repeats_needed import widest_percent
from vmlab.analysis.document import run_document
from vmlab.analysis.tiles.throughput import throughput_metrics
from vmlab.store.reader import RunReader


def cells(folder: Path, times: dict[str, Sequence[float]], first: int = 1) -> list[CellDocument]:
    """Cells of one workload by cache mode, whose wall clock is a second more than its time."""
    story = Story(folder / "run.sqlite", run="run").begin({"cache": list(times)})
    for cache, seconds in times.items():
        for repeat, one in enumerate(seconds, start=first):
            story.cell({"cache": cache}, {"web": one}, one + 1, repeat)
    with RunReader(story.end()) as reader:
        return run_document(reader).cells


def test_the_least_certain_figure_is_half_its_interval_in_percent_of_its_mean(tmp_path: Path) -> None:
    made = cells(tmp_path, {"none": [10.0, 12.0, 14.0], "writeback": [10.0, 10.0, 10.0]})
    # t(0.975, 2) = 4.3027, s = 2: 4.3027 * 2 / sqrt(3) = 4.968 on a mean of 12.
    assert widest_percent(made, ["run_time"]) == pytest.approx(41.40, abs=0.01)


def test_one_reading_has_no_spread_and_no_cell_no_figure(tmp_path: Path) -> None:
    assert widest_percent(cells(tmp_path, {"none": [10.0, 10.0], "writeback": [10.0]}), ["run_time"]) == math.inf
    assert widest_percent([], ["run_time"]) is None


def test_a_warm_up_is_not_counted(tmp_path: Path) -> None:
    assert widest_percent(cells(tmp_path, {"none": [99.0, 10.0, 10.0]}, first=0), ["run_time"]) == 0


def test_what_did_not_pass_is_not_counted_and_a_point_without_any_is_left_out(tmp_path: Path) -> None:
    made = cells(tmp_path, {"none": [10.0, 10.0, 50.0], "writeback": [10.0, 20.0]})
    made[2:] = [replace(cell, outcome="invalid") for cell in made[2:]]
    assert widest_percent(made, ["run_time"]) == 0


def test_figures_of_the_host_do_not_count_and_others_than_run_time_leave_the_wall_clock_out(tmp_path: Path) -> None:
    made = cells(tmp_path, {"none": [10.0, 20.0]})
    assert widest_percent(made, ["host.cpu_user_percent"]) is None
    assert widest_percent(made, ["iops"]) is None


def test_a_workload_of_fixed_duration_is_known_by_its_throughput(tmp_path: Path) -> None:
    params = {"size_bytes": 2**20, "time": 3.0, "rw": "randread"}
    story = Story(tmp_path / "run.sqlite", run="run").begin({"cache": ["none"]}, cells=3)
    for repeat, rate in enumerate((10.0, 12.0, 14.0), start=1):
        settings = {"workloads": {"disk": {"kind": "fio", "params": params}}}
        story.start_cell({"cache": "none"}, repeat, settings=settings)
        story.execute(3.0)
        story.measure("disk", 3.0)
        story.measure("disk", rate, "throughput", "B/s")
        story.end_cell(wall=3.0)
    with RunReader(story.end()) as reader:
        made = run_document(reader).cells
    throughput = throughput_metrics({"disk": "fio"})
    assert throughput == {"disk": "throughput"}
    assert widest_percent(made, ["run_time"], throughput) == pytest.approx(41.40, abs=0.01)
    assert widest_percent(made, ["run_time"]) == 0, "a table that names the run time has that"
