"""Numbers into characters."""

import math

import pytest

from vmlab.tui.state.charts import CPU
from vmlab.tui.widgets.charts.raster import IDLE, Rows, lines, pairs, plain_lines, stack, textured

NAN = math.nan


def text(rows: Rows) -> list[str]:
    return ["".join(cell[0] for cell in row) for row in rows]


def test_areas_lie_on_each_other_and_the_newest_value_is_at_the_right() -> None:
    rows = stack([[25, 50], [25, 50]], 100, 3, 4)
    assert text(rows) == ["  █", "  █", " ██", " ██"]
    assert [row[2][1] for row in rows] == [1, 1, 0, 0]
    assert [row[1][1] for row in rows] == [None, None, 1, 0]


def test_where_two_areas_meet_in_a_cell_both_are_drawn() -> None:
    ((cell,),) = stack([[50], [50]], 100, 1, 1)
    assert cell == ("▄", 0, 1)


def test_where_three_areas_meet_in_a_cell_the_two_largest_are_drawn() -> None:
    ((cell,),) = stack([[50], [12.5], [37.5]], 100, 1, 1)
    assert (cell[1], cell[2]) == (0, 2)


def test_time_of_waiting_for_the_disk_is_shaded_over_the_cpus_work_and_no_area() -> None:
    *work, waiting = CPU.drawn
    assert (waiting.label, waiting.idle) == ("iowait", True) and not any(one.idle for one in work)
    rows = stack([[50.0], [50.0]], 100, 1, 8, idle=1)
    assert [cell for (cell,) in rows] == [(IDLE, 1, None)] * 4 + [("█", 0, 0)] * 4


def test_an_area_never_leaves_its_chart() -> None:
    assert text(stack([[500]], 100, 1, 2)) == ["█", "█"]


def test_values_that_could_not_be_had_leave_a_gap() -> None:
    assert text(stack([[100, NAN, 100]], 100, 3, 1)) == ["█ █"]
    assert text(lines([[NAN, NAN, 1, 1]], 1, 2, 1)) == [" ⠉"]


def test_areas_can_be_told_apart_without_colour() -> None:
    assert text(textured([[50], [50]], 100, 1, 2, ascii_only=True)) == ["+", "#"]
    assert text(textured([[50], [50]], 100, 1, 2, ascii_only=False)) == ["⢕", "⣿"]


def test_a_line_does_not_break_where_it_is_steep() -> None:
    rows = lines([[0, 1]], 1, 1, 2)
    dots = [ord(cell[0]) - 0x2800 for row in rows for cell in row]
    assert sum(dot.bit_count() for dot in dots) == 8


@pytest.mark.parametrize("height", [1, 3, 7])
def test_a_line_stays_within_its_rows(height: int) -> None:
    assert len(lines([[0, 5, 10, 20]], 10, 4, height)) == height
    assert len(plain_lines([[0, 5, 10, 20]], 10, 4, height)) == height


def test_plain_lines_use_ascii_alone() -> None:
    drawn = "".join(text(plain_lines([[1, 2, 3, 4], [4, 3, 2, 1]], 4, 4, 4)))
    assert drawn.isascii() and drawn.strip()


def test_pairs_stay_the_same_when_the_next_value_comes() -> None:
    values = [1.0, 3.0, 5.0, 7.0]
    assert pairs(values) == [2.0, 6.0]
    assert pairs([*values, 9.0], odd=1) == [2.0, 6.0, 9.0]
    assert pairs([1.0, NAN], larger=True) == [1.0]
