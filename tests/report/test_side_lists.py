"""Tables beyond one word a side: statistics over tiles and repeats, the best of repeats, metrics of both directions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.reading import Asked, read
from vmlab.analysis.shape import RunDocument
from vmlab.model.jsonable import jsonable
from vmlab.model.quantities import written
from vmlab.model.run import AxisValue
from vmlab.report.figures import with_unit
from vmlab.report.run.run_page import run_table
from vmlab.report.run.shown_tables import metric_words
from vmlab.store.reader import RunReader

GOLDEN = Path(__file__).parent / "golden"
STATISTICS = ["mean", "sd", "sum", "jain", "best", "worst"]
OVERBOOKING = {"columns": ["tiles"], "rows": ["statistics"], "metrics": ["copy"], "statistics": STATISTICS}


def _overbooked(path: Path, *, late: float = 0.0) -> RunDocument:
    """One, two and three tiles that copy memory; the last tile begins `late` seconds after the others."""
    story = Story(path / "run.sqlite", "memory-overbooking").begin({"tiles": [1, 2, 3]}, OVERBOOKING, cells=3)
    for tiles in (1, 2, 3):
        story.start_cell({"tiles": tiles}, guests=tiles)
        for tile in range(1, tiles + 1):
            story.ran("ram", tile, late if tile == tiles and tiles > 1 else 0.0, 60.0)
            story.measure("ram", 60.0 / tiles * 1e6 * (1 + 0.01 * tile), "copy", "B/s", tile)
        story.end_cell(wall=61.0)
    return _read(story)


def _read(story: Story) -> RunDocument:
    with RunReader(story.end()) as reader:
        return run_document(reader)


def _told(path: Path, table: Mapping[str, Any], repeats: int = 3) -> RunDocument:
    """Times and rates of two setups, each repeat worse by a tenth."""
    axes: dict[str, list[AxisValue]] = {"setup": ["host", "guest"]}
    story = Story(path / "run.sqlite", "matrix").begin(axes, table, cells=2 * repeats)
    for setup, factor in (("host", 1.0), ("guest", 0.5)):
        for repeat in range(1, repeats + 1):
            story.start_cell({"setup": setup}, repeat)
            worse = 1 + (repeat - 1) / 10
            story.measure("disk", 10.0 / factor * worse)
            story.measure("disk", 1000.0 * factor / worse, "iops", "1/s")
            story.end_cell(wall=30.0)
    return _read(story)


def _check_golden(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("VMLAB_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


def _entry(document: RunDocument, row: int, column: int) -> dict[str, Any]:
    entry: dict[str, Any] = jsonable(document.tables)[0]["rows"][row]["entries"][column]
    return entry


def test_statistics_over_the_tiles(tmp_path: Path) -> None:
    _check_golden("statistics", run_table(_overbooked(tmp_path)))


def test_sums_over_spans_that_are_not_the_same_are_marked(tmp_path: Path) -> None:
    document = _overbooked(tmp_path, late=30.0)
    text = run_table(document)
    _check_golden("statistics-apart", text)
    assert document.cells[1].over_tiles[0].overlap == pytest.approx(1 / 3)
    assert [_entry(document, row, 1)["one_span"] for row in range(6)] == [True, True, False, False, True, True]
    assert _entry(document, 2, 0)["one_span"] is True


def test_a_ratio_is_how_many_times_as_good_a_figure_is(tmp_path: Path) -> None:
    table = {
        "columns": ["metrics"],
        "rows": ["setup"],
        "metrics": ["run_time", "iops"],
        "relative": "ratio",
        "baseline": {"setup": "host"},
    }
    document = _told(tmp_path, table, repeats=8)
    assert [_entry(document, 1, column)["relative"] for column in (0, 1)] == [pytest.approx(0.5), pytest.approx(0.5)]
    assert [_entry(document, 1, column)["better"] for column in (0, 1)] == [False, False]
    _check_golden("both-directions", run_table(document))


@pytest.mark.parametrize(
    ("relative", "expected"), [("percent", 50.0), ("overhead", 50.0), ("slowdown", 2.0), ("difference", -50.0)]
)
def test_other_forms_of_a_ratio(relative: str, expected: float, tmp_path: Path) -> None:
    table = {"columns": "setup", "metrics": ["iops"], "relative": relative, "baseline": "host"}
    assert _entry(_told(tmp_path, table), 0, 1)["relative"] == pytest.approx(expected)


def test_the_best_of_repeats_is_by_the_metric_s_own_direction(tmp_path: Path) -> None:
    table = {"columns": ["setup"], "rows": ["metrics"], "metrics": ["run_time", "iops"], "best_of": 3}
    document = _told(tmp_path, table)
    assert [_entry(document, row, 0)["mean"] for row in (0, 1)] == [10.0, 1000.0]
    assert _entry(document, 0, 0)["count"] == 3
    assert "each value is the best of 3 repeats" in run_table(document)
    short = run_table(_told(tmp_path / "short", table, repeats=2))
    assert "the best of 3 repeats, as it was published; this run has 2 repeats" in " ".join(short.split())


def test_statistics_over_the_repeats(tmp_path: Path) -> None:
    table = {"columns": ["setup"], "rows": ["statistics"], "statistics": ["mean", "sd", "worst"], "over": "repeats"}
    document = _told(tmp_path, table)
    assert [_entry(document, row, 0)["mean"] for row in range(3)] == pytest.approx([11.0, 1.0, 12.0])
    assert "n - 1 below" in run_table(document)


def test_a_deviation_of_one_tile_is_not_measured_and_not_nought(tmp_path: Path) -> None:
    entry = _entry(_overbooked(tmp_path), 1, 0)
    assert (entry["state"], entry["mean"]) == ("missing", None)


@pytest.mark.parametrize(
    ("metric", "unit", "heading", "factor"),
    [
        ("host.memory_buffers_bytes", "B", "memory buffers (MiB)", 2**-20),
        ("host.disk_read_bytes_per_second", "B/s", "disk read (MB/s)", 1e-6),
        ("run_time", "s", "run time (s)", 1),
        ("latency_p95", "s", "latency p95 (s)", 1),
    ],
)
def test_a_metric_has_its_name_and_its_unit_in_the_heading(metric: str, unit: str, heading: str, factor: float) -> None:
    assert with_unit(metric_words(metric), unit) == heading
    assert written(unit).factor == factor


def test_a_figure_of_the_host_that_is_no_headline_has_its_unit(tmp_path: Path) -> None:
    cells = _overbooked(tmp_path).cells
    assert read(cells, Asked("host.memory_buffers_bytes")).unit == "B"
