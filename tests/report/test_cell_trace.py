"""The picture of a cell's time, from a recorded run, against what `vmlab show --phases` says of the same cell."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from lxml import etree

from screenshots.cell_trace import SHORTEST, picture, spans_of, worked
from vmlab.analysis.record.phases import run_time
from vmlab.model.errors import UsageError
from vmlab.report.demo.duration import FOLDER
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[RunReader]:
    """The run of the demo."""
    with RunReader(Path(shutil.copy(FOLDER / STORE, tmp_path / STORE))) as reader:
        yield reader


def test_the_parts_follow_each_other_and_fill_the_cell(recorded: RunReader) -> None:
    cell = run_time(recorded).cells[0]
    parts = [span for span in spans_of(cell, []) if span.text]
    assert [span.text for span in parts] == [name for name in cell.parts if name != "other"]
    assert parts[0].since == 0
    assert all(one.until == pytest.approx(two.since, abs=0.01) for one, two in pairwise(parts))
    assert parts[-1].until == pytest.approx(cell.seconds, abs=0.01)


def test_every_step_that_can_be_seen_has_a_bar_where_it_was(recorded: RunReader) -> None:
    cell = run_time(recorded).cells[0]
    bars = {(span.row.partition(": ")[2], round(span.since, 6)) for span in spans_of(cell, []) if not span.text}
    seen = [step for step in cell.steps if (step.seconds or 0) >= SHORTEST]
    assert seen
    assert bars == {(step.step, round(step.began or 0, 6)) for step in seen}


def test_workloads_run_within_the_execute_phase(recorded: RunReader) -> None:
    cell = run_time(recorded).cells[0]
    spans = list(worked(recorded, cell))
    execute = next(span for span in spans_of(cell, []) if span.text == "execute")
    assert {span.row for span in spans} == {f"{name}: run" for name in ("database", "web", "mail")}
    assert all(execute.since <= span.since < span.until <= execute.until + 1 for span in spans)


def test_the_picture_stands_alone_and_names_what_it_shows(recorded: RunReader) -> None:
    root = picture(recorded, 1)
    texts = ["".join(map(str, one.itertext())) for one in root.iter(etree.Element, "{*}text")]
    assert {"execute", "database: verify", "host's CPU %", "guests' CPU %"} <= set(texts)
    (style,) = [text for one in root.iter("{*}style") if "--ink" in (text := one.text or "")]
    for name in ("--ink", "--s1", "--line"):
        assert f"{name}:" in style


def test_a_cell_that_is_not_there_is_told(recorded: RunReader) -> None:
    with pytest.raises(UsageError, match="has no cell 99"):
        picture(recorded, 99)
