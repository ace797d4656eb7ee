"""Throughput and latency of a loop: by tile, over all tiles, in the record, and in no figure that counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.cell_shape import LoopRow, RoundFigure
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.figure import MISSING, figure_of, wall_seconds
from vmlab.analysis.record.loops import loop_rows
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.scores import scores_of
from vmlab.model.cell_event import (
    CacheSwitched,
    CellStarted,
    PhaseEnded,
    PhaseStarted,
    RoundEnded,
    TilesChanged,
    WorkloadStarted,
)
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import jsonable
from vmlab.report.event_words import event_sentence
from vmlab.report.run.cell_text import cell_text
from vmlab.report.run.loop_text import loop_section
from vmlab.report.writers.text import text_lines
from vmlab.store.reader import RunReader


def ended(tile: int, number: int, rate: float, p95: float = 0.5, *, outcome: str = "passed") -> RoundEnded:
    """A round of `web`, with as many requests a second."""
    values = {"run_time": 100 / rate, "requests_per_second": rate, "latency_p95": p95} if outcome == "passed" else {}
    return RoundEnded(
        wall=0.0,
        mono=float(number),
        cell=1,
        workload="web",
        tile=tile,
        guest="front",
        round=number,
        outcome=outcome,
        seconds=100 / rate,
        values=values,
        units={"run_time": "s", "requests_per_second": "1/s", "latency_p95": "s"},
        throughput="requests_per_second",
        latency="latency_p95",
        reason="" if outcome == "passed" else "no answer",
    )


def mail(number: int, seconds: float) -> RoundEnded:
    """A round of a workload whose kind tells no rate and no latency."""
    return RoundEnded(
        wall=0.0,
        mono=float(number),
        cell=1,
        workload="mail",
        tile=1,
        guest="front",
        round=number,
        outcome="passed",
        seconds=seconds,
        values={"run_time": seconds},
        units={"run_time": "s"},
        throughput="run_time",
        latency="run_time",
    )


def test_rates_over_rounds_are_of_all_work_in_all_time_and_add_up_over_tiles() -> None:
    # 100 requests in 10 s and 100 in 2.5 s are 200 in 12.5 s.
    rounds = [ended(1, 1, 10.0, 0.9), ended(1, 2, 40.0, 0.1), ended(1, 3, 16.0, 0.4), ended(2, 1, 5.0, 2.0)]
    first, second, both = loop_rows([*rounds[:2], rounds[3]])
    assert (first.tile, first.rounds, first.throughput, first.latency_seconds) == (1, 2, 16.0, 0.5)
    assert (second.tile, second.throughput, second.latency_seconds) == (2, 5.0, 2.0)
    assert (both.tile, both.rounds, both.throughput, both.latency_seconds) == (None, 3, 21.0, 2.0)
    assert loop_rows(rounds)[0].latency_seconds == 0.4, "the median of three"


def test_the_newest_rounds_alone_are_what_live_shows() -> None:
    rows = loop_rows([ended(1, 1, 10.0), ended(1, 2, 40.0), ended(2, 1, 5.0)], newest=1)
    assert [(row.tile, row.rounds, row.throughput) for row in rows] == [(1, 2, 40.0), (2, 1, 5.0), (None, 3, 45.0)]


def loop_lines(rows: list[LoopRow]) -> list[str]:
    return text_lines([*loop_section(rows).blocks], 100)


def test_a_round_that_failed_has_no_part_and_a_kind_without_a_rate_counts_rounds() -> None:
    assert loop_rows([ended(1, 1, 10.0, outcome="failed")]) == []
    first, _ = loop_rows([mail(1, 30.0), mail(2, 10.0)])
    assert first == LoopRow("mail", 1, 2, 0.05, "1/s", True, 20.0, "run_time")
    assert "3.00  rounds/min   20.0 s  run_time" in loop_lines([first])[1]


def test_the_grid_has_all_tiles_together_where_there_are_more_than_one() -> None:
    one = loop_lines(loop_rows([ended(1, 1, 10.0)]))
    two = loop_lines(loop_rows([ended(1, 1, 10.0), ended(2, 1, 5.0)]))
    assert len(one) == 2 and len(two) == 4
    assert two[3].split()[:4] == ["web", "all", "2", "15.0"]
    assert loop_lines([]) == []


def test_a_round_is_a_sentence() -> None:
    sentence = event_sentence(ended(1, 3, 10.0, 0.25))
    assert sentence is not None
    assert sentence.text == "tile 1 web round 3 passed: 10.0 1/s, latency_p95 250.0 ms"
    failed = event_sentence(ended(1, 4, 10.0, outcome="failed"))
    assert failed is not None
    assert (failed.level, failed.text) == ("error", "tile 1 web round 4 failed: no answer")


def test_a_workload_that_starts_again_is_at_its_beginning() -> None:
    place = {"cell": 1, "workload": "web", "tile": 1, "guest": "front", "benchmark": "http"}
    known = RunTimeline.of(
        [
            CellStarted(mono=0.0, cell=1, axes={}, repeat=1, guests=1, looped=True),
            WorkloadStarted(mono=1.0, **place, late_ms=0.0, uncertainty_ms=0.0),  # type: ignore[arg-type]
            ended(1, 1, 10.0),
            WorkloadStarted(mono=20.0, **place, late_ms=0.0, uncertainty_ms=0.0, round=2),  # type: ignore[arg-type]
        ]
    )
    assert known.cell is not None
    assert known.cell.workloads[1, "web"].began == 20.0
    assert [one.round for one in known.cell.rounds] == [1]


@pytest.fixture
def document(tmp_path: Path) -> RunDocument:
    """A loop of ten seconds, switched after five: two rounds before, one after."""
    story = Story(tmp_path / "run" / "run.sqlite").begin({"cache": ["writeback"]})
    number = story.start_cell({"cache": "writeback"}, looped=True)
    story.writer.append(PhaseStarted(**story.now(0), cell=number, phase="execute"))
    began = story.mono
    for second in range(1, 11):
        story.sample(1.0, {"disk_util_percent": 50.0})
        rounds = {2: (1, 10.0), 4: (2, 10.0), 8: (3, 40.0)}
        if second in rounds:
            story.writer.append(replace(ended(1, *rounds[second]), mono=story.mono))
        if second == 5:
            story.writer.append(
                CacheSwitched(
                    **story.now(0),
                    cell=number,
                    origin="test",
                    before="writeback",
                    after="none",
                    pauses_ms={},
                    drained_seconds=0.1,
                    drained_bytes=None,
                )
            )
    assert story.mono - began == 10.0
    story.writer.append(PhaseEnded(**story.now(0), cell=number, phase="execute", seconds=10.0))
    story.end_cell("invalid", ["switched"], wall=10.0)
    with RunReader(story.end("invalid", 4)) as reader:
        return run_document(reader)


def test_the_record_has_each_round_and_the_rates_of_each_span(document: RunDocument) -> None:
    json.dumps(jsonable(document), allow_nan=False)
    (cell,) = document.cells
    assert cell.looped and cell.measurements == []
    assert [(one.round, one.verified) for one in cell.rounds] == [(1, 2.0), (2, 4.0), (3, 8.0)]
    assert cell.rounds[2].figures["requests_per_second"] == RoundFigure(40.0, "1/s")
    before, after = cell.spans
    assert [(row.tile, row.rounds, row.throughput) for row in before.loop] == [
        (1, 2, 10.0),
        (None, 2, 10.0),
    ]
    assert [(row.tile, row.rounds, row.throughput) for row in after.loop] == [(1, 1, 40.0), (None, 1, 40.0)]
    text = cell_text(document, cell, 120)
    assert "writeback, 0.00 to 5.00 s\nloop" in text
    assert "none, 5.00 to 10.0 s\nloop" in text


def test_a_tile_that_was_added_divides_the_record_into_spans(tmp_path: Path) -> None:
    story = Story(tmp_path / "run" / "run.sqlite").begin({"cache": ["writeback"]})
    number = story.start_cell({"cache": "writeback", "tiles": 1}, looped=True)
    story.writer.append(PhaseStarted(**story.now(0), cell=number, phase="execute"))
    for second, busy in enumerate((80.0, 80.0, 20.0, 20.0)):
        story.sample(1.0, {"disk_util_percent": busy})
        story.writer.append(replace(ended(1, second + 1, 10.0), mono=story.mono))
        if second == 1:
            story.writer.append(
                TilesChanged(wall=0.0, mono=story.mono, cell=number, origin="vmlab set", before=1, after=2)
            )
    story.writer.append(PhaseEnded(**story.now(0), cell=number, phase="execute", seconds=4.0))
    story.end_cell("invalid", ["tiles"], wall=4.0)
    with RunReader(story.end("invalid", 4)) as reader:
        document = run_document(reader)
    (cell,) = document.cells
    (change,) = cell.tile_changes
    assert (change.seconds, change.before, change.after, change.origin) == (2.0, 1, 2, "vmlab set")
    assert [(one.since, one.until, one.tiles, one.cache) for one in cell.spans] == [
        (0.0, 2.0, 1, "writeback"),
        (2.0, 4.0, 2, "writeback"),
    ]
    assert [one.host["disk_util_percent"].mean for one in cell.spans] == [80.0, 20.0]
    assert [one.loop[0].rounds for one in cell.spans] == [2, 2]
    assert cell.host == {}
    text = cell_text(document, cell, 120)
    assert "2.00 s after the start, as vmlab set asked: tile 2 was added" in text
    assert "writeback, 2 tiles, 2.00 to 4.00 s" in text


def test_a_loop_counts_in_no_figure(tmp_path: Path) -> None:
    story = Story(tmp_path / "run" / "run.sqlite").begin({"cache": ["writeback"]})
    story.start_cell({"cache": "writeback"}, looped=True)
    story.execute(10.0)
    story.measure("web", 5.0)
    story.end_cell(wall=10.0)
    with RunReader(story.end()) as reader:
        document = run_document(reader)
    found = figure_of(document.cells, wall_seconds)
    assert (found.state, found.spread) == (MISSING, None)
    assert scores_of(document) == []
    with pytest.raises(UsageError, match="cell 1 is a loop, whose values do not count"):
        Side.of("last", document, 1)
    with pytest.raises(UsageError, match="has no cell"):
        Side.of("last", document)
