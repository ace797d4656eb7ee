"""Grids fit their width whatever is in them."""

from __future__ import annotations

import pytest

from vmlab.report.blocks import Column
from vmlab.report.listing import names_text
from vmlab.report.words import number
from vmlab.report.writers.text import grid, paragraph
from vmlab.system.text_width import first_columns, width_of


def test_figures_stand_right_of_their_labels() -> None:
    lines = grid("s", ["web", "mail"], [Column("none", ["1.0", "20.0"]), Column("writeback", ["0.5", "-"])])
    assert lines == ["s     none  writeback", "web    1.0        0.5", "mail  20.0          -"]


def test_what_does_not_fit_stands_below_with_its_companion() -> None:
    columns = [Column("base", ["1"])]
    for name in ("first", "second", "third"):
        columns += [Column(name, ["2"]), Column("difference", ["+100 %"], beside=True)]
    lines = grid("label", ["row"], columns, width=40)
    assert [line.split() for line in lines if "label" in line] == [
        ["label", "base", "first", "difference"],
        ["label", "second", "difference"],
        ["label", "third", "difference"],
    ]
    assert max(map(len, lines)) <= 40


def test_a_long_label_is_cut_and_says_so() -> None:
    (_, line) = grid("", ["w" * 60], [Column("x", ["1"])])
    assert line.startswith("w" * 29 + "…")


def test_a_column_of_another_length_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="a text for every row"):
        grid("", ["a", "b"], [Column("x", ["1"])])


def test_paragraphs_break_at_words() -> None:
    assert paragraph("one two three", 8, "  ") == ["one two", "  three"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.01234, "0.0123"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1234"), (-3.0, "-3.00")],
)
def test_numbers_have_about_three_figures(value: float, text: str) -> None:
    assert number(value) == text


WIDE = ["数据库", "🚀-web", "cafe\u0301", "plain"]


def test_columns_are_aligned_beside_wide_letters() -> None:
    lines = grid("s", WIDE, [Column("数据", ["1.0", "20.0", "3", "4"]), Column("none", ["5", "6", "7", "8"])])
    assert {width_of(line) for line in lines} == {len("🚀-web ") + 2 + 4 + 2 + 4}
    listed = names_text([(name, "| what it is") for name in WIDE]).splitlines()
    assert {width_of(line.partition("|")[0]) for line in listed} == {8}
    (_, line) = grid("", ["数" * 40], [Column("x", ["1"])])
    assert first_columns(line, 29) == "数" * 14 + "…"
