"""The tiles: cards where there is room, else a line for each guest and for each workload that runs in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.sample import Sample
from vmlab.system.text_width import exactly
from vmlab.tui.state.history import History
from vmlab.tui.state.views import CellView, GuestView, WorkloadView
from vmlab.tui.widgets.charts.axis_scale import NO_FIGURE, clock, whole
from vmlab.tui.widgets.glyphs import tone_of
from vmlab.tui.widgets.painted import Line, Piece, Shown, hint_lines
from vmlab.tui.widgets.tables.guest_cards import Cards, workload_bar

METRICS = (
    "guest_cpu_percent",
    "guest_vcpu_delay_percent",
    "guest_disk_read_bytes_per_second",
    "guest_disk_write_bytes_per_second",
)
"""What the table reads of a sample for each guest, in order."""
_ROLES_FROM = 104
"""Columns from which on guests have their roles beside them: bars of progress come first."""
_CARDS_FROM = 12
"""Rows from which on guests are cards where they fit: fewer are for the table alone."""
_TITLE = "Guests"


class _Widths(NamedTuple):
    """Columns of each field for one width of the table; a narrow one has no roles, so that bars have room."""

    guest: int
    role: int
    workload: int
    bar: int

    @classmethod
    def of(cls, width: int) -> _Widths:
        if width < _ROLES_FROM:
            spare = max(0, width - 75)
            # Names come before the length of bars.
            part = min(8, spare * 2 // 5)
            return cls(8 + part, 0, 8 + part, 8 + min(14, spare - 2 * part))
        spare = width - 86
        part = min(8, spare // 4)
        return cls(8 + part, 10 + min(6, spare // 4), 8 + part, 8 + min(14, spare // 4))


class Tiles(NamedTuple):
    """`guests` with their figures in the `last` sample; `hint` stands there while there are none.

    Cells that have `ended` are listed below where there is room. With their `history` guests are cards, where these
    fit.
    """

    guests: Sequence[GuestView] = ()
    last: Sample | None = None
    now: float = 0.0
    hint: Sequence[str] = ()
    ended: Sequence[CellView] = ()
    history: History | None = None


class GuestTable(Shown[Tiles]):
    """Guest, role (where there is room), state, CPU, delay, disk; then each workload, how far it is, and its time."""

    can_focus = True
    shown = Tiles()
    _rows: Sequence[int] = ()
    """The line in which each guest begins."""

    def repaint(self) -> None:
        """With the number of guests below what is in sight, in the edge above."""
        super().repaint()
        self._say_more()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Others are in sight."""
        super().watch_scroll_y(old_value, new_value)
        self._say_more()

    def _say_more(self) -> None:
        end = round(self.scroll_offset.y) + self.size.height
        more = sum(row >= end for row in self._rows)
        sign = "v" if self.glyphs.plain else "▼"
        self.retitle(f"{_TITLE}  {sign} {more} more" if more else _TITLE)

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """A heading, then the guests by tile, then the cells that have ended."""
        self._rows = ()
        above = self._cards(width, height) or list(self._tiles(width))
        room = height - len(above) - 2
        return [*above, *self._cells(room)] if self.shown.ended and room > 0 else above

    def _cards(self, width: int, height: int) -> list[Line]:
        """The guests as cards; none where there is no room for them, or nothing that they could show."""
        if self.shown.history is None or not self.shown.guests or height < _CARDS_FROM:
            return []
        return [*(Cards(self.shown.guests, self.shown.history, self.shown.now, self.glyphs).lines(width, height) or ())]

    def _cells(self, room: int) -> Iterable[Line]:
        yield []
        yield [("Cells that have ended", "title")]
        for cell in self.shown.ended[-room:]:
            took = "" if cell.wall_seconds is None else f"  workloads took {clock(cell.wall_seconds)}"
            outcome = f"{self.glyphs.sign(cell.outcome)} {cell.outcome}"
            yield [
                (f"{cell.number:>3} ", "quiet"),
                (f"{outcome:<10} ", tone_of(cell.outcome)),
                (f"{axes_words(dict(cell.axes))}, {repeat_words(cell.repeat)}", "plain"),
                (took, "quiet"),
            ]

    def _tiles(self, width: int) -> Iterable[Line]:
        if not self.shown.guests:
            yield from hint_lines(self.shown.hint, width)
            return
        widths = _Widths.of(width)
        yield [(_heading(widths), "quiet")]
        *self._rows, _ = accumulate((len(guest.workloads) or 1 for guest in self.shown.guests), initial=1)
        for guest in self.shown.guests:
            own = guest.workloads or (None,)
            for place, workload in enumerate(own):
                left = self._guest(guest, widths) if place == 0 else [(" " * _left(widths), "plain")]
                yield [*left, *self._workload(workload, guest, widths)]

    def _guest(self, guest: GuestView, widths: _Widths) -> list[Piece]:
        last = None if guest.is_gone else self.shown.last
        cpu, delay, read, written = (math.nan if last is None else last.get(f"{one}[{guest.key}]") for one in METRICS)
        delay /= max(1, guest.vcpus)
        state = f"{self.glyphs.sign(guest.state)} {guest.state}"
        return [
            (f"{guest.tile:<2}", "quiet"),
            (f"{exactly(guest.guest, widths.guest)} ", "plain"),
            *([(f"{exactly(guest.role or NO_FIGURE, widths.role)} ", "quiet")] if widths.role else []),
            (exactly(state, 12), tone_of(guest.state)),
            (f"{whole(cpu):>4} ", "plain"),
            (f"{whole(delay):>6} ", "warning" if delay >= 20 else "plain"),
            (f"{_rate(read + written):>9} ", "plain"),
        ]

    def _workload(self, workload: WorkloadView | None, guest: GuestView, widths: _Widths) -> list[Piece]:
        if workload is None:
            return [(f"serves {', '.join(guest.serves)}", "quiet")] if guest.serves else []
        name: list[Piece] = [(f"{exactly(workload.name, widths.workload)} ", "accent")]
        times = clock(workload.elapsed(self.shown.now))
        last: list[Piece] = []
        if workload.last_seconds is not None:
            last = [(f"/{clock(workload.last_seconds)}", "quiet")]
        return [*name, *workload_bar(workload, widths.bar, self.glyphs), (f" {times:>4}", "plain"), *last]


def _left(widths: _Widths) -> int:
    return 2 + sum(columns + 1 for columns in (widths.guest, widths.role) if columns) + 12 + 5 + 7 + 10


def _heading(widths: _Widths) -> str:
    role = f"{'role':<{widths.role}} " if widths.role else ""
    left = f"{'tile guest':<{widths.guest + 2}} {role}{'state':<12}cpu% delay% disk MB/s "
    return f"{left}{'workload':<{widths.workload}} {'done':<{widths.bar}} time/last"


def _rate(value: float) -> str:
    """Bytes a second in MB: ``4.6``."""
    return NO_FIGURE if math.isnan(value) else f"{value / 1e6:.1f}" if value < 1e8 else f"{value / 1e6:.0f}"
