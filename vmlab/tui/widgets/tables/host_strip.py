"""The hosts of a fleet: a line for each where there is room, else as many beside each other as fit; one of them is lit.

That one is shown in full on the rest of the screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.events import Click
from textual.message import Message

from vmlab.model.axes import axes_words
from vmlab.system.text_width import exactly, left
from vmlab.tui.state.hosts_of_run import HostView
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.painted import Line, Piece, Shown, line_width

TITLE = "Hosts: f shows the next one below"
_WIDE = 110
"""Columns from which on a line has bars."""
_BAR = 10
_GAP = 2
_STATE = 15
_LEAST_REASON = 8
_SHAPES = ("words", "state", "cell", "figures")
"""What hosts beside each other say, from the most to the least."""


class HostLines(NamedTuple):
    """`hosts` as at `now` on the monotonic clock, on `rows` lines at most; `chosen` is lit."""

    hosts: Sequence[HostView] = ()
    chosen: str = ""
    now: float = 0.0
    rows: int = 1


class HostStrip(Shown[HostLines]):
    """States of hosts, with CPU, disk, cache mode and cell; a click chooses one."""

    @dataclass(eq=False)
    class Chosen(Message):
        """The host `name` is to be shown in full."""

        name: str

    shown = HostLines()
    _places: Sequence[tuple[int, int, int, str]] = ()
    """Row, first column, column behind the last, and the host that stands there."""

    def show(self, shown: HostLines) -> None:
        """Draw `shown`, as high as it takes."""
        self.styles.height = min(shown.rows, len(shown.hosts)) + self.gutter.height
        super().show(shown)

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The hosts."""
        height = max(1, height)
        if len(self.shown.hosts) <= height and height > 1:
            self._places = [(row, 0, width, host.name) for row, host in enumerate(self.shown.hosts)]
            return self._one_a_line(width)
        return self._beside(width, height)

    def _one_a_line(self, width: int) -> list[Line]:
        name = max(len(host.name) for host in self.shown.hosts)
        axes = {host.name: _configured(host) for host in self.shown.hosts}
        bar = _BAR if width >= _WIDE else 0
        # State, cell, gauges and how many are done have their columns; what it runs has those that are left.
        taken = 2 + name + _GAP + _STATE + _GAP + 8 + _GAP + 2 * (10 + bar) + 10
        room = max(8, min(width - taken, max(map(len, axes.values()))))
        lines: list[Line] = []
        for host in self.shown.hosts:
            line = [*self._named(host, name), *self._state(host)]
            if not host.reason:
                cell = f"cell {host.cell}" if host.cell else ""
                line += [(f"{cell:<8}  ", "plain"), (exactly(axes[host.name], room) + "  ", "accent")]
                line += self._gauges(host, bar)
                line.append((f"{host.done} done", "quiet"))
            lines.append(line)
        return lines

    def _named(self, host: HostView, columns: int) -> list[Piece]:
        chosen = host.name == self.shown.chosen
        return [(f"{self._sign(host)} ", host.tone), (f"{host.name:<{columns}}", "cursor" if chosen else "title")]

    def _sign(self, host: HostView) -> str:
        signs = {"good": "running", "bad": "failed", "warning": "invalid"}
        return self.glyphs.sign(signs.get(host.tone, "gone"))

    def _state(self, host: HostView) -> list[Piece]:
        """What it does, for how long, or why it does nothing."""
        if host.reason:
            return [(f"  {host.state} {clock(self.shown.now - host.since)}: {host.reason}", host.tone)]
        words = f"{host.state} {clock(self.shown.now - host.since)}" if host.cell else host.state
        return [(f"  {words:<{_STATE}}  ", host.tone)]

    def _gauges(self, host: HostView, columns: int) -> list[Piece]:
        known = {gauge.name: gauge for gauge in host.gauges}
        pieces: list[Piece] = []
        for name in ("cpu", "disk"):
            gauge = known.get(name)
            width = 5 + columns
            pieces.append((f"{name.upper():<4} ", "quiet"))
            if gauge is None:
                pieces.append((" " * width, "quiet"))
                continue
            bar = gauge.bar(columns, plain=self.glyphs.plain)
            pieces.append((left(f"{bar}{gauge.percent:>{4 if columns else 3}.0f}", width), gauge.tone))
        return pieces

    def _beside(self, width: int, height: int) -> list[Line]:
        """As much of each as there is room for; where not even that is, those around the chosen one."""
        shaped = [[self._short(host, shape) for host in self.shown.hosts] for shape in _SHAPES]
        found = next((one for one in shaped if _fits(one, width, height)), shaped[-1])
        columns = max(map(line_width, found))
        if height == 1 and _fits(found, width, height):
            return [self._on_one_line(found, width)]
        each = max(1, (width + _GAP) // (columns + _GAP))
        names = [host.name for host in self.shown.hosts]
        at = names.index(self.shown.chosen) if self.shown.chosen in names else 0
        first = max(0, min(at - each * height // 2, len(names) - each * height))
        lines: list[Line] = []
        self._places = []
        for row in range(height):
            line: list[Piece] = []
            for place in range(first + row * each, min(first + (row + 1) * each, len(names))):
                began = line_width(line)
                self._places.append((row, began, began + columns, names[place]))
                line += [*found[place], (" " * (columns + _GAP - line_width(found[place])), "plain")]
            lines.append(line)
        return lines

    def _on_one_line(self, cells: Sequence[list[Piece]], width: int) -> Line:
        """All of them, with what room is left for the reason of one that broke off."""
        left = width - sum(map(line_width, cells)) - len(cells) + 1
        self._places, line = [], list[Piece]()
        for host, cell in zip(self.shown.hosts, cells, strict=True):
            began = line_width(line)
            line += cell
            if host.reason and left > _LEAST_REASON:
                line.append((exactly(f": {host.reason}", min(left, len(host.reason) + 2)), host.tone))
                left = 0
            self._places.append((0, began, line_width(line), host.name))
            line.append((" ", "plain"))
        return line

    def _short(self, host: HostView, shape: str) -> list[Piece]:
        sign, name = self._named(host, 0)
        line: list[Piece] = [(sign[0], sign[1]) if shape == "words" else (sign[0].rstrip(), sign[1]), name]
        if host.reason or not host.cell:
            return [*line, (f" {host.state}", host.tone)]
        if shape in ("words", "state"):
            line.append((f" {host.state}", host.tone))
        if shape != "figures":
            line.append((f" cell {host.cell}" if shape == "words" else f" {host.cell}", "plain"))
            words = _configured(host) if shape == "words" else host.cache
            line.append((f" {words}" if words else "", "accent"))
        for gauge in sorted(host.gauges):
            label = f" {gauge.name.upper()} " if shape == "words" else f" {gauge.name[0].upper()}"
            line += [(label, "quiet"), (f"{gauge.percent:.0f}", gauge.tone)]
        return line

    def on_click(self, event: Click) -> None:
        """The host under the pointer is to be shown in full."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        for row, began, ended, name in self._places:
            if row == offset.y and began <= offset.x < ended:
                self.post_message(self.Chosen(name))


def _configured(host: HostView) -> str:
    """What its cell is: the axes, and the cache mode that is no axis or was switched."""
    axes = dict(host.axes)
    if host.cache:
        axes["cache"] = host.cache
    return axes_words(axes) if host.cell else ""


def _fits(cells: Sequence[Line], width: int, height: int) -> bool:
    if height == 1:
        return sum(map(line_width, cells)) + len(cells) - 1 <= width
    each = (width + _GAP) // (max(map(line_width, cells)) + _GAP)
    return each * height >= len(cells)
