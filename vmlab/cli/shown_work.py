"""Shows long work (`vmlab.integrity.long_work`) on standard error, for commands that read, copy or pack large files.

On a terminal it is a line that moves: how far the stage is, how fast, and how long it will take. Elsewhere that is one
line every ten seconds. Lines of the work itself, as it has on the launcher's side too, stay above (`notice`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from vmlab.cli.interrupts import heed
from vmlab.cli.progress import MovingLine
from vmlab.integrity.long_work import LongWork, as_current
from vmlab.model.units import format_bytes, format_seconds
from vmlab.model.visible import visible_line

_EVERY_SECONDS = 10.0
_MOVE_SECONDS = 0.1
_FIRST_SECONDS = 0.5
_BAR = 16


@contextmanager
def shown_work() -> Iterator[ShownWork]:
    """In this block long work is shown, and ended by signals even where a library lost their exception."""
    work = ShownWork()
    with as_current(work):
        yield work


class ShownWork(LongWork):
    """Long work on standard error."""

    def __init__(self, line: MovingLine | None = None) -> None:
        super().__init__(heed)
        self._line = line or MovingLine(sys.stderr)
        self._began = self._shown = time.monotonic()

    def notice(self, line: str) -> None:
        """Write a line that stays."""
        self._line.keep(visible_line(line))

    def begun(self) -> None:
        self._began = self._shown = time.monotonic()

    def moved(self) -> None:
        now = time.monotonic()
        every = _MOVE_SECONDS if self._line.moves else _EVERY_SECONDS
        if not self.words or now - self._shown < every or now - self._began < _FIRST_SECONDS:
            return
        self._shown = now
        if self._line.moves:
            self._line.move(self._text(now))
        else:
            self._line.keep(self._text(now))

    def over(self) -> None:
        self._line.clear()

    def _text(self, now: float) -> str:
        """``[######----------]  43 %, 1.2 GB/s, 42 s left  copying disk``; without a total the time that it took."""
        seconds, done = now - self._began, min(self.done, self.total)
        if not self.total:
            return f"{format_seconds(seconds)}  {visible_line(self.words)}"
        parts = [f"{int(100 * done / self.total)} %"]
        if self.unit == "B" and done:
            parts.append(f"{format_bytes(done / seconds)}/s")
        if 0 < done < self.total:
            parts.append(f"{format_seconds(seconds * (self.total - done) / done)} left")
        full = int(_BAR * done / self.total)
        bar = f"[{'#' * full}{'-' * (_BAR - full)}]  " if self._line.moves else ""
        return f"{bar}{', '.join(parts)}  {visible_line(self.words)}"
