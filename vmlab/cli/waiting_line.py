"""Where a run stands that waits for its turn, on standard error.

A line for each change of its place or of what measures, and on a terminal a moving last line with the estimate.
"""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from vmlab.lab.process.waiting_runs import Standing
from vmlab.model.visible import Control, visible_line
from vmlab.report.queue_words import begins_words
from vmlab.system.terminal import forget, put
from vmlab.system.text_width import first_columns

_CLEAR_LINE = Control("\x1b[A\r\x1b[2K")
"""Takes back the line above: the moving line is whole, so that a signal's words stand below it."""


class WaitingLine:
    """Call `show` with each `Standing`; the moving line is gone after the `with` block."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._moving = self._stream.isatty()
        self._said: object = None
        self._drawn = ""

    def __enter__(self) -> WaitingLine:
        return self

    def __exit__(self, *failure: object) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._drawn:
            self._write(_CLEAR_LINE)
            self._drawn = ""

    def show(self, standing: Standing) -> None:
        """Print the line where something has changed, and refresh the moving line."""
        queue = standing.queue
        behind = (standing.place, [run.run for run in queue.measuring], [one.number for one in queue.passed_over])
        if behind != self._said:
            self._clear()
            more = "; nothing of this run is started, and Ctrl-C gives up" if self._said is None else ""
            self._write(visible_line(f"waiting: {_standing(standing)}{_before(standing)}{more}"), "\n")
            self._said = behind
        moving = visible_line(f"  {_standing(standing)}")
        if self._moving and moving != self._drawn:
            self._clear()
            self._write(first_columns(moving, shutil.get_terminal_size().columns - 1), "\n")
            self._drawn = moving

    def _write(self, *parts: str) -> None:
        try:
            put(self._stream, *parts)
        except OSError:
            forget(self._stream)


def _standing(standing: Standing) -> str:
    of = max(standing.place, len(standing.queue.waiting))
    return f"place {standing.place} of {of}, {begins_words(standing.begins)}"


def _before(standing: Standing) -> str:
    """What is waited for, and what is not."""
    queue = standing.queue
    before = queue.waiting[: standing.place - 1]
    parts = [f"{run.in_full()}, measures now" for run in queue.measuring]
    parts += [f"{before[-1]} is before it"] if before else []
    parts += [f"{one} does not run, and is passed over until it does" for one in queue.passed_over]
    return "".join(f"; {part}" for part in parts)
