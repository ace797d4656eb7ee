"""A comparison in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.test_compared import _store
from vmlab.analysis.compare import compare
from vmlab.analysis.figure import RUN_TIME
from vmlab.report.headline import headline
from vmlab.tui.feed.picks import Pick
from vmlab.tui.feed.sides import sides_of


def sentence(store: Path) -> str:
    return headline(compare([picked.side for picked in sides_of([Pick(store)])]), (RUN_TIME,))


def test_what_is_proven_is_named_and_the_rest_counted(tmp_path: Path) -> None:
    told = sentence(_store(tmp_path, 8))
    assert told == (
        "Under emulation (TCG): cache writeback is proven to be better at mail (-50.0 %); "
        "of 1 other figure nothing is proven"
    )


def test_a_figure_that_is_no_run_time_has_its_name(tmp_path: Path) -> None:
    sides = [picked.side for picked in sides_of([Pick(_store(tmp_path, 8))])]
    assert "worse at mail mails (-50.0 %)" in headline(compare(sides))


@pytest.mark.parametrize("repeats", [1, 3])
def test_too_few_readings_prove_nothing(tmp_path: Path, repeats: int) -> None:
    told = sentence(_store(tmp_path, repeats))
    assert told.startswith("Under emulation (TCG): cache writeback: no difference is proven (")
    assert "takes" in told and "at least" in told and "better" not in told
