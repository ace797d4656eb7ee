"""The console's own widgets beside Textual's: ``python -m bench.widgets [--rounds 5]`` prints a table.

Both draw the same rows on a screen of 140 by 40. CPU is this process's own time for one change, with the picture
that follows it; rounds of ours and theirs take turns, so that a slower machine slows both.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable, Footer, RichLog, Static

from vmlab.model.sample import Sample, SampleNames
from vmlab.tui.state.views import GuestView, LogLine
from vmlab.tui.widgets.key_bar import KeyBar
from vmlab.tui.widgets.painted import Line, TextBoard
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.event_log import EventLog
from vmlab.tui.widgets.tables.guest_table import METRICS, GuestTable, Tiles

SIZE = (140, 40)
CHANGES = 60
GUESTS = 12
RUNS = 200
LOG = 300


class Stage(App[None]):
    """One widget and nothing else."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(key, "noop", f"Key {key}") for key in "abcdefgh"]

    def __init__(self, make: Callable[[], Widget]) -> None:
        super().__init__()
        self._make = make

    def compose(self) -> ComposeResult:
        """The widget."""
        yield self._make()

    def action_noop(self) -> None:
        """For the keys of the footer."""


@dataclass(frozen=True)
class Pair:
    """The same content in one of our widgets and in Textual's; each `…_change` makes the nth change of a widget."""

    name: str
    ours: Callable[[], Widget]
    our_change: Callable[[Widget, int], object]
    theirs: Callable[[], Widget]
    their_change: Callable[[Widget, int], object]


def guests(turn: int) -> tuple[list[GuestView], Sample]:
    """Guests, and figures that all change each turn."""
    views = [GuestView(1 + n // 4, f"guest-{n}", "fileserver", "ready") for n in range(GUESTS)]
    figures = {
        f"{metric}[{view.key}]": value
        for n, view in enumerate(views)
        for metric, value in zip(METRICS, (turn % 100 + n, 3.0 + turn, 1e6 * turn, 2e6 * n), strict=True)
    }
    return views, Sample(0.0, float(turn), 1.0, 0.0, SampleNames.of(tuple(figures)), list(figures.values()))


def _show_guests(widget: Widget, turn: int) -> None:
    assert isinstance(widget, GuestTable)
    views, sample = guests(turn)
    widget.show(Tiles(views, sample, float(turn)))


def _guest_cells(turn: int) -> list[list[str]]:
    views, sample = guests(turn)
    figures = {view.key: [sample.get(f"{metric}[{view.key}]") for metric in METRICS] for view in views}
    return [[str(v.tile), v.guest, v.role, v.state, *(f"{value:.1f}" for value in figures[v.key])] for v in views]


def _guest_data_table() -> Widget:
    table: DataTable[str] = DataTable()
    table.add_columns("t", "guest", "role", "state", "cpu%", "delay", "read", "write")
    for row in _guest_cells(0):
        table.add_row(*row)
    return table


def _change_data_table(widget: Widget, turn: int) -> None:
    assert isinstance(widget, DataTable)
    for y, row in enumerate(_guest_cells(turn)):
        for x in range(4, 8):
            widget.update_cell_at((y, x), row[x])  # type: ignore[arg-type]


_LOG_LINES = [LogLine(1e9 + n, "info", f"cell {n}: guest-{n % 12} is ready") for n in range(LOG + CHANGES)]


def _log_lines(turn: int) -> list[LogLine]:
    return _LOG_LINES[: LOG + turn]


def _show_log(widget: Widget, turn: int) -> None:
    assert isinstance(widget, EventLog)
    widget.show(_log_lines(turn))


def _write_log(widget: Widget, turn: int) -> None:
    assert isinstance(widget, RichLog)
    for line in _log_lines(turn) if turn == 1 else _log_lines(turn)[-1:]:
        widget.write(Text.assemble((f"{line.wall:.0f} ", "dim"), line.text))


def _rows() -> list[tuple[str, Line]]:
    return [(f"run-{n}", [(f"2026-11-21 run-{n:04} ", "plain"), ("passed", "good")]) for n in range(RUNS)]


def _row_list() -> Widget:
    return RowList()


def _move_row_list(widget: Widget, turn: int) -> None:
    assert isinstance(widget, RowList)
    if turn == 1:
        widget.show([("runs", "quiet")], _rows())
    widget.action_move(1)


def _runs_data_table() -> Widget:
    table: DataTable[str] = DataTable(cursor_type="row")
    table.add_columns("run", "outcome")
    for key, line in _rows():
        table.add_row("".join(text for text, _ in line), "passed", key=key)
    return table


def _move_data_table(widget: Widget, turn: int) -> None:
    assert isinstance(widget, DataTable)
    widget.action_cursor_down()


def _board_lines(turn: int) -> list[Line]:
    return [[(f"line {n} ", "title"), (f"of picture {turn} with some words", "plain")] for n in range(30)]


def _show_board(widget: Widget, turn: int) -> None:
    assert isinstance(widget, TextBoard)
    widget.show(_board_lines(turn))


def _update_static(widget: Widget, turn: int) -> None:
    assert isinstance(widget, Static)
    text = Text()
    for line in _board_lines(turn):
        for words, tone in line:
            text.append(words, "bold" if tone == "title" else "")
        text.append("\n")
    widget.update(text)


def _new_bindings(widget: Widget, turn: int) -> None:
    widget.screen.refresh_bindings()


PAIRS = (
    Pair("guests: GuestTable, DataTable", GuestTable, _show_guests, _guest_data_table, _change_data_table),
    Pair("log: EventLog, RichLog", EventLog, _show_log, RichLog, _write_log),
    Pair("runs, cursor down: RowList, DataTable", _row_list, _move_row_list, _runs_data_table, _move_data_table),
    Pair("keys: KeyBar, Footer", KeyBar, _new_bindings, Footer, _new_bindings),
    Pair("text: TextBoard, Static", TextBoard, _show_board, Static, _update_static),
)


async def cost(make: Callable[[], Widget], change: Callable[[Widget, int], object]) -> tuple[float, float]:
    """CPU milliseconds until the widget's first picture, and of one change with its picture."""
    began = time.process_time()
    app = Stage(make)
    async with app.run_test(size=SIZE) as pilot:
        widget = app.screen.children[0]
        await pilot.pause()
        first = time.process_time() - began
        widget.focus()
        await pilot.pause()
        began = time.process_time()
        for turn in range(1, CHANGES + 1):
            change(widget, turn)
            await pilot.pause()
        spent = time.process_time() - began
    return first * 1e3, spent / CHANGES * 1e3


def main() -> None:
    """Print a line for each pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    sys.stdout.write(f"{'CPU, ms':<40}{'first, ours':>12}{'theirs':>9}{'change, ours':>14}{'theirs':>9}{'ratio':>7}\n")
    for pair in PAIRS:
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(asyncio.run(cost(pair.ours, pair.our_change)))
            theirs.append(asyncio.run(cost(pair.theirs, pair.their_change)))
        first = [statistics.median(one[0] for one in side) for side in (ours, theirs)]
        change = [statistics.median(one[1] for one in side) for side in (ours, theirs)]
        ratio = statistics.median(o[1] / t[1] for o, t in zip(ours, theirs, strict=True))
        sys.stdout.write(
            f"{pair.name:<40}{first[0]:>12.0f}{first[1]:>9.0f}{change[0]:>14.2f}{change[1]:>9.2f}{ratio:>7.2f}\n"
        )


if __name__ == "__main__":
    main()
