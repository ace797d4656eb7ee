"""What plain scalars mean, and where values stand."""

from __future__ import annotations

import pytest

from vmlab.model.errors import ScenarioError
from vmlab.plan.scenario_file.problems import Position
from vmlab.plan.scenario_file.yaml_text import parse, scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("true", True),
        ("yes", "yes"),
        ("on", "on"),
        ("12", 12),
        ("-3", -3),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("1e4", 10000),
        ("2.0", 2),
        ("-3.", -3),
        ("25e-1", 2.5),
        ("1e17", 1e17),
        ("12:30", "12:30"),
        ("670 MB", "670 MB"),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    result = scalar(text)
    assert result == value
    assert type(result) is type(value)


def test_quotes_make_text() -> None:
    assert parse("a: '12'\nb: \"true\"\n", "x").value == {"a": "12", "b": "true"}


def test_positions_of_keys_and_values() -> None:
    tree = parse("a:\n  b: [1, {c: 2}]\n", "x")
    assert tree.value == {"a": {"b": [1, {"c": 2}]}}
    assert tree.keys[("a", "b")] == Position(2, 3)
    assert tree.values[("a", "b", 1, "c")] == Position(2, 14)


def test_small_aliases_are_followed() -> None:
    assert parse("a: &x {m: 1}\nb: *x\n", "x").value == {"a": {"m": 1}, "b": {"m": 1}}


def test_a_chain_of_aliases_cannot_nest_without_end() -> None:
    chain = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
    with pytest.raises(ScenarioError, match="nested more than 16 deep, aliases followed"):
        parse(chain, "x")


@pytest.mark.parametrize("text", ["[" * 250_000, "- " * 125_000, "{a: " * 60_000, "!" * 250_000, "'" * 250_001])
def test_hostile_text_ends_in_an_error(text: str) -> None:
    with pytest.raises(ScenarioError):
        parse(text, "x")
