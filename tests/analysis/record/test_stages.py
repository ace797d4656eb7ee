"""The host in each stage of a workload that has stages, such as a suite's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.told import BUSY
from tests.store.stories import Story
from vmlab.analysis.document import run_document
from vmlab.model.cell_event import (
    PhaseEnded,
    PhaseStarted,
    WorkloadProgressed,
)
from vmlab.model.event import CellWithdrawn
from vmlab.model.run import DONE, SETTLING
from vmlab.report.run.cell_text import cell_text
from vmlab.store.reader import RunReader


def test_each_stage_has_its_span_and_its_host(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"tiles": [1]}, cells=1)
    story.start_cell({"tiles": 1})
    story.writer.append(PhaseStarted(**story.now(), cell=1, phase="execute"))
    for stage, user in (("write", 20.0), ("read", 80.0)):
        progressed = {"cell": 1, "workload": "disk", "tile": 1, "done": 1.0, "total": 2.0, "unit": "stages"}
        story.writer.append(WorkloadProgressed(**story.now(), **progressed, stage=stage))  # type: ignore[arg-type]
        story.sample(10.0, {**BUSY, "cpu_user_percent": user})
    story.measure("disk", 22.0)
    story.writer.append(PhaseEnded(**story.now(), cell=1, phase="execute", seconds=25.0))
    story.end_cell(wall=25.0)
    with RunReader(story.end()) as reader:
        document = run_document(reader)
    (cell,) = document.cells
    assert [(one.workload, one.tile, one.stage) for one in cell.stages] == [
        ("disk", 1, "write"),
        ("disk", 1, "read"),
    ]
    assert [one.seconds for one in cell.stages] == [11.0, 11.0]
    users = [one.host["cpu_user_percent"].mean for one in cell.stages]
    assert users == [pytest.approx(20.0), pytest.approx(80.0)]
    text = cell_text(document, cell)
    assert max(map(len, text.splitlines())) <= 80
    assert "write" in text and "CPU user %" in text


def test_a_cell_that_is_measured_anew_has_no_stage_from_before(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"tiles": [1]}, cells=1)
    progressed = {"cell": 1, "workload": "disk", "tile": 1, "done": 1.0, "total": 2.0, "unit": "stages"}
    for number in (1, 2):
        story.cells = 0
        story.start_cell({"tiles": 1})
        story.writer.append(PhaseStarted(**story.now(), cell=1, phase="execute"))
        for stage in ("write", "read"):
            story.writer.append(WorkloadProgressed(**story.now(), **progressed, stage=stage))  # type: ignore[arg-type]
            story.sample(10.0, BUSY)
        if number == 1:
            story.writer.withdraw(CellWithdrawn(**story.now(), cell=1, name="", reason="the run was cut off"))
    story.measure("disk", 22.0)
    story.writer.append(PhaseEnded(**story.now(), cell=1, phase="execute", seconds=25.0))
    story.end_cell(wall=25.0)
    with RunReader(story.end()) as reader:
        (cell,) = run_document(reader).cells
    assert [(one.stage, one.seconds) for one in cell.stages] == [("write", 11.0), ("read", 11.0)]


def test_a_workload_without_stages_has_none(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"tiles": [1]}, cells=1)
    story.cell({"tiles": 1}, {"web": 3.0}, 4.0)
    with RunReader(story.end()) as reader:
        assert run_document(reader).cells[0].stages == []


def test_what_follows_a_client_is_no_stage_and_ends_the_last_one(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"tiles": [1]}, cells=1)
    story.start_cell({"tiles": 1})
    story.writer.append(PhaseStarted(**story.now(), cell=1, phase="execute"))
    for workload, stages in (("suite", ("write", "read", SETTLING, DONE)), ("plain", (SETTLING, DONE))):
        for stage in stages:
            progressed = {"cell": 1, "workload": workload, "tile": 1, "done": 1.0, "total": 2.0, "unit": "stages"}
            story.writer.append(WorkloadProgressed(**story.now(), **progressed, stage=stage))  # type: ignore[arg-type]
            story.sample(10.0, BUSY)
    story.measure("suite", 22.0)
    story.measure("plain", 1.0)
    story.end_cell(wall=90.0)
    with RunReader(story.end()) as reader:
        (cell,) = run_document(reader).cells
    assert [(one.workload, one.stage, one.seconds) for one in cell.stages] == [
        ("suite", "write", 11.0),
        ("suite", "read", 11.0),
    ]
