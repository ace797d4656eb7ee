"""A cell whose cache mode was switched mid-run is invalid: shown in spans, and counted nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side, sides_by_axis
from vmlab.analysis.comparison.repeats_needed import widest_percent
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.figures.counted_cells import counts, was_switched
from vmlab.analysis.figures.figure import MISSING, figure_of, wall_seconds
from vmlab.analysis.figures.reading import find
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.scores import scores_of
from vmlab.model.cell_event import (
    CacheSwitched,
    KsmSwitched,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
)
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import jsonable
from vmlab.model.results import Measurement
from vmlab.model.run import WARM_UP
from vmlab.report.run.cell_text import cell_text
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

REASON = "the cache mode changed from none to writeback while it ran"


def switched_cell(story: Story, *, seconds: float, repeat: int, tiles: int = 1) -> None:
    """A cell of four seconds, switched after one and after three of them; the disk is busy 80, 20, 20 and 60 %."""
    number = story.start_cell({"tiles": tiles, "cache": "none"}, repeat)
    story.writer.append(PhaseStarted(**story.now(), cell=number, phase="execute"))
    for second, busy in enumerate((80.0, 20.0, 20.0, 60.0)):
        story.sample(1.0, {"disk_util_percent": busy})
        if second in (0, 2):
            modes = ("none", "writeback") if second == 0 else ("writeback", "none")
            story.writer.append(
                CacheSwitched(
                    **story.now(0),
                    cell=number,
                    origin="vmlab set",
                    before=modes[0],
                    after=modes[1],
                    pauses_ms={"t1-web": 6.5},
                    drained_seconds=1.25,
                    drained_bytes=2**20,
                )
            )
    story.writer.append(PhaseEnded(**story.now(0), cell=number, phase="execute", seconds=4.0))
    for tile in range(1, tiles + 1):
        place = {"cell": number, "workload": "web", "tile": tile, "guest": "web"}
        story.writer.append(WorkloadEnded(**story.now(), **place, outcome="passed", seconds=seconds))  # type: ignore[arg-type]
        figure = Measurement("web", tile, "web", "run_time", seconds, "s")
        story.writer.append(MeasurementTaken(**story.now(), cell=number, figure=figure))
    story.end_cell("invalid", [REASON], wall=seconds)


def documents(story: Story) -> tuple[RunDocument, RunDocument]:
    """The whole document, and the one for comparisons."""
    with RunReader(story.end("invalid", 4)) as reader:
        whole, compared = run_document(reader), compared_document(reader)
    json.dumps(jsonable(whole), allow_nan=False)
    return whole, compared


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "run" / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=4)


def test_the_document_has_each_switch_and_the_hosts_figures_by_span(story: Story) -> None:
    switched_cell(story, seconds=10.0, repeat=1)
    (cell,) = documents(story)[0].cells
    first, second = cell.switches
    assert (first.seconds, first.before, first.after) == (1.0, "none", "writeback")
    assert (second.seconds, second.before, second.after) == (3.0, "writeback", "none")
    assert (first.pauses_ms, first.drained_seconds, first.drained_bytes) == ({"t1-web": 6.5}, 1.25, 2**20)
    assert (first.origin, first.at) == ("vmlab set", "2026-11-21T14:30:04.000+00:00")
    spans = [(span.since, span.until, span.cache) for span in cell.spans]
    assert spans == [(0.0, 1.0, "none"), (1.0, 3.0, "writeback"), (3.0, 4.0, "none")]
    assert [span.host["disk_util_percent"].mean for span in cell.spans] == [80.0, 20.0, 60.0]
    assert (cell.host, cell.disk_traffic, cell.bound_by) == ({}, None, None)


def test_a_cell_that_was_not_switched_has_no_spans_and_its_host(story: Story) -> None:
    story.start_cell({"cache": "none"})
    story.execute(2.0, [{"disk_util_percent": 50.0}] * 2)
    story.end_cell(wall=2.0)
    (cell,) = documents(story)[0].cells
    assert (cell.switches, cell.spans) == ([], []) and cell.host["disk_util_percent"].mean == 50.0


def test_it_counts_in_no_figure_also_where_it_is_the_only_one(story: Story) -> None:
    switched_cell(story, seconds=10.0, repeat=1)
    document = documents(story)[0]
    found = figure_of(document.cells, wall_seconds)
    assert (found.state, found.spread, found.left_out) == (MISSING, None, 1)
    lookup = find(document, {"cache": "none"}, "run_time")
    assert lookup.figure.comparable is None
    text = run_table(document, 200)
    assert "10.0" not in text, "no table shows its figure"
    assert REASON in text


def test_beside_repeats_that_count_it_is_left_out_of_comparison_and_scores(story: Story) -> None:
    for repeat in (1, 2):
        for tiles in (1, 2):
            story.start_cell({"tiles": tiles, "cache": "none"}, repeat)
            story.execute(5.0)
            for tile in range(1, tiles + 1):
                story.measure("web", 5.0 * tiles, tile=tile)
            story.end_cell(wall=5.0)
    switched_cell(story, seconds=1000.0, repeat=3)
    switched_cell(story, seconds=1000.0, repeat=3, tiles=2)
    document, compared = documents(story)
    alone = [cell for cell in document.cells if cell.axes["tiles"] == 1]
    found = figure_of(alone, wall_seconds)
    assert (found.state, found.spread and found.spread.mean, found.left_out) == ("passed", 5.0, 1)
    assert widest_percent(document.cells, ["run_time"]) == 0.0
    scores = [row for place in scores_of(document) for row in place.rows]
    assert scores and all(row.throughput.left_out == 0 or row.throughput.spread for row in scores)
    assert {round(one.value, 3) for row in scores for one in row.throughput.readings} == {0.2}
    sides = [Side.of("a", compared), Side.of("b", compared)]
    read = [one.value for row in compare(sides).rows for figure in row.figures for one in figure.readings]
    assert read and 1000.0 not in read
    by_axis = sides_by_axis(document)
    assert by_axis and all(side.cells for side in by_axis)


def test_alone_it_is_no_side_of_a_comparison(story: Story) -> None:
    switched_cell(story, seconds=10.0, repeat=1)
    with pytest.raises(UsageError, match="cell 1 was switched mid-run, which invalidates it"):
        Side.of("last", documents(story)[1], 1)


def test_its_page_tells_the_switches_and_the_spans(story: Story) -> None:
    switched_cell(story, seconds=10.0, repeat=1)
    document = documents(story)[0]
    text = cell_text(document, document.cells[0], 110)
    told = " ".join(text.split())
    assert "switched 1.00 s after the start, as vmlab set asked: cache none to writeback" in told
    assert "stood still for at most 6.50 ms; dirty pages written before in 1.2" in told
    row = next(line for line in text.splitlines() if line.startswith("disk util"))
    assert [word for word in row.split() if word[0].isdigit()] == ["80.0", "20.0", "60.0"]


def test_spans_have_what_was_in_force_of_cache_and_ksm(story: Story) -> None:
    """KSM goes on after one second of three, the cache mode to none after two."""
    number = story.start_cell({"cache": "writeback"}, settings={"cache": "writeback", "host": {"ksm": "off"}})
    story.writer.append(PhaseStarted(**story.now(), cell=number, phase="execute"))
    story.sample(1.0, {"ksm_saved_bytes": 0.0})
    story.writer.append(KsmSwitched(**story.now(0), cell=number, origin="test", before="off", after="on"))
    story.sample(1.0, {"ksm_saved_bytes": 2.0**30})
    story.writer.append(
        CacheSwitched(
            **story.now(0),
            cell=number,
            origin="test",
            before="writeback",
            after="none",
            pauses_ms={"t1-web": 6.5},
            drained_seconds=1.25,
            drained_bytes=None,
        )
    )
    story.sample(1.0, {"ksm_saved_bytes": 2.0**30})
    story.writer.append(PhaseEnded(**story.now(0), cell=number, phase="execute", seconds=3.0))
    story.end_cell("invalid", [REASON], wall=3.0)
    document = documents(story)[0]
    (cell,) = document.cells
    assert [(one.what, one.before, one.after) for one in cell.switches] == [
        ("ksm", "off", "on"),
        ("cache", "writeback", "none"),
    ]
    assert (cell.switches[0].pauses_ms, cell.switches[0].drained_seconds) == ({}, None)
    found = [(span.cache, span.ksm) for span in cell.spans]
    assert found == [("writeback", "off"), ("writeback", "on"), ("none", "on")]
    assert [span.host["ksm_saved_bytes"].mean for span in cell.spans] == [0.0, 2.0**30, 2.0**30]
    told = " ".join(cell_text(document, cell, 140).split())
    assert "switched 1.00 s after the start, as test asked: ksm off to on" in told
    assert "ksm / cache off / writeback, 0.00 to 1.00 s on / writeback, 1.00 to 2.00 s on / none, 2.00 to" in told


@pytest.mark.parametrize(
    ("cell", "reading", "switched"),
    [
        ({"repeat": 1}, True, False),
        ({"repeat": 1, "looped": False, "switches": [], "tile_changes": []}, True, False),
        ({"repeat": WARM_UP}, False, False),
        ({"repeat": 2, "looped": True}, False, False),
        ({"repeat": 2, "switches": ["cache"]}, False, True),
        ({"repeat": 2, "tile_changes": ["added"]}, False, True),
    ],
)
def test_a_cell_is_a_reading_unless_it_warmed_up_looped_or_was_changed(
    cell: Any, reading: bool, switched: bool
) -> None:
    one = CellDocument(cell=1, outcome="passed", **cell)
    assert (counts(one), was_switched(one)) == (reading, switched)
