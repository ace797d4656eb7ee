"""A run's progress on standard error: a line for each thing that happened, and on a terminal a moving last line."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from vmlab.model.event import (
    CellEnded,
    CellStarted,
    Event,
    HostProbed,
    ImageReady,
    Notice,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunStarted,
    WorkloadEnded,
    WorkloadProgressed,
)
from vmlab.model.units import format_seconds

_CLEAR_LINE = "\r\x1b[2K"


class RunProgress:
    """Turns events into lines. Call `show` with each event, and with None whenever time has passed."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._moving = self._stream.isatty()
        self._cells = 0
        self._phase: tuple[str, float] | None = None
        self._progress: dict[tuple[int, str], WorkloadProgressed] = {}

    def show(self, event: Event | None) -> None:
        """Print what `event` is worth, and refresh the moving line."""
        line = None if event is None else self._line(event)
        if line is not None:
            self._write((_CLEAR_LINE if self._moving else "") + line + "\n")
        if self._moving:
            self._write(_CLEAR_LINE + self._status()[: shutil.get_terminal_size().columns - 1])
        if isinstance(event, RunEnded) and self._moving:
            self._write(_CLEAR_LINE)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _line(self, event: Event) -> str | None:
        match event:
            case RunStarted():
                self._cells = event.cells
                expected = format_seconds(event.expected_seconds)
                return f"run {event.run}: {event.scenario}, size {event.size}, {event.cells} cells, about {expected}"
            case ImageReady(how="built"):
                return f"image {event.image} built in {format_seconds(event.seconds)}"
            case HostProbed():
                emulated = "; figures describe emulation" if event.accelerator == "tcg" else ""
                return f"accelerator {event.accelerator}{emulated}"
            case CellStarted():
                return f"cell {event.cell}/{self._cells}: {_axes(event)}, {event.guests} guests"
            case PhaseStarted():
                self._phase = (event.phase, event.mono)
                self._progress.clear()
            case PhaseEnded():
                self._phase = None
                return f"  {event.phase}: {format_seconds(event.seconds)}"
            case WorkloadProgressed():
                self._progress[event.tile, event.workload] = event
            case WorkloadEnded():
                reason = f": {event.reason}" if event.reason else ""
                return f"  tile {event.tile} {event.workload}: {event.outcome}{reason}"
            case CellEnded():
                return "\n".join([f"  cell {event.cell} {event.outcome}", *(f"    {r}" for r in event.reasons)])
            case Notice():
                return f"  {event.level}: {event.text}" if event.level != "info" else f"  {event.text}"
            case RunEnded():
                return f"run {event.outcome}" + (f": {event.reason}" if event.reason else "")
            case _:
                pass
        return None

    def _status(self) -> str:
        if self._phase is None:
            return ""
        name, began = self._phase
        parts = [f"  {name} {format_seconds(max(0.0, time.monotonic() - began))}"]
        for (tile, workload), event in sorted(self._progress.items()):
            stage = f" {event.stage}" if event.stage else ""
            parts.append(f"{workload}·{tile}{stage} {100 * event.done / (event.total or 1):.0f}%")
        return " | ".join(parts)


def _axes(event: CellStarted) -> str:
    values = ", ".join(f"{name}={value}" for name, value in event.axes.items())
    return f"{values or 'as written'}, repeat {event.repeat}"
