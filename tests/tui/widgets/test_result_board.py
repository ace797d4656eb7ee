"""The text of a run's result: as it is, or its beginning in two columns where it does not scroll."""

from __future__ import annotations

import pytest

from vmlab.tui.widgets.tables.result_board import ResultBoard, in_two

PARTS = ("head", *(f"part {part}" for part in range(1, 12)))
TEXT = "\n\n".join("\n".join([name, *(f"{name}, line {line}" for line in range(1, 6))]) for name in PARTS)
"""Twelve parts of six lines, with an empty line between them."""


def drawn(text: str, width: int, height: int) -> list[str]:
    return ["".join(piece for piece, _ in line).rstrip() for line in in_two(lambda width: text, width, height)]


def test_what_has_no_room_stands_in_a_second_column_from_the_beginning_of_a_part() -> None:
    lines = drawn(TEXT, 160, 30)
    left = [line[:78].rstrip() for line in lines]
    right = [line[81:] for line in lines]
    assert len(lines) <= 30
    assert left[0] == "head" and right[0] == "part 4"
    # No part is divided between the columns, and the second goes on where the first ends.
    shown = list(filter(None, [*left, *right]))
    assert shown == list(filter(None, TEXT.splitlines()))[: len(shown)]
    assert max(map(len, lines)) <= 160


def test_no_text_is_as_wide_as_a_board_that_may_scroll() -> None:
    asked: list[int] = []
    board = ResultBoard()
    board.shown = lambda width: asked.append(width) or "x" * width  # type: ignore[func-returns-value]
    (line,) = board.lines(80, 24)
    assert asked == [79] and len("".join(text for text, _ in line)) == 79


@pytest.mark.parametrize(("width", "height"), [(150, 30), (160, 90)], ids=["too narrow", "all has room"])
def test_else_it_is_as_it_was_made(width: int, height: int) -> None:
    assert drawn(TEXT, width, height) == TEXT.splitlines()


def test_a_part_that_is_higher_than_half_of_the_board_is_divided() -> None:
    lines = drawn("\n".join(f"line {line}" for line in range(1, 50)), 160, 10)
    assert [line[81:] for line in lines] == [f"line {line}" for line in range(11, 21)]
