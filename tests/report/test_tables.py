"""Tables of runs against texts that a person has read: ``VMLAB_GOLDEN=write pytest`` writes them anew."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.report.told import TOLD
from tests.store.stories import Story
from vmlab.analysis.cell_shape import (
    CellDocument,
    MovedDocument,
    TrafficDocument,
)
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.report.bound_text import bound_lines
from vmlab.report.page.answer import answers, comparison_answers
from vmlab.report.page.content import COURSES, comparison_charts, result_charts
from vmlab.report.page.gathered import gather
from vmlab.report.page.report_page import html_report, markdown_report
from vmlab.report.run.cell_text import cell_text
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

GOLDEN = Path(__file__).parent / "golden"


def _check_golden(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("VMLAB_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("name", TOLD)
def test_the_table_of_a_run(name: str, tmp_path: Path) -> None:
    with RunReader(TOLD[name](tmp_path / "run.sqlite")) as reader:
        text = run_table(run_document(reader))
    assert max(map(len, text.splitlines())) <= 80
    _check_golden(name, text)


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("width", [60, 200])
def test_every_table_fits_the_width_it_is_given(name: str, width: int, tmp_path: Path) -> None:
    with RunReader(TOLD[name](tmp_path / "run.sqlite")) as reader:
        text = run_table(run_document(reader), width)
    assert max(map(len, text.splitlines())) <= width


def test_everything_about_one_cell(tmp_path: Path) -> None:
    with RunReader(TOLD["two-tiles"](tmp_path / "run.sqlite")) as reader:
        document = run_document(reader)
    text = cell_text(document, document.cells[-1])
    assert max(map(len, text.splitlines())) <= 80
    _check_golden("one-cell", text)


AXES = {"quota": ["low", "high"]}


def _rated(path: Path, table: Mapping[str, Any], repeats: int = 8) -> Path:
    """Two workloads with rates and latencies at two quotas; the second one is twice as fast."""
    story = Story(path).begin(AXES, table, cells=2 * repeats)
    for repeat in range(repeats):
        for quota, factor in (("low", 1.0), ("high", 2.0)):
            story.start_cell({"quota": quota}, repeat + 1)
            story.measure("disk", 3.0)
            story.measure("disk", (1000.0 + 10 * repeat) * factor, "iops", "1/s")
            story.measure("disk", (0.000214 + 1e-6 * repeat) / factor, "latency_p99", "s")
            story.measure("net", 3.0)
            story.measure("net", (5e7 + 1e5 * repeat) * factor, "throughput", "B/s")
            story.measure("web", 3.0)
            story.measure("web", (50.0 + repeat) * factor, "throughput", "1/s")
            story.end_cell(wall=3.5)
    return story.end()


def _rated_document(path: Path, table: Mapping[str, Any]) -> RunDocument:
    with RunReader(_rated(path / "run.sqlite", table)) as reader:
        return run_document(reader)


@pytest.mark.parametrize(
    "table",
    [
        {"rows": "workloads", "columns": "quota", "metrics": ["iops"]},
        {"rows": "metrics", "columns": "quota", "metrics": ["iops", "latency_p99"]},
        {"rows": "quota", "columns": "metrics", "metrics": ["iops", "latency_p99"]},
        {"rows": "workloads", "columns": ["quota", "metrics"], "metrics": ["iops", "latency_p99"]},
    ],
)
def test_a_table_with_metrics_has_the_differences_with_their_interval(tmp_path: Path, table: Mapping[str, Any]) -> None:
    document = _rated_document(tmp_path, table)
    text = run_table(document, 200)
    assert "+100.0 % (+100.0 to +100.0)" in text
    assert "interval of the difference, at 95 % confidence" in text
    verdict, first = answers(document)[:2]
    assert verdict.startswith("HIGH IS BETTER THAN LOW: proven for ")
    assert "high against low" in first and "iops" in first and "run time" not in first
    assert "better, difference proven: +100.0 % (+100.0 to +100.0)" in first
    assert "Nothing is compared" not in first


def test_a_table_of_statistics_or_of_the_best_repeat_compares_only_where_it_says_so(tmp_path: Path) -> None:
    table = {"rows": "metrics", "columns": "quota", "metrics": ["iops"], "best_of": 3}
    assert "difference" not in run_table(_rated_document(tmp_path, table), 200)


def test_a_table_of_mixed_units_has_a_unit_behind_each_figure_or_in_its_head(tmp_path: Path) -> None:
    mixed = {"rows": "workloads", "columns": "quota", "metrics": ["throughput"]}
    document = _rated_document(tmp_path / "mixed", mixed)
    for text in (run_table(document, 200), *_pages(tmp_path / "mixed")):
        assert re.search(r"50\.\d ± 0\.\d+ MB/s", text) and re.search(r"53\.5 ± \d\.\d+ 1/s", text)
    heads = {"rows": "metrics", "columns": "quota", "metrics": ["iops", "latency_p99"]}
    document = _rated_document(tmp_path / "heads", heads)
    for text in (run_table(document, 200), *_pages(tmp_path / "heads")):
        assert "iops (1/s)" in text and "latency p99 (µs)" in text and "217.5" in text


def _pages(folder: Path) -> tuple[str, str]:
    with RunReader(folder / "run.sqlite") as reader:
        run = gather("last", reader, COURSES)
    page = etree.fromstring(html_report([run]), etree.HTMLParser())
    return " ".join(map(str, page.itertext())), unescaped(markdown_report([run]).decode())


def unescaped(text: str) -> str:
    return text.replace("\\", "")


def test_charts_carry_the_name_and_the_unit_of_their_metric(tmp_path: Path) -> None:
    table = {"rows": "metrics", "columns": "quota", "metrics": ["iops", "latency_p99"]}
    charts = result_charts(_rated_document(tmp_path, table).tables)
    assert [chart.title.split(",")[0] for chart in charts] == ["iops (1/s)", "latency p99 (µs)"]


def test_the_report_of_two_runs_is_about_what_the_scenario_asks_for(tmp_path: Path) -> None:
    table = {"rows": "workloads", "columns": "quota", "metrics": ["iops"]}
    runs = []
    for name in ("one", "two"):
        with RunReader(_rated(tmp_path / name / "run.sqlite", table)) as reader:
            runs.append(gather(name, reader, COURSES))
    found = compare([Side.of(run.label, run.document) for run in runs])
    assert found.asked == ("iops",)
    assert {chart.title for chart in comparison_charts(found)} == {"iops (1/s)"}
    said = list(comparison_answers(found))
    assert said and all("disk iops" in text and "wall clock" not in text for text in said)


def test_a_run_with_repeats_ends_in_its_answer(tmp_path: Path) -> None:
    with RunReader(TOLD["doubtful"](tmp_path / "run.sqlite")) as reader:
        document = run_document(reader)
    last = run_table(document, 10_000).rstrip("\n").rpartition("\n\n")[2]
    assert last.startswith("cache writeback against cache none, under emulation (TCG): no difference is proven.")


@pytest.mark.parametrize(("exact", "words"), [(True, "bytes"), (False, "bytes (by ticks, not from start to end)")])
def test_bytes_of_disks_by_ticks_are_marked(exact: bool, words: str) -> None:
    """Of a cell without readings as its workloads start and have ended."""
    unknown = MovedDocument(None, None, None)
    traffic = TrafficDocument(unknown, unknown, "bytes", exact)
    cell = CellDocument(cell=1, repeat=1, outcome="passed", disk_traffic=traffic)
    assert list(bound_lines(cell)) == [words]
