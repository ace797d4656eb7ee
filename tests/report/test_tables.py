"""Tables of runs against texts that a person has read: ``VMLAB_GOLDEN=write pytest`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.report.told import TOLD
from vmlab.analysis.document import run_document
from vmlab.report.cell import cell_text
from vmlab.report.tables import run_table
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
    text = cell_text(document, document["cells"][-1])
    assert max(map(len, text.splitlines())) <= 80
    _check_golden("one-cell", text)
