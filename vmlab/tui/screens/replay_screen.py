"""The Replay screen: the Live screen over a recording, with pause, speed and seeking."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.past import past_times
from vmlab.tui.feed.recorded_run import Playback, RecordedRun
from vmlab.tui.feed.run_tables import document_of, measured_of
from vmlab.tui.screens.base_screen import refused_keys
from vmlab.tui.screens.watch_screen import WatchScreen, freezing_lines
from vmlab.tui.state.history import History
from vmlab.tui.state.run_state import PastTimes, RunState
from vmlab.tui.state.views import RunView
from vmlab.tui.widgets.charts.position_bar import Position, Timeline
from vmlab.tui.widgets.status_strip import Origin

if TYPE_CHECKING:
    from vmlab.analysis.shape import RunDocument

_STEP_SECONDS = 0.25


class ReplayScreen(WatchScreen):
    """Plays the run whose store is at `store`; Esc goes back."""

    CSS_PATH: ClassVar[list[str]] = ["../styles/watch.tcss", "../styles/replay.tcss"]  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Back", tooltip="Go back to the previous screen"),
        Binding("space", "pause", "Pause", tooltip="Pause or go on"),
        Binding("left,h", "seek(-10)", "10 s", key_display="←→", tooltip="Go back by ten seconds"),
        Binding("right,l", "seek(10)", "+10 s", show=False, key_display="→", tooltip="Go on by ten seconds"),
        Binding("shift+left,H", "seek(-60)", "-1 min", show=False, tooltip="Go back by a minute"),
        Binding("shift+right,L", "seek(60)", "+1 min", show=False, tooltip="Go on by a minute"),
        Binding("home,0", "seek_to(0)", "Beginning", show=False, tooltip="Go to the beginning"),
        Binding("end,dollar_sign", "seek_to(1)", "End", show=False, tooltip="Go to the end"),
        Binding("n", "next_cell(1)", "Next cell", tooltip="Go to the beginning of the next cell"),
        Binding("p", "next_cell(-1)", "Previous cell", show=False, tooltip="Go to the beginning of the previous cell"),
        Binding("right_square_bracket,greater_than_sign", "speed(1)", "Speed", key_display="[]", tooltip="Play faster"),
        Binding(
            "left_square_bracket,less_than_sign",
            "speed(-1)",
            "Slower",
            show=False,
            key_display="[",
            tooltip="Play slower",
        ),
        Binding("c", "compare", "Compare", show=False, tooltip="Compare the cells of this run"),
        *refused_keys("change_run"),
    ]

    def __init__(self, store: Path) -> None:
        super().__init__()
        self.store = store
        self.playback: Playback | None = None
        self._begins_paused = False
        self.document: RunDocument | None = None
        self._past: PastTimes = {}
        self._stepped = time.monotonic()

    def compose_more(self) -> ComposeResult:
        """The time line above the keys."""
        yield Timeline(id="timeline")

    def on_mount(self) -> None:
        """Read the store in a thread, so that a long one blocks nothing."""

        def read() -> tuple[RecordedRun, RunDocument, PastTimes]:
            recording = RecordedRun(self.store)
            return recording, document_of(self.store), self.past_of(recording)

        self.fetch(read, self._loaded, self._refused, group="recording")
        self.set_interval(_STEP_SECONDS, self._step)

    def past_of(self, recording: RecordedRun) -> PastTimes:
        """How long workloads took in earlier runs of the same scenario and size; called in a thread."""
        first = recording.events[0]
        return past_times(self.store.parent.name, getattr(first, "scenario", ""), getattr(first, "size", ""))

    def _refused(self, text: str) -> None:
        self.notify(text, title="Cannot play it", severity="error", timeout=10)
        self.dismiss()

    def _loaded(self, found: tuple[RecordedRun, RunDocument, PastTimes]) -> None:
        recording, self.document, self._past = found
        self.playback = self.playback_of(recording)
        self.playback.paused = self._begins_paused
        self._stepped = time.monotonic()
        self._note_hosts()
        self.refresh_bindings()
        self.begin()

    def playback_of(self, recording: RecordedRun) -> Playback:
        """How it is played."""
        return Playback(recording)

    def measure(self, done: frozenset[int], cell: int) -> None:
        """From the whole recording, as far as it was played."""
        if self.document is not None:
            self.measured = measured_of(self.document, done, cell)

    def begin(self) -> None:
        """Go to where playing begins."""
        if self.playback is not None:
            self.seek_to(self.playback.recording.opening)

    def now(self) -> float:
        """The recording's own clock."""
        return self.playback.moment if self.playback else 0.0

    def view(self) -> RunView:
        """The run at this moment of the recording, whose length is known, as are cells that were measured again."""
        view = super().view()
        if self.playback is None:
            return view
        recording = self.playback.recording
        return view._replace(length=recording.length, cells_planned=max(view.cells_planned, len(recording.planned)))

    def origin(self) -> Origin:
        """RECORDING, with the speed or the reason why it is paused."""
        play = self.playback
        if play is None:
            return Origin("RECORDING", "warning", "paused" if self._begins_paused else "is read …")
        more = "at its end" if play.at_end else "paused" if play.paused else self.times(play.speed)
        return Origin("RECORDING", "warning", more)

    def times(self, speed: float) -> str:
        """A speed for the screen, such as ``x3``."""
        sign = "x" if self.query_one(Timeline).glyphs.plain else "\N{MULTIPLICATION SIGN}"
        return sign + (f"{speed:.0f}" if speed >= 10 else f"{speed:.2g}")

    def hint(self, run: RunView) -> tuple[str, ...]:
        """The text in place of the tiles."""
        return ("No guests at this moment of the recording.", *freezing_lines(run, self.now()))

    def choose_host(self, name: str) -> None:
        """Read what there is of it, and go on at the same moment."""
        self.fetch(lambda: RecordedRun(self.store, name), self._has_host, group="host")

    def _has_host(self, recording: RecordedRun) -> None:
        if self.playback is not None:
            moment, self.playback.recording = self.playback.moment, recording
            self.seek_to(moment - recording.began)

    def _note_hosts(self) -> None:
        if self.playback is not None and self.playback.recording.hosts:
            recording = self.playback.recording
            self.hosts, self.host = recording.hosts_at(self.playback.moment), recording.host

    def draw(self) -> None:
        """Draw with the time line."""
        self._note_hosts()
        super().draw()
        if self.playback is not None:
            recording = self.playback.recording
            self.query_one(Timeline).show(Position(self.playback.position, recording.length, recording.marks))

    def _step(self) -> None:
        passed, self._stepped = time.monotonic() - self._stepped, time.monotonic()
        if self.playback is None or self.playback.paused or self.playback.at_end or not self.is_current:
            return
        self.take(*self.playback.advance(passed))
        self.changed()

    def seek_to(self, position: float) -> None:
        """Go to `position`, in seconds from the beginning."""
        if self.playback is None:
            return
        recording = self.playback.recording
        self.state, self.history = RunState(self._past, recording.intent, recording.planned), History()
        self.take(*self.playback.seek(position))
        self.changed()

    @on(Timeline.SeekRequested)
    def _pointed(self, message: Timeline.SeekRequested) -> None:
        self.seek_to(message.position)

    def action_compare(self) -> None:
        """The sides of the whole run, on the screen for that."""
        self.console.compare([Pick(self.store)])

    def action_pause(self) -> None:
        """Stand still, or go on; at the end, play again from where playing begins.

        While the recording is read, it is how playing begins.
        """
        if self.playback is None:
            self._begins_paused = not self._begins_paused
        elif self.playback.at_end:
            self.playback.paused = False
            self.begin()
        else:
            self.playback.paused = not self.playback.paused
        self.changed()

    def reason(self, action: str) -> str:
        """A recording is not changed, and nothing can be played while it is read."""
        if action == "change_run":
            return "this is a recording: only a run that goes on can be changed or stopped"
        played = action in ("seek", "seek_to", "next_cell", "speed")
        return "the recording is still being read" if played and self.playback is None else ""

    @property
    def play(self) -> Playback:
        """What is played, for keys that are refused until it is read."""
        assert self.playback is not None
        return self.playback

    def at_an_end(self, step: float) -> bool:
        """Whether there is nothing further on in the direction of `step`; then that is said."""
        if not (self.play.at_end if step > 0 else self.play.position <= 0):
            return False
        self.notify(f"this is the {'end' if step > 0 else 'beginning'} of the recording")
        self.changed()
        return True

    def action_seek(self, seconds: int) -> None:
        """Go back or on by so many seconds of the recording."""
        if not self.at_an_end(seconds):
            self.seek_to(self.play.position + seconds)

    def action_seek_to(self, end: int) -> None:
        """To the beginning (0) or to the end (1)."""
        if not self.at_an_end(end or -1):
            self.seek_to(self.play.recording.length * end)

    def action_next_cell(self, step: int) -> None:
        """To the beginning of the cell after or before this moment."""
        if self.at_an_end(step):
            return
        here = self.play.position
        begins = [mark.began for mark in self.play.recording.marks]
        later = [begin for begin in begins if begin > here + 0.5]
        earlier = [begin for begin in begins if begin < here - 2.0]
        if step > 0 and later:
            self.seek_to(later[0])
        elif step > 0:
            self.notify("no cell begins after this moment")
        else:
            self.seek_to(earlier[-1] if earlier else 0.0)

    def action_speed(self, step: int) -> None:
        """Faster or slower."""
        before, speed = self.play.speed, self.play.change_speed(step)
        if speed == before:
            self.notify(f"{self.times(before)} is the {'fastest' if step > 0 else 'slowest'} there is")
        elif self.play.paused or self.play.at_end:
            self.notify(f"{self.times(speed)} when it plays again")
        self.changed()
