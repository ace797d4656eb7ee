"""Percentiles of guests' disks in documents, tables and exports, from readings as a run stores them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.cell_event import (
    CacheSwitched,
    DiskLatencyRead,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.event_json import from_json, to_json
from vmlab.report.exports.tidy import Exported, measurements
from vmlab.report.run.cell_text import cell_text
from vmlab.report.run.latency_text import latency_sentence, milliseconds
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

SCALE = [1_000_000, 1, 4]
"""Boundaries at 1, 10, 100 and 1000 ms: five bins."""


class LatencyStory(Story):
    """A run whose cells have readings of their guests' disks."""

    def read(
        self, guest: str, counts: dict[str, dict[str, list[int]]], scale: list[int] = SCALE, tile: int = 1
    ) -> None:
        self.writer.append(
            DiskLatencyRead(
                **self.now(), cell=self.cells, tile=tile, guest=guest, since=self.mono - 10, scale=scale, counts=counts
            )
        )

    def executed(self, cache: str) -> None:
        """A cell of two readings: ten reads of 1 to 10 ms, and ten of 100 to 1000 ms; writes and a flush."""
        number = self.start_cell({"cache": cache})
        self.writer.append(PhaseStarted(**self.now(), cell=number, phase="execute"))
        self.read("db", {"root": {"read": [1, 10]}, "data": {"write": [2, 90]}})
        self.read("web", {"root": {"read": [1, 5]}})
        self.writer.append(PhaseEnded(**self.now(), cell=number, phase="execute", seconds=20.0))
        self.read("db", {"root": {"read": [3, 10]}, "data": {"write": [0, 5, 0, 0, 0, 5], "flush": [4, 1]}})
        self.end_cell(wall=20.0)


def told(folder: Path, *caches: str) -> Path:
    store = folder / "run" / "run.sqlite"
    story = LatencyStory(store)
    story.begin({"cache": list(caches)})
    for cache in caches:
        story.executed(cache)
    story.end()
    return store


def document(store: Path) -> RunDocument:
    with RunReader(store) as reader:
        return run_document(reader)


def test_each_disk_has_percentiles_of_all_readings(tmp_path: Path) -> None:
    (cell,) = document(told(tmp_path, "none")).cells
    known = cell.disk_latency
    assert known is not None
    assert known.error_percent == pytest.approx((math.sqrt(10) - 1) * 100)
    assert (known.least_ms, known.most_ms) == (1.0, 1000.0)
    middle = math.sqrt(10)
    places = [(one.guest, one.disk, one.found.operation, one.found.requests) for one in known.disks]
    assert places == [
        ("db", "data", "write", 100),
        ("db", "data", "flush", 1),
        ("db", "root", "read", 20),
        ("web", "root", "read", 5),
    ]
    write, flush, read, _ = (one.found for one in known.disks)
    # 5 below 1 ms, 90 from 10 to 100 ms, 5 beyond the last boundary.
    assert write.p50_ms == pytest.approx(10 * middle)
    assert flush.p50_ms == flush.p99_ms == 1000.0
    assert read.p50_ms == pytest.approx(middle) and read.p95_ms == pytest.approx(100 * middle)
    over = {one.operation: one for one in known.over_disks}
    assert [over[name].requests for name in ("read", "write", "flush")] == [25, 100, 1]


def test_tables_and_cells_have_them_with_their_error(tmp_path: Path) -> None:
    known = document(told(tmp_path, "none", "writeback"))
    text = run_table(known)
    head = "latency of the guests' disks, p50 / p95 / p99 in ms, each ± 216 %"
    assert head in text
    lines = text[text.index(head) :].splitlines()
    assert lines[1].split() == ["cache", "none", "writeback"]
    assert lines[2].split("  ")[0] == "read" and lines[2].count("3.2 / 320 / 320") == 2
    of_cell = cell_text(known, known.cells[0])
    assert "latency of each disk, p50 / p95 / p99 in ms, each ± 216 %" in of_cell
    assert ["db", "data", "write", "100", "32", "32", "1000"] in [line.split() for line in of_cell.splitlines()]


def test_the_report_has_a_sentence_for_each_cell(tmp_path: Path) -> None:
    (cell,) = document(told(tmp_path, "none")).cells
    assert latency_sentence(cell) == (
        "Latency of the guests' disks, p50 / p95 / p99 in ms, each ± 216 %: "
        "read 3.2 / 320 / 320, write 32 / 32 / 1000, flush 1000 / 1000 / 1000."
    )


def test_a_record_without_readings_has_none(tmp_path: Path) -> None:
    store = tmp_path / "run" / "run.sqlite"
    story = Story(store)
    story.begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 2.0}, 2.0)
    story.end()
    known = document(store)
    assert known.cells[0].disk_latency is None
    assert "latency of" not in run_table(known)


def test_a_comparison_does_without(tmp_path: Path) -> None:
    with RunReader(told(tmp_path, "none")) as reader:
        assert compared_document(reader).cells[0].disk_latency is None


def test_a_switched_cell_has_them_in_its_spans(tmp_path: Path) -> None:
    store = tmp_path / "run" / "run.sqlite"
    story = LatencyStory(store)
    story.begin({"cache": ["none"]})
    number = story.start_cell({"cache": "none"})
    story.writer.append(PhaseStarted(**story.now(), cell=number, phase="execute"))
    story.read("db", {"root": {"read": [3, 7]}})
    switch: dict[str, Any] = {**story.now(), "cell": number, "origin": "test", "before": "none", "after": "writeback"}
    story.writer.append(CacheSwitched(**switch, pauses_ms={}, drained_seconds=0.0))
    story.read("db", {"root": {"read": [1, 4]}})
    story.writer.append(PhaseEnded(**story.now(), cell=number, phase="execute", seconds=9.0))
    # The last reading is taken when the workloads have ended.
    story.read("db", {"root": {"read": [1, 2]}})
    story.end_cell("invalid", ["it was switched"], wall=9.0)
    story.end()
    known = document(store)
    (cell,) = known.cells
    assert cell.disk_latency is None
    spans = [span.disk_latency for span in cell.spans]
    assert [one and one.over_disks[0].requests for one in spans] == [7, 6]
    assert "320 / 320 / 320" in cell_text(known, cell) and "3.2 / 3.2 / 3.2" in cell_text(known, cell)


def test_exports_have_a_row_for_each_percentile(tmp_path: Path) -> None:
    with RunReader(told(tmp_path, "none")) as reader:
        tidy = measurements(Exported(reader))
        rows = [dict(zip(tidy.columns, row, strict=True)) for row in tidy.rows]
    found = {(row["guest"], row["metric"]): (row["value"], row["unit"], row["workload"]) for row in rows}
    assert found["db", "data_disk_flush_latency_p99"] == (1.0, "s", None)
    assert found["web", "root_disk_read_latency_p50"][0] == pytest.approx(math.sqrt(10) / 1e3)
    assert len([name for _, name in found if "_disk_" in str(name)]) == 12


@pytest.mark.parametrize(
    "change",
    [
        {"scale": [0, 10, 71]},
        {"scale": [10_000, 10, 10**9]},
        {"scale": [10_000, 1, 400]},
        {"counts": {"root": {"read": [3, -1]}}},
        {"counts": {"root": {"read": []}}},
        {"counts": {"root": {"read": [3, 1.5]}}},
    ],
)
def test_a_damaged_reading_is_refused(change: dict[str, Any]) -> None:
    reading = DiskLatencyRead(cell=1, tile=1, guest="db", since=0.0, scale=SCALE, counts={"root": {"read": [3, 1]}})
    whole = to_json(reading)
    assert from_json(whole) == reading
    with pytest.raises(ValueError, match=r"DiskLatencyRead: (scale|counts) cannot be"):
        from_json(json.dumps({**json.loads(whole), **change}))


def test_readings_of_another_scale_than_the_last_are_left_out(tmp_path: Path) -> None:
    store = tmp_path / "run" / "run.sqlite"
    story = LatencyStory(store)
    story.begin({"cache": ["none"]})
    number = story.start_cell({"cache": "none"})
    story.writer.append(PhaseStarted(**story.now(), cell=number, phase="execute"))
    story.read("db", {"root": {"read": [3, 7]}}, [10_000, 10, 71])
    story.read("db", {"root": {"read": [1, 4]}})
    story.end_cell(wall=9.0)
    story.end()
    known = document(store).cells[0].disk_latency
    assert known is not None and [one.found.requests for one in known.disks] == [4]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.08912, "0.089"),
        (0.4467, "0.45"),
        (2.818, "2.8"),
        (9.96, "10"),
        (141.25, "140"),
        (11220.2, "11000"),
        (None, "-"),
    ],
)
def test_two_digits_are_written(value: float | None, text: str) -> None:
    assert milliseconds(value) == text
