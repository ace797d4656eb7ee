"""The Demo screen: the recording that comes with the program, with a caption for each chapter of its story."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from vmlab.report.demo.chapters import Demo
from vmlab.report.demo.so_far import SideSoFar, so_far
from vmlab.report.run.tiles_board import cells_of_most_tiles
from vmlab.report.words import cells_words
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.recorded_run import Playback, RecordedRun
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.state.charts import CPU, DISK_BUSY, DISK_WAIT
from vmlab.tui.state.history import UNKNOWN
from vmlab.tui.state.run_state import PastTimes
from vmlab.tui.state.views import RunView
from vmlab.tui.widgets.charts.chart_board import ChartBoard, Charted
from vmlab.tui.widgets.charts.position_bar import Caption
from vmlab.tui.widgets.demo_stage import SoFar, SoFarPane, Spoken, SpokenPane, Stage, StagePane, StepsOf, StepsPane
from vmlab.tui.widgets.painted import Painted
from vmlab.tui.widgets.status_strip import Origin

_HIDDEN = ("next_cell", "seek", "speed")
_CHARTS = ((DISK_BUSY,), (CPU,), (DISK_WAIT,))
"""Those of the stage, below each other: the first ones where there is room for fewer."""


class DemoScreen(ReplayScreen):
    """Plays `demo` on a stage of its own; all keys of a replay work, and two more go from chapter to chapter."""

    CSS_PATH: ClassVar[list[str]] = ["../styles/watch.tcss", "../styles/replay.tcss", "../styles/demo.tcss"]
    TABS_FROM = 130
    BINDINGS: ClassVar[list[BindingType]] = [
        # In a demo chapters have the room that cells and seconds have in the key bar.
        *(
            replace(binding, show=False)
            for binding in ReplayScreen.BINDINGS
            if isinstance(binding, Binding) and binding.show and binding.action.startswith(_HIDDEN)
        ),
        # What a speaker's remote control sends is among them.
        Binding("N,pagedown", "chapter(1)", "Next", key_display="N", tooltip="Go to the next step"),
        Binding("P,pageup", "chapter(-1)", "Previous", key_display="P", tooltip="Go to the previous step"),
        Binding("g", "stage", "All charts", tooltip="Show all charts, guests and events, or the stage again"),
    ]

    def __init__(self, demo: Demo) -> None:
        super().__init__(demo.store)
        self.demo = demo
        self._sides: Sequence[SideSoFar] = ()
        self._asked = 0
        """The place of the chapter to begin with: a key may be pressed before the recording is read."""
        self.add_class("-stage")

    def compose(self) -> ComposeResult:
        """The stage over the panes of a replay, of which it shows the charts."""
        yield SpokenPane(id="question")
        yield StagePane(id="state")
        yield from super().compose()

    def compose_more(self) -> ComposeResult:
        """The narration, and what has its place where all charts are shown."""
        yield SpokenPane(id="narration")
        yield StepsPane(id="steps")
        yield Caption(id="caption")
        yield from super().compose_more()

    def on_mount(self) -> None:
        """The table stands beside the charts."""
        super().on_mount()
        self.pane(SoFarPane, "sofar", before="#guests", title="So far")
        # A screen that is left at once has none any more.
        for board in self.query(ChartBoard):
            board.panels = _CHARTS

    def past_of(self, recording: RecordedRun) -> PastTimes:
        """None: the user's own runs were made on another host."""
        return {}

    def playback_of(self, recording: RecordedRun) -> Playback:
        """Chapters are held, and what lies between them is fast-forwarded."""
        return Playback(recording, self.demo.onward)

    def origin(self) -> Origin:
        """RECORDING, with the speed at which this part of it is played; on the stage that of the story."""
        play, origin = self.playback, super().origin()._replace(ended=self._ended())
        if play is None or play.at_end or play.paused:
            return origin
        if self.has_class("-stage"):
            return origin._replace(more="" if play.speed == 1 else origin.more)
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
        """Go to the first chapter, or to the one that was asked for meanwhile."""
        place, self._asked = self._asked, 0
        self.seek_to(self.demo.chapters[place].position)

    def measure(self, done: frozenset[int], cell: int) -> None:
        """With what is known of each side."""
        super().measure(done, cell)
        self._sides = () if self.document is None else so_far(self.document, done)
        if self.measured.board is not None:
            # Words for an audience stand in the place of those of a report.
            self.measured = self.measured._replace(board=self.measured.board._replace(notes=(self.demo.about,)))

    def draw(self) -> None:
        """The stage, or all of the replay with the caption."""
        title, sentence, place = self._narrated()
        if not self.has_class("-stage"):
            super().draw()
            self.query_one(Caption).show((f"{place + 1}/{len(self.demo.chapters)} {title}", sentence))
            return
        self.begin_picture()
        run = self.view()
        if not self._sides and self.document is not None:
            self.measure(frozenset(), 0)
        self._draw_measured(run)
        answered = self.has_class("-answered")
        self._speak("question", Spoken(self.demo.question, self.demo.about, self.size.height, may=False))
        told = Spoken(title, sentence, self.size.height, may=not answered, tone="accent")
        others = [] if answered else self.demo.chapters[:-1]
        self._speak("narration", told, [told._replace(title=one.title, sentence=one.sentence) for one in others])
        self.query_one(ChartBoard).show(Charted(self.history, run.switched, (), *self.counted(run)))
        self.query_one(SoFarPane).show(SoFar(self._sides, run.cell.number if run.cell else 0))
        self.query_one(StagePane).show(self._stage(run))
        origin = self.origin()
        titles = [one.title for one in self.demo.chapters]
        self.query_one(StepsPane).show(StepsOf(titles, place, f"{origin.word} {origin.more}".rstrip()))

    def _speak(self, id: str, spoken: Spoken, others: Sequence[Spoken] = ()) -> None:
        """Words at the height that they take, or the highest of `others`, so that nothing moves from step to step."""
        pane = self.query_one(f"#{id}", SpokenPane)
        pane.show(spoken)
        pane.styles.height = max(len(pane.drawn(one, self.size.width)) for one in (spoken, *others))

    def _stage(self, run: RunView) -> Stage:
        cell = run.cell
        if cell is None:
            return Stage()
        cache = str(cell.axis("cache") or "")
        now = cell.now.get("cache")
        return Stage(int(cell.axis("tiles") or 1), now or cache, cache if now else "", self.gauges_of(run) or UNKNOWN)

    def _narrated(self) -> tuple[str, str, int]:
        """Title and sentence of this moment, and the place of its chapter."""
        play = self.playback
        if play is None:
            return "", "The recording is read.", 0
        place = self.demo.place(play.position)
        told = self.demo.ending if play.at_end else self.demo.chapters[place]
        return told.title, told.sentence, place

    def action_stage(self) -> None:
        """All charts, guests and events, or the stage again."""
        self.toggle_class("-stage")
        self.query_one(ChartBoard).panels = _CHARTS if self.has_class("-stage") else ()
        self.call_after_refresh(self._draw_shown)

    def action_compare(self) -> None:
        """The cache modes at the most tiles of which all have a cell that counts."""
        cells = () if self.document is None else cells_of_most_tiles(self.document)
        self.console.compare([Pick(self.store, cell) for cell in cells] or [Pick(self.store)])

    def table_text(self) -> str:
        """On the stage, what is known so far and the narration."""
        if not self.has_class("-stage"):
            return super().table_text()
        shown = "#answer" if self.has_class("-answered") else "#sofar"
        return "".join(f"{self.query_one(name, Painted).text()}\n" for name in (shown, "#narration"))

    def reason(self, action: str) -> str:
        """Chapters need the recording, as all that plays; what is not on the stage is behind a key."""
        if self.has_class("-stage") and action in ("latency", "pane", "next_host"):
            return "g shows all charts, guests and events first"
        return super().reason(action)

    def action_chapter(self, step: int) -> None:
        """To the beginning of the chapter after or before; behind the last one is the end."""
        starts = [chapter.position for chapter in self.demo.chapters]
        if self.playback is None:
            self._asked = min(len(starts) - 1, max(0, self._asked + step))
            self.notify(f"step {self._asked + 1} follows as soon as the recording is read")
            return
        if self.at_an_end(step):
            return
        place = len(starts) if self.play.at_end else self.demo.place(self.play.position)
        if step > 0:
            self.seek_to(starts[place + 1] if place + 1 < len(starts) else self.play.recording.length)
            return
        if place == 0 and self.play.position <= starts[0]:
            self.notify("this is the first chapter")
            return
        self.seek_to(starts[max(0, place - 1)])
