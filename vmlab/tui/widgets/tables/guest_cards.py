"""The tiles as cards side by side: each guest with its own small history, and its workloads below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vmlab.model.grouping import grouped
from vmlab.model.run import DONE, RUNNING, SETTLING
from vmlab.system.text_width import exactly, right
from vmlab.telemetry.host.host_figures import Terms
from vmlab.tui.state.history import History, bridged, newest_known
from vmlab.tui.state.views import GuestView, WorkloadView
from vmlab.tui.widgets.charts.axis_scale import clock, short, whole
from vmlab.tui.widgets.glyphs import Glyphs, tone_of
from vmlab.tui.widgets.painted import Piece, line_width

NARROWEST = 30
_TWO_HALVES = 46
_GAP = 2
_LATE_PERCENT = 20.0


class _Small(NamedTuple):
    """A figure of a guest with its small history. Without a `top`, all guests share the largest value in sight."""

    label: str
    metrics: tuple[str, ...]
    unit: str
    one: float
    tone: str
    top: float | None
    least: float = 1.0

    def terms(self, guest: str) -> Terms:
        """The values in a sample that it adds up."""
        return tuple((f"{metric}[{guest}]", 1) for metric in self.metrics)


def _moved(label: str, whose: str, ways: tuple[str, str], tone: str) -> _Small:
    """Bytes a second, both ways together."""
    return _Small(label, tuple(f"guest_{whose}_{way}_bytes_per_second" for way in ways), "MB/s", 1e6, tone, None, 1e6)


CPU = _Small("CPU", ("guest_cpu_percent",), "%", 1.0, "one", None, 100.0)
DELAY = _Small("delay", ("guest_vcpu_delay_percent",), "%", 1.0, "three", 100.0)
DISK = _moved("disk", "disk", ("read", "write"), "two")
NETWORK = _moved("net", "network", ("receive", "transmit"), "one")
_PAIRS = ((CPU, DELAY), (DISK, NETWORK))
_MOST_SAMPLES = 240


class Cards:
    """The cards of `guests` for one picture."""

    def __init__(self, guests: Sequence[GuestView], history: History, now: float, glyphs: Glyphs) -> None:
        self._tiles = grouped((guest.tile, guest) for guest in guests)
        self._history, self._now, self._glyphs = history, now, glyphs
        self._tops = {
            small.label: max(small.least, small.top or self._largest(small, guests))
            for pair in _PAIRS
            for small in pair
        }

    def lines(self, width: int, height: int) -> list[list[Piece]] | None:
        """Lines for a place of `width` by `height`; None where the cards do not fit there."""
        count = len(self._tiles)
        each = (width - _GAP * (count - 1)) // count if count else 0
        if each < NARROWEST:
            return None
        for airy in (True, False):
            columns = [list(self._tile(tile, guests, each, airy)) for tile, guests in self._tiles.items()]
            tallest = max(map(len, columns))
            if tallest <= height:
                for column in columns:
                    column += [[] for _ in range(tallest - len(column))]
                return [_beside(row, each) for row in zip(*columns, strict=True)]
        return None

    def _tile(self, tile: int, guests: Sequence[GuestView], width: int, airy: bool) -> Iterator[list[Piece]]:
        if len(self._tiles) > 1:
            yield [(f"Tile {tile}", "title")]
        for place, guest in enumerate(guests):
            if airy and place:
                yield []
            yield self._title(guest, width)
            yield from self._figures(guest, width)
            for workload in guest.workloads:
                yield workload_line(workload, self._now, width, self._glyphs)
            if not guest.workloads:
                yield [(f"serves {', '.join(guest.serves)}" if guest.serves else "", "quiet")]

    def _title(self, guest: GuestView, width: int) -> list[Piece]:
        line = "-" if self._glyphs.plain else "─"
        state = f" {self._glyphs.sign(guest.state)} {guest.state}"
        room = width - len(state) - len(guest.guest) - 4
        role = f" {guest.role}" if guest.role and len(guest.role) < room else ""
        fill = line * max(0, room - len(role))
        return [
            (f"{line} ", "quiet"),
            (guest.guest, "title"),
            (f"{role} ", "quiet"),
            (fill, "quiet"),
            (state, tone_of(guest.state)),
        ]

    def _figures(self, guest: GuestView, width: int) -> Iterator[list[Piece]]:
        if width >= _TWO_HALVES:
            half = (width - _GAP) // 2
            for left, right in _PAIRS:
                yield [*self._small(left, guest, half), (" " * _GAP, "plain"), *self._small(right, guest, half)]
        else:
            yield self._small(CPU, guest, width)
            yield self._small(DISK, guest, width)

    def _small(self, small: _Small, guest: GuestView, width: int) -> list[Piece]:
        room = width - 16
        values = self._history.values(small.terms(guest.key), _MOST_SAMPLES)
        if small is DELAY and guest.vcpus > 1:
            values = [value / guest.vcpus for value in values]
        now = math.nan if guest.is_gone else newest_known(values)
        text = whole(now) if small.unit == "%" else short(now / small.one)
        late = small is DELAY and now >= _LATE_PERCENT
        (spark,) = self._glyphs.spark(bridged(values)[-room:], self._tops[small.label])
        return [
            (f"{small.label:<5}", "quiet"),
            (f"{text:>5}", "warning" if late else "plain"),
            (f" {small.unit:<5}", "quiet"),
            (right(spark, room), small.tone),
        ]

    def _largest(self, small: _Small, guests: Sequence[GuestView]) -> float:
        every = (self._history.values(small.terms(guest.key), _MOST_SAMPLES) for guest in guests)
        return max((value for values in every for value in values if not math.isnan(value)), default=0.0)


def _beside(row: Sequence[list[Piece]], each: int) -> list[Piece]:
    line: list[Piece] = []
    for place, pieces in enumerate(row):
        used = line_width(pieces)
        line += [*pieces, (" " * (each - used + _GAP), "plain")] if place + 1 < len(row) else pieces
    return line


_NAME = 10
_LEAST_BAR = 8
_PERCENT = 5


def workload_line(workload: WorkloadView, now: float, width: int, glyphs: Glyphs) -> list[Piece]:
    """A line of `width` columns; the bar takes what the words leave."""
    times = clock(workload.elapsed(now))
    last = f"  last {clock(workload.last_seconds)}" if workload.last_seconds is not None else ""
    room = width - _NAME - 1 - len(times) - 1
    if room - len(last) < _LEAST_BAR:
        last = ""
    bar = workload_bar(workload, room - len(last), glyphs)
    return [(f"{exactly(workload.name, _NAME)} ", "accent"), *bar, (f" {times}", "plain"), (last, "quiet")]


def workload_bar(workload: WorkloadView, width: int, glyphs: Glyphs) -> list[Piece]:
    """How far it is in `width` columns: a bar with its percentage, or a word."""
    if workload.outcome != RUNNING:
        word = f"{glyphs.sign(workload.outcome)} {workload.outcome}"
        return [(exactly(word, width), tone_of(workload.outcome))]
    if workload.stage in (DONE, SETTLING):
        return [(exactly(workload.stage, width), "good" if workload.stage == DONE else "plain")]
    if workload.fraction is None:
        return [(exactly("waiting", width), "quiet")]
    done, rest = glyphs.bar(workload.fraction, width - _PERCENT)
    return [(done, "good"), (rest, "quiet"), (f" {workload.fraction * 100:3.0f}%", "plain")]
