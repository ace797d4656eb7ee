"""The phases of the compared cells, a line a side, all on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vmlab.model.quantities import format_seconds
from vmlab.system.text_width import exactly, left, width_of
from vmlab.tui.widgets.painted import Line, Piece, Shown
from vmlab.tui.widgets.side_table import TONES

_LABEL = 20


class Phases(NamedTuple):
    """The `phases` of sides with these labels, in seconds; `cells` are the numbers of their cells."""

    labels: Sequence[str] = ()
    phases: Sequence[Mapping[str, float]] = ()
    cells: Sequence[int] = ()


class PhaseLines(Shown[Phases]):
    """How long each phase of each side's cell took, by the length of its part of the line."""

    shown = Phases()

    def show(self, shown: Phases) -> None:
        """Draw `shown`, as high as it takes."""
        self.styles.height = 1 + len(shown.labels)
        super().show(shown)

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """A heading, and a line for each side."""
        yield [
            ("Phases", "title"),
            (f" of the cells that are drawn above: {', '.join(map(str, self.shown.cells))}", "quiet"),
        ]
        longest = max((sum(phases.values()) for phases in self.shown.phases), default=0.0)
        for place, (label, phases) in enumerate(zip(self.shown.labels, self.shown.phases, strict=False)):
            tone = TONES[place % len(TONES)]
            yield [(f"{exactly(label, _LABEL)} ", tone), *self._parts(phases, longest, width - _LABEL - 1)]

    def _parts(self, phases: Mapping[str, float], longest: float, room: int) -> Iterable[Piece]:
        sign = "|" if self.glyphs.plain else "▏"
        passed, used = 0.0, 0
        for number, (name, seconds) in enumerate(phases.items()):
            passed += seconds
            columns = (round(passed / longest * room) if longest else 0) - used
            used += columns
            text = f"{sign}{name} {format_seconds(seconds)}"
            if width_of(text) > columns:
                text = f"{sign}{format_seconds(seconds)}"
            shown = text if width_of(text) <= columns else sign[:columns]
            yield (left(shown, columns), "accent" if name == "execute" else "plain" if number % 2 else "quiet")
