"""The targets of a cell as bars with the limit as a mark: what each tile had to deliver, and whether it did."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vmlab.system.text_width import left, width_of
from vmlab.tui.widgets.painted import Line, Painted

if TYPE_CHECKING:
    from vmlab.report.run.tiles_board import TargetBar

_MARK = ("┃", "|")
_FULL = ("█", "=")
_LEAST, _MOST = 10, 60


class TargetMeter(Painted):
    """A line for each workload; the limit stands in the middle of its bar, which ends at twice the limit."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._bars: Sequence[TargetBar] = ()

    def show(self, bars: Sequence[TargetBar]) -> None:
        """Draw `bars`."""
        if bars != self._bars:
            self._bars = bars
            self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """``mail p95 ████████┃█████ 37.7 s  limit 10 s  MISSED``."""
        name = max((width_of(bar.name) for bar in self._bars), default=0)
        value = max((len(bar.value) for bar in self._bars), default=0)
        limit = max((len(bar.limit) for bar in self._bars), default=0)
        half = max(_LEAST, min(_MOST, width - name - value - limit - 22)) // 2
        plain = self.glyphs.plain
        for bar in self._bars:
            # However little was missed, the bar goes beyond its limit, and where it was met it does not.
            filled = math.floor(min(bar.load, 2.0) * half)
            filled = min(half, filled) if bar.met else max(half + 2, filled)
            text = left(_FULL[plain] * filled, 2 * half)
            tone = "good" if bar.met else "bad"
            yield [
                (f" {left(bar.name, name)} ", "plain"),
                (text[:half], tone),
                (_MARK[plain], "title"),
                (text[half + 1 :], tone),
                (f" {bar.value:>{value}}  ", "title"),
                (f"limit {bar.limit:<{limit}}  ", "quiet"),
                ("met" if bar.met else "MISSED", tone),
            ]
