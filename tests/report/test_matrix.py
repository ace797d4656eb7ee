"""A table of six groups of columns by nine rows with two metrics, and its publication's 216 figures beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.matrix import JOBS, METRICS, SETUPS, figures, tell_matrix
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.published import BesideReference, beside_reference
from vmlab.model.jsonable import jsonable
from vmlab.model.scenarios.reference import printed_number
from vmlab.report.reference_text import reference_text
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

GOLDEN = Path(__file__).parent / "golden"
OFF = {
    ("writeback", "4k-randread", "throughput"),
    ("writeback-4q", "4k-randread", "throughput"),
    ("windows-none", "4k-randread", "throughput"),
    ("windows-none-4q", "4k-randread", "throughput"),
    ("windows-wb-4q", "4k-randread", "throughput"),
    ("windows-wb-4q", "4k-randwrite", "iops"),
    ("windows-wb-4q", "4k-randwrite", "throughput"),
}
"""Printed percentages that are off by more than the last digit, as tests/experiments/published/README.md proves."""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[RunReader]:
    with RunReader(tell_matrix(tmp_path / "run.sqlite")) as reader:
        yield reader


@pytest.fixture
def beside(reader: RunReader) -> BesideReference:
    return beside_reference(reader)


def _check_golden(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("VMLAB_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_reads_well_and_says_what_is_absent(width: int, tmp_path: Path) -> None:
    with RunReader(tell_matrix(tmp_path / "absent.sqlite", windows=False)) as reader:
        text = run_table(run_document(reader), width)
    assert max(map(len, text.splitlines())) <= width
    _check_golden(f"matrix-{width}", text)


@pytest.mark.parametrize("width", [80, 160])
def test_the_publication_s_table_keeps_its_shape(width: int, beside: BesideReference) -> None:
    text = reference_text(beside, width)
    assert max(map(len, text.splitlines())) <= width
    _check_golden(f"matrix-reference-{width}", text)


def test_the_json_has_every_figure_in_its_place(reader: RunReader) -> None:
    document = json.loads(json.dumps(jsonable(run_document(reader)), allow_nan=False))
    (table,) = document["tables"]
    assert table["columns"] == [{"job": job, "metrics": metric} for job in JOBS for metric in METRICS]
    assert [row["head"] for row in table["rows"]] == [{"setup": setup} for setup in SETUPS]
    assert (table["relative"], table["baseline"]) == ("percent", {"setup": "host"})
    assert sum(len(row["entries"]) for row in table["rows"]) == 108
    first, last = table["rows"][0]["entries"][0], table["rows"][-1]["entries"][-1]
    assert (first["mean"], first["unit"], first["relative"], first["more_is_better"]) == (195.0, "1/s", None, True)
    assert last["relative"] == pytest.approx(100 * 1192 / 1118)


def test_the_run_that_measured_the_published_figures_agrees_with_all_of_them(beside: BesideReference) -> None:
    measured = [figure for figure in beside.figures if figure.published.relative is None]
    assert len(measured) == len(beside.figures) // 2 == 108
    assert [figure.percent for figure in measured] == [pytest.approx(100.0)] * 108


def test_percentages_are_calculated_again(beside: BesideReference) -> None:
    found = set()
    for figure in beside.figures:
        spread = figure.ours.spread
        assert spread is not None and figure.reason == ""
        if figure.published.relative is not None and abs(spread.mean - figure.printed.value) > 2:
            place = figure.published.place
            found.add((place["setup"], place["job"], figure.published.metric))
    assert found == OFF


def test_the_fixture_is_the_publication_s_table() -> None:
    assert len(figures()) == 216
    assert all(printed_number(figure["value"]) for figure in figures())
