"""The stage of the demo, in letters for an audience: the question, the state, what is known so far, the narration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from typing import NamedTuple

from vmlab.report.demo.so_far import SideSoFar, TilesSoFar
from vmlab.system.text_width import left, right, wrapped
from vmlab.tui.state.history import Gauge
from vmlab.tui.widgets.large_strip import LargeStrip, Word, large_lines
from vmlab.tui.widgets.painted import Line, Piece, Shown

_MOST_LINES = 3
"""Of a sentence in large letters."""
_HIGH = 30
"""Rows of a screen from which on the question may take two large lines."""
_HIGHER = 44
"""The same for a sentence in large letters."""


class Spoken(NamedTuple):
    """A `title` in large letters where they fit, with a `sentence`, on a screen with so many `rows`.

    The sentence is large as well where it `may` be and there is room.
    """

    title: str = ""
    sentence: str = ""
    rows: int = 0
    may: bool = True
    tone: str = "title"


class SpokenPane(Shown[Spoken]):
    """The question with what it is about, or the narration."""

    shown = Spoken()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """Title and sentence."""
        return self.drawn(self.shown, width)

    def drawn(self, spoken: Spoken, width: int) -> list[Line]:
        """The lines of `spoken`."""
        room = max(20, width - 2)
        most = 0 if self.glyphs.plain else 2 if spoken.rows >= _HIGH else 1
        large = spoken.may and spoken.rows >= _HIGHER and not self.glyphs.plain
        title = large_lines(spoken.title, room, most) or [spoken.title]
        sentence = (large_lines(spoken.sentence, room, _MOST_LINES) if large else []) or wrapped(spoken.sentence, room)
        return [
            *([(f" {line}", spoken.tone)] for line in title if line),
            *([(f" {line}", "plain")] for line in sentence),
        ]


class Stage(NamedTuple):
    """The number of `tiles` and the `cache` mode that is in force, with the `gauges` of the same ten seconds."""

    tiles: int = 0
    cache: str = ""
    was: str = ""
    gauges: Sequence[Gauge] = ()


class StagePane(LargeStrip[Stage]):
    """Tiles, cache mode and both gauges, each with its limit."""

    shown = Stage()

    def words(self, width: int) -> Iterator[Word]:
        """Figures in large letters; bars are shorter and the cache mode is small where there is less room."""
        ways = [self._ways(small=small, columns=columns) for small, columns in _WAYS]
        yield from next((words for words in ways if self.room(words) <= width), ways[-1])

    def _ways(self, *, small: bool, columns: int) -> list[Word]:
        stage = self.shown
        if not stage.tiles:
            return []
        caption, tone = (f"cache, was {stage.was}", "warning") if stage.was else ("cache", "accent")
        words = [
            Word("tile" if stage.tiles == 1 else "tiles", str(stage.tiles), "title"),
            Word(caption, stage.cache, tone, small=small),
        ]
        for gauge in stage.gauges:
            bar = gauge.bar(columns, plain=self.glyphs.plain, marked=True)
            limit = "" if small and columns < _LONGEST else f" full at {gauge.limit:.0f} %"
            share = "..." if isnan(gauge.percent) else f"{gauge.percent:.0f}%"
            words.append(Word(f"{gauge.name} {bar}{limit}", share, gauge.tone))
        return words


_LONGEST = 20
_WAYS = ((False, 40), (False, _LONGEST), (True, _LONGEST), (True, 15), (True, 10))
"""Whether the cache mode is small, and the columns of a gauge's bar: the first that fit."""


class SoFar(NamedTuple):
    """What is known of each of the `sides` while the cell number `now` is measured."""

    sides: Sequence[SideSoFar] = ()
    now: int = 0


class SoFarPane(Shown[SoFar]):
    """A table that grows to the answer: a row for each workload, a column for each number of tiles."""

    shown = SoFar()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The sides below each other, with empty lines where there is room."""
        sides = self.shown.sides
        if not sides:
            return
        tiles = [one.tiles for one in sides[0].tiles]
        limits = {name: limit for side in sides for one in side.tiles for name, limit in one.limits.items()}
        airy = height >= len(sides) * (len(limits) + 4) + 2
        of_twenty = limits and all(bar.endswith(_P95) for bar in limits)
        known = ("19 of 20 within (limit)" if width >= _BROAD else "19 of 20 (limit)") if of_twenty else ""
        words = [known, *(f"  {_workload(bar)} ({limit})" for bar, limit in limits.items())]
        name = max([_NAME, *(len(text) + (width >= _BROAD) for text in words)])
        each = max(_VALUE, min(_MOST_VALUE, (width - name) // max(1, len(tiles))))
        heads = [f"{count} tile{'s' * (count > 1)}" for count in tiles]
        yield [(left(known, name), "quiet"), *((right(head, each), "title") for head in heads)]
        for side in sides:
            if airy:
                yield []
            yield [(left(f" {side.label}", name), "accent"), *(self._state(one, each) for one in side.tiles)]
            for bar, limit in limits.items():
                cells = [self._value(one, bar, each) for one in side.tiles]
                if any(one.bars or one.cell == self.shown.now for one in side.tiles):
                    yield [(left(f"  {_workload(bar)} ({limit})", name), "plain"), *cells]

    def _state(self, one: TilesSoFar, each: int) -> Piece:
        """How it went, or that it is measured now or later."""
        word, tone = ("now", "title") if one.cell == self.shown.now else ("?", "quiet")
        if one.switched:
            word, tone = "switched", "warning"
        elif one.met is not None:
            word, tone = ("met", "good") if one.met else ("MISSED", "bad")
        return right(word, each), tone

    @staticmethod
    def _value(one: TilesSoFar, name: str, each: int) -> Piece:
        bar = next((bar for bar in one.bars if bar.name == name), None)
        return (" " * each, "plain") if bar is None else (right(bar.value, each), "good" if bar.met else "bad")


_P95 = " p95"
_NAME, _VALUE, _MOST_VALUE = 16, 9, 14
"""Columns of a workload with its limit, and of a figure."""
_BROAD = 52
"""Columns from which on words are written out."""


def _workload(bar: str) -> str:
    return bar.partition(" ")[0]


class StepsOf(NamedTuple):
    """The names of the steps, the place of the one that is shown, and what is played how."""

    names: Sequence[str] = ()
    place: int = 0
    origin: str = ""


class StepsPane(Shown[StepsOf]):
    """One line: all steps with the one that is shown in brackets, and numbers alone where all names have no room."""

    shown = StepsOf()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The line, which ends with ``step 3 of 8  RECORDING``."""
        names, here, origin = self.shown
        count = f"step {here + 1} of {len(names)}  "
        for whole, told in ((True, count), (False, count), (False, "")):
            line: list[Piece] = []
            for place, name in enumerate(names):
                text = f"{place + 1} {name.lower()}" if whole or place == here else f"{place + 1}"
                line.append((f" [{text}]" if place == here else f"  {text} ", "accent" if place == here else "quiet"))
            gap = width - sum(len(text) for text, _ in line) - len(told) - len(origin) - 1
            if gap > 0:
                break
        yield [*line, (" " * max(1, gap), "plain"), (told, "quiet"), (origin, "warning")]
