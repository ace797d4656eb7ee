"""Progress on standard error, with a terminal's moving line: a line a cell of a run, or for each thing that happened;
and long work (`vmlab.integrity.long_work`) of commands that read, copy or pack large files.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import TextIO

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.cli.interrupts import heed
from vmlab.integrity.long_work import LongWork, as_current
from vmlab.lab.process.waiting_runs import Standing
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    PhaseEnded,
    PhaseStarted,
    RoundEnded,
    SnapshotProgressed,
    TilesChanged,
    WorkloadEnded,
)
from vmlab.model.errors import UsageError
from vmlab.model.event import (
    AnotherRunSeen,
    CellWithdrawn,
    Event,
    HostJoined,
    HostLeftOut,
    HostProbed,
    ImageReady,
    MeasuredAgain,
    Notice,
    RepeatsAdded,
    RunEnded,
    RunStarted,
    TogetherEnded,
)
from vmlab.model.quantities import about_seconds, format_bytes, format_seconds
from vmlab.model.run import OF_HOST, Outcome
from vmlab.model.visible import Control, visible_line
from vmlab.report.cell_line import CellLines
from vmlab.report.event_words import event_sentence
from vmlab.report.listing import begins_words
from vmlab.report.run.notice_text import cell_of_notice
from vmlab.report.words import LEAST_FOLDED, plural, silent_words, without_numbers
from vmlab.system.terminal import forget, put
from vmlab.system.text_width import WIDTH, first_columns

_MOVE_SECONDS = 0.1
"""The least time between two drawings of the moving line: events of a past run come very fast."""
_SHOWN = (
    AnotherRunSeen,
    CellEnded,
    CellWithdrawn,
    HostJoined,
    HostLeftOut,
    HostProbed,
    ImageReady,
    Notice,
    RepeatsAdded,
    RunEnded,
    RunStarted,
    TogetherEnded,
)
"""The events that get a line; of images only those that were built."""
_VERBOSE = (CellStarted, MeasuredAgain, PhaseEnded, RoundEnded, TilesChanged, WorkloadEnded)
"""Those that get one only where each step is asked for."""
_CLEAR_LINE = Control("\r\x1b[2K")


class MovingLine:
    """Lines on `stream`, and below them, where it is a terminal, one that is drawn anew in its place."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.moves = stream.isatty()
        self._drawn = False

    @property
    def width(self) -> int:
        """The width of lines that stay."""
        return shutil.get_terminal_size().columns if self.moves else WIDTH

    def keep(self, line: str) -> None:
        """Write a visible line that stays."""
        self.clear()
        _put(self._stream, line, "\n")

    def move(self, line: str) -> None:
        """Draw a visible line, as far as the terminal is wide, in the place of the one before."""
        if self.moves:
            self._drawn = True
            _put(self._stream, _CLEAR_LINE, first_columns(line, shutil.get_terminal_size().columns - 1))

    def clear(self) -> None:
        """Take the moving line away."""
        if self._drawn:
            self._drawn = False
            _put(self._stream, _CLEAR_LINE)


def _put(stream: TextIO, *parts: str) -> None:
    try:
        put(stream, *parts)
    except OSError:
        # Ignored: the work goes on even if its progress cannot be shown.
        forget(stream)


class Detail(Enum):
    """How much of a run's progress is shown: nothing, a line for each cell, or one for each step of it, too."""

    QUIET = auto()
    CELLS = auto()
    STEPS = auto()

    @classmethod
    def asked(cls, *, verbose: bool, quiet: bool) -> Detail:
        """By the options. Raises UsageError for both."""
        if verbose and quiet:
            raise UsageError("--verbose shows more and --quiet less: give one of them")
        return cls.STEPS if verbose else cls.QUIET if quiet else cls.CELLS


class RunProgress:
    """Turns events into lines. Call `show` with each event, and with None whenever time has passed.

    Where the run's page follows, which has all notices, those from before the first cell have no line.
    """

    def __init__(
        self, stream: TextIO | None = None, detail: Detail = Detail.CELLS, *, page_follows: bool = False
    ) -> None:
        self._shown = MovingLine(stream if stream is not None else sys.stderr)
        self._detail = detail
        self._page_follows = page_follows
        self._notice = ""
        """What was said last before the first phase, which the moving line has."""
        self._made: dict[str, str] = {}
        """How far the guests are that are frozen for a cell."""
        self.timeline = RunTimeline()
        """The run as far as its events have been shown."""
        self._moved = -math.inf
        self._notices: Counter[str] = Counter()
        self._of_cells: dict[int, list[str]] = {}
        """What was said of cells that have not ended."""
        self._cell_lines = CellLines()

    def show(self, event: Event | None) -> None:
        """Print the line of `event`, if it has one, and refresh the moving line."""
        if event is not None:
            self.timeline.apply(event)
        if isinstance(event, SnapshotProgressed):
            self._made[event.guest] = event.stage
        elif isinstance(event, PhaseStarted):
            self._made.clear()
            self._notice = ""
        if self._detail == Detail.QUIET:
            return
        lines = [] if event is None else self._lines(event)
        for line in lines:
            self._shown.keep(visible_line(line))
        now = time.monotonic()
        if lines or now - self._moved >= _MOVE_SECONDS:
            self._moved = now
            self._shown.move(visible_line(self._status()))
        if isinstance(event, RunEnded):
            self._shown.clear()

    def _lines(self, event: Event) -> list[str]:
        """The lines for an event; none for many kinds."""
        if self._detail == Detail.CELLS:
            if isinstance(event, CellEnded):
                return self._ended_cell(event)
            if self._stands_elsewhere(event):
                return []
        shown = _SHOWN if self._detail == Detail.CELLS else (*_SHOWN, *_VERBOSE)
        sentence = event_sentence(event, self.timeline.cells_planned) if isinstance(event, shown) else None
        if sentence is None or (isinstance(event, ImageReady) and event.how != "built"):
            return []
        text = sentence.text
        match event:
            case RunStarted():
                about = f", {about_seconds(event.expected_seconds)}" if event.expected_seconds else ""
                return [f"{text if self._detail == Detail.STEPS else _begun(event)}{about}"]
            case CellStarted():
                return [f"{text}, {plural(event.guests, 'guest')}"]
            case Notice() | AnotherRunSeen():
                kind = without_numbers(text)
                self._notices[kind] += 1
                # The table at the end has those of a kind in one line, and the document has all.
                if self._notices[kind] >= LEAST_FOLDED:
                    return []
                return [f"  {text}" if sentence.level == "info" else f"  {sentence.level}: {text}"]
            case PhaseEnded() | WorkloadEnded() | RoundEnded() | CellEnded():
                return [f"  {text}"]
            case _:
                return [text]

    def _stands_elsewhere(self, event: Event) -> bool:
        """Whether an event has no line of its own, as the page has it, the line of its cell, or the moving one."""
        match event:
            case HostProbed():
                return self._page_follows
            case RunEnded():
                return self._page_follows and event.outcome == Outcome.PASSED
            case Notice():
                return self._is_elsewhere(event)
            case _:
                return False

    def _is_elsewhere(self, event: Notice) -> bool:
        number = cell_of_notice(event.text)
        cell = self.timeline.cells.get(number or 0)
        if number is not None and cell is not None and cell.ended is None:
            if event.level != "info":
                self._of_cells.setdefault(number, []).append(event.text)
            return True
        before = all(cell.ended is None for cell in self.timeline.cells.values())
        self._notice = event.text if before else ""
        return event.level == "info" or (before and self._page_follows)

    def _ended_cell(self, event: CellEnded) -> list[str]:
        cell, started = self.timeline.cells.get(event.cell), self.timeline.started
        if cell is None or (started is not None and started.size == OF_HOST):
            return []
        notices = self._of_cells.pop(event.cell, [])
        again_of = self.timeline.again.get(event.cell, 0)
        return self._cell_lines.lines(cell, self.timeline.cells_planned, notices, again_of, self._shown.width)

    def _status(self) -> str:
        cell = self.timeline.cell
        if cell is None or cell.phase is None:
            told = ", ".join(f"{guest} {stage}" for guest, stage in self._made.items()) or self._notice
            return f"  {told}" if told and (cell is None or cell.ended is None) else ""
        where = "" if self._detail == Detail.STEPS else f"{cell.told.cell}/{self.timeline.cells_planned} "
        parts = [f"  {where}{cell.phase.phase} {format_seconds(max(0.0, time.monotonic() - cell.phase.mono))}"]
        for (tile, name), workload in sorted(cell.workloads.items()):
            if workload.progress is not None and workload.fraction is not None:
                stage = f" {workload.progress.stage}" if workload.progress.stage else ""
                parts.append(f"{name}·{tile}{stage} {100 * workload.fraction:.0f}%")
        if silent := silent_words(cell.silent.values(), time.monotonic()):
            parts.insert(1, f"! {silent}")
        return " | ".join(parts)


def _begun(event: RunStarted) -> str:
    """What began; most ids have the name of the scenario."""
    of = "" if event.scenario in event.run else f" of {event.scenario}"
    control = ", control run" if event.control else ""
    cells = "" if event.size == OF_HOST else f": {plural(event.cells, 'cell')}{of}, size {event.size}{control}"
    return f"run {event.run}{cells}"


_CLEAR_ABOVE = Control("\x1b[A\r\x1b[2K")
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
            _put(self._stream, _CLEAR_ABOVE)
            self._drawn = ""

    def show(self, standing: Standing) -> None:
        """Print the line where something has changed, and refresh the moving line."""
        queue = standing.queue
        behind = (standing.place, [run.run for run in queue.measuring], [one.number for one in queue.passed_over])
        if behind != self._said:
            self._clear()
            more = "; nothing of this run is started, and Ctrl-C gives up" if self._said is None else ""
            _put(self._stream, visible_line(f"waiting: {_standing(standing)}{_before(standing)}{more}"), "\n")
            self._said = behind
        moving = visible_line(f"  {_standing(standing)}")
        if self._moving and moving != self._drawn:
            self._clear()
            _put(self._stream, first_columns(moving, shutil.get_terminal_size().columns - 1), "\n")
            self._drawn = moving


def _standing(standing: Standing) -> str:
    of = max(standing.place, len(standing.queue.waiting))
    return f"place {standing.place} of {of}, {begins_words(standing.queue.begins(standing.place))}"


def _before(standing: Standing) -> str:
    """What is waited for, and what is not."""
    queue = standing.queue
    before = queue.waiting[: standing.place - 1]
    parts = [f"{run.in_full()}, measures now" for run in queue.measuring]
    parts += [f"{before[-1]} is before it"] if before else []
    parts += [f"{one} does not run, and is passed over until it does" for one in queue.passed_over]
    return "".join(f"; {part}" for part in parts)


_EVERY_SECONDS = 10.0
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
        show = self._line.move if self._line.moves else self._line.keep
        show(self._text(now))

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
