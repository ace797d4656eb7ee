"""The Runs screen: all runs, filtered and sorted; Space marks, c compares, Enter watches or replays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.measuring_runs import HostQueue, host_queue
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.errors import VmlabError, in_one_line
from vmlab.model.places import runs_folder
from vmlab.model.quantities import format_seconds
from vmlab.model.run import EMULATED, RUNNING
from vmlab.model.visible import visible_line
from vmlab.report.listing import queue_title
from vmlab.store.reader import RunReader
from vmlab.store.run_list import RunList
from vmlab.store.runs import RunSummary, store_of
from vmlab.system.text_width import exactly
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.kept_verdicts import KeptVerdicts
from vmlab.tui.feed.run_facts import SORTS, RunFacts, RunFactsList, RunRow, kept_marks, rows_of
from vmlab.tui.screens.filtered_screen import FilteredScreen, FilterLine
from vmlab.tui.state.run_state import cell_view
from vmlab.tui.state.views import CellView
from vmlab.tui.widgets.glyphs import tone_of
from vmlab.tui.widgets.key_bar import KeyBar
from vmlab.tui.widgets.painted import Line, Piece
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.result_board import ResultBoard

if TYPE_CHECKING:
    from vmlab.tui.feed.run_tables import ResultText

_REFRESH_SECONDS = 2.0
_STAYS_SECONDS = 0.15
"""A cursor that goes on within this time asks for no result."""
_WIDE, _TIMED = 140, 96
"""Columns from which on a run's line has all that is known of it, and how long it took."""
_NAME, _TOOK, _CELL, _VERDICT = 24, 11, 11, 26
"""Times have room for ``24 min 28 s``."""
_BEHIND = 4
"""Columns for the word behind a time of emulated guests."""
_FIXED = 58
"""Columns that outcome, verdict and date take of a line."""
_DATE, _DAY = 16, 11
"""Columns of a date with its year, and of one without, beside which the word behind a time has room."""
EMPTY = ("No runs yet. Press 2 to choose a scenario and start one.",)


class RunsScreen(FilteredScreen):
    """One line a run; `e` unfolds its cells."""

    CSS_PATH = "../styles/runs.tcss"
    COPIED = ("#runs",)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", tooltip="Watch this run while it goes on, or replay it"),
        Binding("space", "mark", "Mark", tooltip="Mark for comparing; the first mark is the baseline"),
        Binding("c", "compare", "Compare", tooltip="Compare the marked runs, or the cells of this one"),
        Binding("e", "unfold", "Cells", tooltip="Show or hide the cells of this run"),
        Binding("t", "results", "Tables", show=False, tooltip="Show all metrics of this run, and what was published"),
        Binding("slash", "filter", "Filter", key_display="/", tooltip="List only runs with all words you type"),
        Binding("o", "sort", "Sort", tooltip="Sort by date, scenario, outcome or time"),
        Binding("escape", "clear", "Clear", show=False, tooltip="Remove the filter, then the marks"),
        Binding("X", "stop", "Stop", tooltip="Ask whether to stop the run under the cursor"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._run_list = RunList()
        self._runs: list[RunSummary] = []
        self._rows: dict[str, RunRow] = {}
        """What is listed, by key: asked for with every key, and made anew when it changes."""
        self._marked: list[str] = []
        self._unfolded: dict[str, tuple[CellView, ...]] = {}
        self._sort = 0
        self._columns = 0
        """The screen's width, which thousands of rows ask for."""
        self._facts_list = RunFactsList()
        self._facts: dict[str, RunFacts] = {}
        self._kept_verdicts = KeptVerdicts()
        self._verdicts: dict[str, str] = {}
        self._loaded = self._reading = False
        self._previewed: tuple[str, ...] = ()
        """The run whose result is shown, with its note and its tags."""
        self._problem = ""

    def compose(self) -> ComposeResult:
        """The list, the filter under it while it is used, the result of the run under the cursor, the keys."""
        yield RowList(id="runs").titled("Runs")
        yield FilterLine("words that a run must have: tag, note, scenario, size, outcome, date")
        yield ResultBoard(id="preview", in_two=True).titled("Result")
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the list again while the screen is shown; being shown reads it first."""
        # The whole of it is a key away, on a screen of its own that scrolls.
        self.query_one(ResultBoard).can_focus = False
        self.query_one(RowList).focus()
        self.set_interval(_REFRESH_SECONDS, self._read_again)

    def on_screen_resume(self) -> None:
        """Read the list again, as it may have changed."""
        self._read()

    def _read_again(self) -> None:
        if self.is_current:
            self._read()

    def _read(self) -> None:
        # A screen is told twice that it is shown, and two reads at once take three times as long.
        if not self._reading:
            self._reading = True
            self._read_now()

    @work(thread=True, group="runs")
    def _read_now(self) -> None:
        try:
            runs, queue = self._run_list.read(), host_queue()
        except (VmlabError, OSError) as error:
            self.hand_over(self._refused, in_one_line(error))
            return
        finally:
            self._reading = False
        self._problem = ""
        if not get_current_worker().is_cancelled:
            self.hand_over(self._runs_received, runs, queue)

    def _runs_received(self, runs: list[RunSummary], queue: HostQueue) -> None:
        self._runs, self._loaded = runs, True
        self.query_one(RowList).retitle("; ".join(filter(None, ["Runs", queue_title(queue)])))
        self._marked = kept_marks(self._marked, runs)
        self.draw_rows()
        self._preview()
        self.refresh_bindings()
        # Reading while the list is drawn would hold up both.
        self.call_after_refresh(self._read_facts)

    def _read_facts(self) -> None:
        self.fetch(partial(self._facts_list.of, self._runs, runs_folder()), self._facts_received, group="facts")

    def _facts_received(self, facts: dict[str, RunFacts]) -> None:
        self._facts = facts
        self._show_rows()
        self.fetch(
            partial(self._kept_verdicts.of, self._runs, runs_folder()), self._verdicts_received, group="verdicts"
        )

    def _verdicts_received(self, verdicts: dict[str, str]) -> None:
        if verdicts != self._verdicts:
            self._verdicts = verdicts
            self._show_rows()

    def _refused(self, problem: str) -> None:
        """Show the reason why the list cannot be read, in place of the list."""
        self._problem = problem
        self._runs_received([], HostQueue())

    def draw_rows(self) -> None:
        wanted = self.query_one(FilterLine).value
        rows = rows_of(self._runs, wanted=wanted, sort=self._sort, unfolded=self._unfolded)
        self._rows = {row.key: row for row in rows}
        self._show_rows()

    def _show_rows(self) -> None:
        self._columns = self.size.width
        rows = self._rows.values()
        listed = self.query_one(RowList)
        hint: tuple[str, ...] = ("Reading the runs …",)
        if self._loaded:
            hint = ("No run has all of these words. Esc clears the filter.",) if self._runs else EMPTY
            hint = (self._problem,) if self._problem else hint
        listed.show(self._heading(), [(row.key, partial(self._line, row)) for row in rows], hint)
        self.query_one(FilterLine).count(len({row.run.id for row in rows}), len(self._runs))
        if not rows:
            self._show_result("", None)

    @property
    def _room(self) -> int:
        """Columns for the scenario, with what a user calls the run: what the other columns leave."""
        timed = _TOOK + 1 if self._columns >= _TIMED else 0
        return _NAME if self._is_wide else max(12, self._columns - _FIXED - timed)

    @property
    def _is_wide(self) -> bool:
        """Whether there is room for what a run varied, and how long its cells took."""
        return self._columns >= _WIDE

    @property
    def _date(self) -> int:
        """Columns of the date."""
        return _DATE if self._is_wide else _DAY

    @property
    def _varied_room(self) -> int:
        return max(0, self._columns - 107 - self._room)

    def _heading(self) -> Line:
        text = f"  {'outcome':<10} {exactly('scenario', self._room)} "
        took = f" {'took':>{_TOOK}}" if self._columns >= _TIMED else ""
        verdict = f"{'verdict':<{_VERDICT}}"
        if not self._is_wide:
            text += f"{verdict} {'':{_BEHIND}} {'started':<{self._date}}{took}"
        else:
            noted = any(run.note for run in self._runs)
            varied = exactly("note; what it varied" if noted else "what it varied", self._varied_room)
            text += f"{'size':<9} {'cells':>6}  {'started':<{self._date}}{took}"
            text += f"  {'mean cell':>{_CELL}}{'':{_BEHIND}}  {verdict}  {varied}"
        order = f"  {SORTS[self._sort][0]}"
        # An order of which only the first letters fit would read as a column.
        shown = order if len(text) + len(order) <= self._columns else ""
        return [(f"{text}{shown}"[: self._columns], "quiet")]

    def _line(self, row: RunRow) -> Line:
        run, cell, took = row.run, row.cell, row.took
        glyphs = self.query_one(RowList).glyphs
        took_words = "" if took is None else format_seconds(took)
        mark = ("*" if glyphs.plain else "◆") if row.key in self._marked else " "
        left: Line = [
            (f"{mark} ", "accent"),
            (exactly(f"{glyphs.sign(row.outcome)} {row.outcome}", 10), tone_of(row.outcome)),
        ]
        if cell is not None:
            # A cell has neither verdict nor date of its own, so its axes have their room.
            what = exactly(row.what, max(12, min(80, self._columns) - _TOOK - 27))
            told: Piece = (f" {what} {f'#{cell.number}':>6} {took_words:>{_TOOK}}", "quiet")
            return [*left, told, self._behind(run, took_words)]
        if run.problem:
            # This is the most useful text for the room that is left.
            return [*left, (f" {run.problem.replace(f'{runs_folder()}/', '')}", "bad")]
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started)) if run.started else "-"
        date = f"{started[-self._date :]:<{self._date}}"
        took_words = f" {took_words:>{_TOOK}}" if self._columns >= _TIMED else ""
        left = [*left, (f" {exactly(row.what if self._is_wide else row.said, self._room)} ", "plain")]
        if self._is_wide:
            figures = f"{exactly(run.size, 9)} {run.cells:>6}  {date}{took_words}"
            return [*left, (figures, "quiet"), *self._beside(run)]
        shown = self._verdicts.get(run.id) or took_words
        return [*left, self._verdict(run), self._behind(run, shown), (f" {date}{took_words}", "quiet")]

    def _verdict(self, run: RunSummary) -> Piece:
        """What it has shown, in a few words; for one that goes on how far it is."""
        text = f"{run.cells} cells" if run.outcome == RUNNING else self._verdicts.get(run.id, "")
        return (exactly(text, _VERDICT), "title" if " in " in text else "quiet")

    def _behind(self, run: RunSummary, told: str) -> Piece:
        """The word behind a time that is `told`, where the guests of its run were emulated."""
        emulated = told and EMULATED in self._facts.get(run.id, RunFacts()).behind
        return (f" {EMULATED if emulated else '':<{_BEHIND}}", "warning")

    def _beside(self, run: RunSummary) -> Iterator[Piece]:
        """How long its cells took, what it has shown, and what it varied."""
        facts = self._facts.get(run.id, RunFacts())
        told = "" if facts.cell_seconds is None else format_seconds(facts.cell_seconds)
        ordered = [word for word in facts.behind if word != EMULATED]
        yield (f"  {told:>{_CELL}}", "plain")
        yield self._behind(run, told)
        yield (" ", "plain")
        yield self._verdict(run)
        noted = [visible_line(run.note)] if run.note else []
        yield (f"  {exactly('; '.join([*noted, *ordered, facts.varied]), self._varied_room)}", "quiet")

    def _current(self) -> RunRow | None:
        return self._rows.get(self.query_one(RowList).key or "")

    @on(RowList.Moved)
    def _moved(self) -> None:
        self.refresh_bindings()
        self._preview()

    def _preview(self) -> None:
        """Show the result of the run under the cursor, once it has stayed there for a moment."""
        run = self._run()
        if run is not None and (seen := (run.id, run.note, *run.tags)) != self._previewed:
            self._previewed = seen
            self._read_result(store_of(run.id), run.outcome != RUNNING)

    @work(thread=True, exclusive=True, group="preview")
    def _read_result(self, store: Path, over: bool) -> None:
        worker = get_current_worker()
        time.sleep(_STAYS_SECONDS)
        if worker.is_cancelled:
            return
        # Imported late: it takes three quarters of the time to load the screen, which shows its runs without it.
        from vmlab.tui.feed.run_tables import results_of

        found = results_of(store, over=over)
        if not worker.is_cancelled:
            self.hand_over(self._show_result, store.parent.name, found)

    def _show_result(self, run: str, found: ResultText | None) -> None:
        board = self.query_one(ResultBoard)
        self._previewed = self._previewed if found else ()
        board.border_title = f"Result of {run}; t has all of it" if found else "Result"
        board.show(found.tables if found else lambda width: "")

    def reason(self, action: str) -> str:
        """What concerns a run needs one under the cursor."""
        of_row = ("open", "mark", "unfold", "results", "stop", *(() if self._marked else ("compare",)))
        if action in of_row and self._current() is None:
            return "no run is listed here"
        if action == "stop" and (run := self._run()) is not None and run.outcome != RUNNING:
            return f"run {run.id} is over"
        return ""

    def _run(self) -> RunSummary | None:
        """The run that the cursor is on, or on a cell of."""
        row = self._current()
        return None if row is None else row.run

    @on(RowList.Chosen)
    def action_open(self) -> None:
        """Watch a run that lives, replay one that is over."""
        run = self._run()
        if run is not None:
            self.console.open_run(runs_folder() / run.id, live=run.outcome == RUNNING)

    def action_results(self) -> None:
        """The tables of the run under the cursor."""
        if (run := self._run()) is not None:
            self.console.open_results(store_of(run.id))

    def action_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away; go on to the next row."""
        row = self._current()
        if row is None:
            return
        if row.key in self._marked:
            self._marked.remove(row.key)
        else:
            self._marked.append(row.key)
        self.draw_rows()
        self.query_one(RowList).move(1)

    def action_compare(self) -> None:
        """Compare what is marked, or the cells of the run under the cursor."""
        row = self._current()
        keys = self._marked or ([row.run.id] if row else [])
        self.console.compare([_pick(key) for key in keys])

    def action_unfold(self) -> None:
        """Show or hide the cells of the run under the cursor."""
        if (run := self._run()) is None:
            return
        if self._unfolded.pop(run.id, None) is None:
            self._read_cells(run.id)
        else:
            self.query_one(RowList).place(run.id)
            self.draw_rows()

    def _read_cells(self, run: str) -> None:
        def read() -> tuple[CellView, ...]:
            with RunReader(store_of(run)) as reader:
                timeline = RunTimeline.read(reader, (CellStarted, CellEnded))
            return tuple(map(cell_view, timeline.cells.values()))

        self.fetch(read, partial(self._unfold, run), group="cells", exclusive=False)

    def _unfold(self, run: str, cells: tuple[CellView, ...]) -> None:
        self._unfolded[run] = cells
        self.draw_rows()

    @on(RowList.HeadingClicked)
    def action_sort(self) -> None:
        """The next order."""
        self._sort = (self._sort + 1) % len(SORTS)
        self.notify(f"in order: {SORTS[self._sort][0]}")
        self.draw_rows()

    def forget(self) -> None:
        """The marks."""
        if not self._marked:
            self.notify("no filter is set, and no run is marked")
        self._marked.clear()

    def action_stop(self) -> None:
        """Ask whether to stop the run under the cursor."""
        if (run := self._run()) is not None:
            self.console.ask_to_stop(runs_folder() / run.id)


def _pick(key: str) -> Pick:
    run, _, cell = key.partition(":")
    return Pick(store_of(run), int(cell) if cell else None)
