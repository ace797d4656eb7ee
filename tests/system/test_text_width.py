"""The rule: what is laid out is measured in columns of a terminal, not in characters, and cut between letters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from rich.cells import cell_len

import vmlab
from vmlab.system.text_width import (
    centred,
    exactly,
    first_columns,
    last_columns,
    left,
    right,
    shortened,
    width_of,
    wrapped,
)

NAMES = {
    "ASCII": ("web-server", 10),
    "our own signs": ("± 3 … · µs → █▏⣿", 16),
    "Chinese": ("数据库", 6),
    "Korean": ("서버-1", 6),
    "halfwidth katakana": ("ﾃﾞｰﾀ", 4),
    "emoji": ("🚀db", 4),
    "an accent of its own": ("cafe\u0301", 4),
    "several accents": ("a\u0301\u0323b", 2),
    "Thai": ("ที่นี่", 2),
}
EACH = pytest.mark.parametrize(("text", "width"), NAMES.values(), ids=NAMES)


@EACH
def test_widths_are_columns(text: str, width: int) -> None:
    assert width_of(text) == cell_len(text) == width


@EACH
@pytest.mark.parametrize("room", [1, 2, 3, 5, 8, 40])
def test_what_is_cut_and_filled_is_as_wide_as_it_should_be(text: str, width: int, room: int) -> None:
    assert width_of(exactly(text, room)) == room
    assert width_of(shortened(text, room)) <= room
    for beginning in (first_columns(text, room), last_columns(text, room)):
        assert width_of(beginning) <= room and beginning in text
    for filled in (left(text, 40), right(text, 40), centred(text, 40)):
        assert (width_of(filled), filled.strip()) == (40, text)


def test_a_letter_is_cut_from_neither_its_accent_nor_in_two() -> None:
    assert first_columns("cafe\u0301s", 4) == "cafe\u0301"
    assert first_columns("cafe\u0301s", 3) == "caf"
    assert last_columns("cafe\u0301s", 2) == "e\u0301s"
    assert [first_columns("数据库", room) for room in (1, 2, 3, 5)] == ["", "数", "数", "数据"]
    assert [exactly("数据库", room) for room in (3, 4, 5, 6, 7)] == ["数…", "数… ", "数据…", "数据库", "数据库 "]
    assert shortened("数据库", 5) == "数据…"


def test_lines_are_broken_by_columns() -> None:
    assert wrapped("数据库 is slow on web-1", 8) == ["数据库", "is slow", "on web-1"]
    assert wrapped("数据库数据库", 5) == ["数据", "库数", "据库"]
    assert wrapped("abc 数据库数据库", 8, indent="  ") == ["abc", "  数据库", "  数据库"]
    assert wrapped("数据库 一 二 三 四", 6, most=2) == ["数据库", "一 …"]
    assert wrapped("数", 1) == ["数"]
    assert wrapped("plain words as ever", 11) == ["plain words", "as ever"]
    assert wrapped("", 10) == []


LAYS_OUT = ("cli", "report", "tui")
"""The packages that lay out text."""


def test_no_other_module_fills_or_wraps_text() -> None:
    """``str.ljust`` and `textwrap` count characters; a table that uses them is misaligned by the first wide letter."""
    root = Path(vmlab.__file__).parent
    found = []
    for path in (path for package in LAYS_OUT for path in (root / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("ljust", "rjust", "center"):
                found.append(f"{path}:{node.lineno}")
            if isinstance(node, ast.Import) and any(name.name == "textwrap" for name in node.names):
                found.append(f"{path}:{node.lineno}")
    assert found == []
