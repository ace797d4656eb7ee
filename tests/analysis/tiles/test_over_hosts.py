"""What hosts did together: sums of rates, the worst host, and one outcome for all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import laid_out, unrun_document
from vmlab.analysis.figures.over_tiles import Directions
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.over_hosts import cells_of_all_hosts, together_documents
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
)
from vmlab.model.event import (
    CellPlaced,
    Event,
    TogetherEnded,
)
from vmlab.model.results import Measurement
from vmlab.report.blocks import Table
from vmlab.report.run.run_page import run_table
from vmlab.report.run.together_text import skew_words, together_section

RATES = {"hv1": (100.0, 90.0), "hv2": (80.0, 120.0)}
TIMES = {"hv1": (10.0, 11.0), "hv2": (14.0, 9.0)}


def _events(outcome: str = "passed", repeats: int = 1) -> list[Event]:
    found: list[Event] = []
    for repeat in range(1, repeats + 1):
        numbers = [2 * repeat - 1, 2 * repeat]
        for number, host in zip(numbers, RATES, strict=True):
            found += [
                CellPlaced(cell=number, name=host),
                CellStarted(cell=number, axes={"host": host, "cache": "none"}, repeat=repeat, guests=2),
            ]
            for tile in (1, 2):
                rate, time = RATES[host][tile - 1] + repeat, TIMES[host][tile - 1] + repeat
                figures = [("requests_per_second", rate, "1/s"), ("run_time", time, "s")]
                found += [
                    MeasurementTaken(cell=number, figure=Measurement("web", tile, "front", *figure))
                    for figure in figures
                ]
            found.append(CellEnded(cell=number, outcome="passed", reasons=[], wall_seconds=20.0, start_skew_ms=1.0))
        found.append(
            TogetherEnded(
                cells=numbers,
                outcome=outcome,
                reason="" if outcome == "passed" else "host hv1 failed",
                starts_ms={"hv1": 0.0, "hv2": 3.0},
                skew_ms=3.0 + repeat,
                skew_uncertainty_ms=0.5,
            )
        )
    return found


def _document(outcome: str = "passed", repeats: int = 1) -> RunDocument:
    timeline = RunTimeline.of(_events(outcome, repeats))
    cells = [cell.document("aborted", Directions({"web": "http"})) for cell in timeline.cells.values()]
    document = unrun_document("probe", {})
    return replace(document, cells=cells, together=together_documents(timeline, cells))


def test_rates_add_up_and_the_worst_tile_of_any_host_stands_for_the_rest() -> None:
    """Over two hosts of two tiles each."""
    (whole,) = _document().together
    assert whole.axes == {"cache": "none"}
    assert (whole.start_skew_ms, whole.skew_uncertainty_ms) == (4.0, 0.5)
    figures = {one.metric: one for one in whole.over_hosts}
    assert figures["requests_per_second"].sum == pytest.approx(101 + 91 + 81 + 121)
    assert (figures["run_time"].sum, figures["run_time"].worst) == (None, 15.0)
    assert figures["run_time"].worst_host == "hv2"


def test_a_cell_of_all_hosts_is_compared_as_any_other() -> None:
    """Its sums against those of another run, under the value `all` of the axis host."""
    documents = [_document(repeats=8), _document(repeats=8)]
    (first, *_) = cells_of_all_hosts(documents[0])
    assert first.axes == {"cache": "none", "host": "all"}
    documents = [replace(one, run=replace(one.run, id=f"run-{place}")) for place, one in enumerate(documents)]
    found = compare([Side.of(str(place), document) for place, document in enumerate(documents)])
    (row,) = [row for row in found.rows if row.axes["host"] == "all" and row.metric == "requests_per_second"]
    assert row.figures[0].spread is not None
    assert row.figures[0].spread.mean == pytest.approx(390 + 4 * 4.5)


def test_one_that_fails_leaves_no_figures_of_the_others() -> None:
    """Each cell has the outcome of all."""
    document = _document("failed")
    assert [(cell.outcome, cell.reasons) for cell in document.cells] == [("failed", ["host hv1 failed"])] * 2
    assert cells_of_all_hosts(document)[0].outcome == "failed"


def test_the_table_names_the_worst_host_and_the_skew() -> None:
    """In text, and with the largest skew of all cells."""
    document = _document(repeats=2)
    (table,) = together_section(document).blocks
    assert isinstance(table, Table)
    (column,) = table.columns
    assert column.heading == "cache none"
    words = dict(zip(table.labels, column.texts, strict=True))
    assert words["web, worst host (s)"].endswith("(hv2)")
    assert skew_words(document.together) == "at most 5.0 ms apart (± 0.5 ms)"
    assert "all hosts together" in run_table(laid_out(document))
