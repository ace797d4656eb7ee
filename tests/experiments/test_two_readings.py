"""The published figures in the scenarios are those of the second reading: value, unit and kind, place by place."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.experiments.page import published_names
from tests.experiments.records import shipped
from vmlab.model.places import shipped_scenarios
from vmlab.model.scenarios.reference import PublishedFigure

pytestmark = pytest.mark.xdist_group("experiments")
PUBLISHED = Path(__file__).parent / "published"

Second = dict[tuple[str, str, str], tuple[str, str]]
"""Value and unit by row, column and kind."""


@cache
def _second_reading(table: str) -> Second:
    lines = (PUBLISHED / f"{table}.tsv").read_text(encoding="utf-8").splitlines()
    figures = [line.split("\t") for line in lines if line and not line.startswith("# ")][1:]
    return {(row, column, kind): (value, unit) for row, column, value, unit, kind in figures}


def _figures_of(name: str) -> list[PublishedFigure]:
    reference = shipped(name).scenario.reference
    assert reference is not None
    return [*reference.figures]


def test_scenarios_have_figures() -> None:
    assert shipped_scenarios().is_dir()
    assert sum(len(_figures_of(name)) for name in published_names()) >= 18


@pytest.mark.parametrize("name", published_names())
def test_both_readings_agree(name: str) -> None:
    figures = _figures_of(name)
    first: dict[tuple[str, str], tuple[str, str]] = {}
    second: dict[tuple[str, str], tuple[str, str] | None] = {}
    for figure in figures:
        parts = [part.strip() for part in figure.where.split("|")]
        assert len(parts) == 3, f"{figure.where}: where needs table, row and column"
        table, row, column = parts
        first[figure.where, figure.kind] = (figure.value, figure.unit)
        second[figure.where, figure.kind] = _second_reading(table).get((row, column, figure.kind))
    assert first == second
    assert len(first) == len(figures), "no figure stands twice"
