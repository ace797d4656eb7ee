"""Axis values in words, and as YAML that gives the same values back."""

from __future__ import annotations

from vmlab.model.axes import axes_words, axis_word, axis_yaml
from vmlab.model.run import AxisValue
from vmlab.plan.scenario_file.yaml_text import parse

VALUES: tuple[AxisValue, ...] = (True, False, 4, 1.5, "none", "true", "1", "a, b", "[x]", "😀")


def test_an_axis_value_is_written_as_yaml_has_it() -> None:
    assert [axis_word(value) for value in VALUES[:5]] == ["true", "false", "4", "1.5", "none"]
    assert axes_words({"tiles": 1, "huge": True}) == "tiles 1, huge true"
    assert axes_words({}) == "as written"


def test_values_as_yaml_are_read_back_as_they_were() -> None:
    read = parse(axis_yaml(VALUES), "x.yaml").value
    assert [(type(value), value) for value in read] == [(type(value), value) for value in VALUES]
