"""The published figures in the scenarios are those of the second reading: value, unit and kind, place by place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.records import shipped
from vmlab.model.places import shipped_scenarios
from vmlab.model.scenarios.reference import PublishedFigure
from vmlab.plan.scenario_file.loading import shipped_names

PUBLISHED = Path(__file__).parent / "published"

Second = dict[tuple[str, str, str], tuple[str, str]]
"""Value and unit by row, column and kind."""


def _second_reading(table: str) -> Second:
    lines = (PUBLISHED / f"{table}.tsv").read_text(encoding="utf-8").splitlines()
    figures = [line.split("\t") for line in lines if line and not line.startswith("# ")][1:]
    return {(row, column, kind): (value, unit) for row, column, value, unit, kind in figures}


def _figures() -> list[tuple[str, PublishedFigure]]:
    references = ((name, shipped(name).scenario.reference) for name in shipped_names())
    return [(name, figure) for name, reference in references if reference for figure in reference.figures]


def test_scenarios_have_figures() -> None:
    assert shipped_scenarios().is_dir()
    assert len(_figures()) >= 18


@pytest.mark.parametrize(("name", "figure"), _figures(), ids=lambda one: getattr(one, "where", one))
def test_both_readings_agree(name: str, figure: PublishedFigure) -> None:
    parts = [part.strip() for part in figure.where.split("|")]
    assert len(parts) == 3, f"{name}: where needs table, row and column"
    table, row, column = parts
    assert _second_reading(table).get((row, column, figure.kind)) == (figure.value, figure.unit), name


def test_no_figure_stands_twice_in_a_scenario() -> None:
    places = [(name, figure.where, figure.kind) for name, figure in _figures()]
    assert len(places) == len(set(places))
