"""The Demo screen: the recording that comes with the program, with a caption for each chapter of its story."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from vmlab.report.demo.chapters import Demo
from vmlab.report.run.tiles_board import cells_of_most_tiles
from vmlab.report.words import cells_words
from vmlab.tui.contract import Pick
from vmlab.tui.feed.recorded_run import Playback, RecordedRun
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.state.run_state import PastTimes
from vmlab.tui.state.views import RunView
from vmlab.tui.widgets.charts.position_bar import Caption
from vmlab.tui.widgets.status_strip import Origin


class DemoScreen(ReplayScreen):
    """Plays `demo`; all keys of a replay work, and two more go from chapter to chapter."""

    CSS_PATH: ClassVar[list[str]] = ["../styles/watch.tcss", "../styles/replay.tcss", "../styles/demo.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        # In a demo chapters have the room that cells have in the key bar.
        Binding("n", "next_cell(1)", "Next cell", show=False, tooltip="To the beginning of the next cell"),
        # What a speaker's remote control sends is among them.
        Binding(
            "N,pagedown", "chapter(1)", "Chapter", key_display="NP", tooltip="To the next chapter, or the one before"
        ),
        Binding("P,pageup", "chapter(-1)", show=False),
    ]

    def __init__(self, demo: Demo) -> None:
        super().__init__(demo.store)
        self.demo = demo

    def compose_more(self) -> ComposeResult:
        """The caption, above the time line."""
        yield Caption(id="caption")
        yield from super().compose_more()

    def past_of(self, recording: RecordedRun) -> PastTimes:
        """None: the user's own runs were made on another host."""
        return {}

    def playback_of(self, recording: RecordedRun) -> Playback:
        """Chapters are held, and what lies between them is fast-forwarded."""
        return Playback(recording, self.demo.onward)

    def origin(self) -> Origin:
        """RECORDING, with the speed at which this part of it is played."""
        play, origin = self.playback, super().origin()._replace(ended=self._ended())
        if play is None or play.at_end or play.paused:
            return origin
        return origin._replace(more=self.times(play.speed * self.demo.stretch(play.position).rate))

    def _ended(self) -> str:
        """When it was recorded, and which cells were switched on purpose: as an outcome that would be ``invalid``."""
        switched = [] if self.document is None else [cell.cell for cell in self.document.cells if cell.switches]
        were = "was" if len(switched) == 1 else "were"
        on_purpose = f"; {cells_words(switched)} {were} switched on purpose" if switched else ""
        return f"recorded on {self.demo.facts.date}{on_purpose}"

    def is_answered(self, run: RunView) -> bool:
        """The last chapter is the answer."""
        play = self.playback
        known = self.measured.board is not None
        return known and play is not None and play.position >= self.demo.chapters[-1].position

    def begin(self) -> None:
        """Go to the first chapter."""
        self.seek_to(self.demo.chapters[0].position)

    def draw(self) -> None:
        """Draw with the caption."""
        super().draw()
        if self.playback is not None:
            self.query_one(Caption).show(self._caption(self.playback.position, over=self.playback.at_end))

    def _caption(self, position: float, *, over: bool) -> tuple[str, str]:
        if over:
            return self.demo.ending.title, self.demo.ending.sentence
        place = self.demo.stretch(position).place
        if place is None:
            return "Fast forward", f"to the chapter {self.demo.next_title(position)!r}"
        chapter = self.demo.chapters[place]
        return f"{place + 1}/{len(self.demo.chapters)} {chapter.title}", chapter.sentence

    def action_compare(self) -> None:
        """The cache modes at the most tiles of which all have a cell that counts."""
        cells = () if self.document is None else cells_of_most_tiles(self.document)
        self.console.compare([Pick(self.store, cell) for cell in cells] or [Pick(self.store)])

    def reason(self, action: str) -> str:
        """Chapters need the recording, as all that plays."""
        return super().reason("seek" if action == "chapter" else action)

    def action_chapter(self, step: int) -> None:
        """To the beginning of the chapter after or before; behind the last one is the end."""
        if self.at_an_end(step):
            return
        starts = [chapter.position for chapter in self.demo.chapters]
        place = len(starts) if self.play.at_end else self.demo.place(self.play.position)
        if step > 0:
            self.seek_to(starts[place + 1] if place + 1 < len(starts) else self.play.recording.length)
            return
        if place == 0 and self.play.position <= starts[0]:
            self.notify("this is the first chapter")
            return
        self.seek_to(starts[max(0, place - 1)])
