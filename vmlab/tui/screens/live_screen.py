"""The Live screen: the current run, or the host itself while there is none."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from vmlab.model.places import runs_folder
from vmlab.model.run import RUNNING, Phase, other_mode
from vmlab.tui.contract import Proposal
from vmlab.tui.screens.base_screen import OF_A_RUN, RUN_KEYS, SPAN_KEY
from vmlab.tui.screens.watch_screen import WatchScreen
from vmlab.tui.state.history import HOUR, History
from vmlab.tui.state.views import LogLine, Measured, RunView
from vmlab.tui.widgets.charts.chart_board import ChartBoard, Times
from vmlab.tui.widgets.status_strip import HOST, LIVE, Origin

if TYPE_CHECKING:
    from vmlab.model.event_fields import CellToCome
    from vmlab.model.run import AxisValue
    from vmlab.telemetry.recorder import Recorder
    from vmlab.tui.commands import RunCommands
    from vmlab.tui.feed.live_feed import (
        HostSampled,
        HostsArrived,
        LiveFeed,
        OthersFound,
        PastFound,
        Remarked,
        RunArrived,
        RunFound,
        RunLost,
    )
    from vmlab.tui.state.asked import AskedChanges
    from vmlab.tui.widgets.row_list import RowList
    from vmlab.tui.widgets.tables.coming_list import ComingList

_OF_NO_RUN = ("demo", "try_it")
_WELCOME_SECONDS = 1.0
"""After so long without a run the host is looked at: what is to be tried may lack something."""
_TARGET_SECONDS = 8.0
"""How long the targets of a cell stand while the guests of the next one come."""
_TO_COME, _RUNNING_GUESTS, _THE_LOOP = "Cells to come", "The running guests", "The loop"
"""What changes are about."""
_SILENT = "A disk answers nothing"


class LiveScreen(WatchScreen):
    """Finds the live run by itself; when it ends, its last picture stays and the host's figures go on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *RUN_KEYS,
        SPAN_KEY,
        Binding("enter", "domain", "Domain", show=False, tooltip="The host's own guest that hurts most, in full"),
        Binding("d", "demo", "Demo", show=False, tooltip="Watch the demo, a recorded run of two minutes"),
        Binding("s", "try_it", "Try it", show=False, tooltip="Plan the scenario tile at size smoke"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.history = History(HOUR)
        self.watched: str | None = None
        """The run that is followed; None while none lives."""
        self._host: Recorder | None = None
        self._wanted: Path | None = None
        self._feed: LiveFeed | None = None
        self._listed: ComingList | None = None
        """The list of the cells to come while it is open."""
        self._measured_at = -math.inf
        self._asked: AskedChanges
        """What the user asked for of the cells to come of the run that is followed."""
        self._asked_now: AskedChanges
        """The same of the guests that run."""

    def on_mount(self) -> None:
        """Both feeds begin after the first picture, which does not wait until they are loaded."""
        # By way of the console, which reads no messages until it has started: until then pictures are held back.
        self.app.call_after_refresh(self.begin)

    def begin(self) -> None:
        """Start looking for a run and reading the host. A subclass that is given its data does neither."""
        from vmlab.tui.feed.live_feed import LiveFeed
        from vmlab.tui.state.run_state import RunState

        self.state = RunState()
        self._feed = LiveFeed(self.post_message)
        if self._wanted is not None:
            self._feed.follow(self._wanted)
        self._feed.start()
        self._start_host()
        self.set_interval(1.0, self._tick)
        self.set_timer(_WELCOME_SECONDS, self._look_at_host)

    def _look_at_host(self) -> None:
        from vmlab.tui.feed.planner import readiness

        if self.watched is None:
            self.fetch(readiness, self._readiness_found, group="readiness")

    def _readiness_found(self, words: str) -> None:
        self.readiness = words
        self.changed()

    def on_unmount(self) -> None:
        """Threads end with the screen."""
        if self._feed is not None:
            self._feed.stop()
        if self._host is not None:
            self._host.stop()

    def follow(self, folder: Path) -> None:
        """Show the run in `folder` from now on."""
        self._wanted = folder
        if self._feed is not None:
            self._feed.follow(folder)

    def origin(self) -> Origin:
        """LIVE while a run is followed, else the host."""
        return LIVE if self.watched is not None else HOST

    def counted(self, run: RunView) -> tuple[Sequence[str], Times]:
        """After a run the host's own disk is read again, and no chart has it beside an emulated one."""
        words, times = super().counted(run)
        if self.watched is not None or run.ended is None:
            return words, times
        return (), None if times is None else ((run.ended, math.inf),)

    def _tick(self) -> None:
        """Clocks go on when nothing arrives."""
        if time.monotonic() - self._drawn_at > 1.5:
            self.changed()

    def on_host_sampled(self, message: HostSampled) -> None:
        """The host as it is."""
        self.history.take(message.sample)
        self.domains = message.domains
        self.changed()

    def on_others_found(self, message: OthersFound) -> None:
        """What else measures here."""
        self.others = message.words
        self.changed()

    def on_remarked(self, message: Remarked) -> None:
        """A line for the log."""
        self._note(message.level, message.text)

    def on_run_found(self, message: RunFound) -> None:
        """A run is followed from here on."""
        from vmlab.tui.state.run_state import RunState

        self._watch(message.run)
        self.state = RunState(intent=message.intent, planned=message.planned)
        if message.host:
            # Figures so far are those of this host, or of another one of the fleet.
            self.history = History(HOUR)
            self._take_over()
        else:
            self.hosts = None
        self.host = message.host
        self.changed()

    def on_hosts_arrived(self, message: HostsArrived) -> None:
        """What is new of a fleet."""
        from vmlab.tui.state.hosts_of_run import FleetHosts

        if self.hosts is None or message.anew:
            self.hosts = FleetHosts()
        for name in message.names:
            self.hosts.add(name)
        for event in message.events:
            self.hosts.apply(event)
        for name, taken in message.figures.items():
            self.hosts.take(name, taken)
        self.changed(unhurried=not message.events)

    def choose_host(self, name: str) -> None:
        """The feed reads what there is of it."""
        if self._feed is not None:
            self._feed.choose(name)

    def _tell_silent(self, events: Sequence[object]) -> None:
        """Have it said on whatever screen the user is that a disk answers nothing."""
        new = set(map(id, events))
        for silent in (one for one in self.view().silent if id(one) in new):
            # Imported late: reports would delay the first picture.
            from vmlab.report.words import silent_words

            self.notify(silent_words([silent], silent.mono), title=_SILENT, severity="error")

    def on_run_arrived(self, message: RunArrived) -> None:
        """What is new of the run."""
        if message.samples:
            self._take_over()
        self.take(message.events, message.samples)
        self._tell_silent(message.events)
        for asked in (self._asked, self._asked_now):
            asked.see(message.events)
        if self._listed is not None and self._listed.is_outdated_by(message.events):
            self._list_coming()
        self.changed(unhurried=not message.urgent)

    def measure(self, done: frozenset[int], cell: int) -> None:
        """From the store of the run that is followed, in a thread, where its cells have numbers of tiles."""
        run = self.view()
        known = run.cell or (run.cells[-1] if run.cells else None)
        if known is None or known.axis("tiles") is None:
            self.measured = Measured()
        else:
            # What a cell measured is complete when it has ended.
            ended = done & {one.number for one in run.cells}

            def read() -> Measured:
                from vmlab.store.runs import STORE
                from vmlab.tui.feed.run_tables import document_of, measured_of

                return measured_of(document_of(runs_folder() / run.id / STORE), ended, max(ended, default=0))

            self.fetch(read, self._has_measured, lambda problem: None, group="measured")

    def _has_measured(self, measured: Measured) -> None:
        if measured.cell != self.measured.cell:
            self._measured_at = time.monotonic()
        self.measured = measured
        self.changed()

    def has_room_for_targets(self, run: RunView) -> bool:
        """Also while the next cell's guests come: it begins as soon as one has ended."""
        coming = run.cell is not None and run.cell.phase != Phase.EXECUTE
        shown = time.monotonic() - self._measured_at < _TARGET_SECONDS
        return super().has_room_for_targets(run) or (coming and shown)

    def _take_over(self) -> None:
        """Stop reading the host: the run samples it itself now."""
        if self._host is not None:
            host, self._host = self._host, None
            self.run_worker(host.stop, thread=True, group="host")

    def _start_host(self) -> None:
        """Read the host from here while no run does."""
        if self._host is None:
            from vmlab.tui.feed.live_feed import host_recorder

            self._host = host_recorder(self.post_message)
            self._host.start()

    def on_past_found(self, message: PastFound) -> None:
        """Times of earlier runs."""
        if self.state is not None:
            self.state.remember(message.past)

    def on_run_lost(self, message: RunLost) -> None:
        """The run is over, or its processes are."""
        view = self.view()
        if self.state is not None and message.reason and view.outcome == RUNNING:
            self.state.abandon(time.monotonic(), message.reason)
            self._note("error", f"the run was aborted: {message.reason}; `vmlab clean` tidies up")
        elif not message.reason:
            self.notify(f"run {message.run} {view.outcome}", title="The run is over")
        self._watch(None)
        if self.host:
            self.host, self.history = "", History(HOUR)
        self._start_host()
        self.changed()

    def _watch(self, run: str | None) -> None:
        from vmlab.tui.state.asked import AskedChanges

        self.watched = run
        self._asked, self._asked_now = AskedChanges(), AskedChanges(now=True)
        if self._listed is not None:
            self.call_later(self._close_coming if run is None else self._list_coming)
        self.refresh_bindings()

    def reason(self, action: str) -> str:
        """Commands to a run need one, what is for a host without a run needs none; one sentence for all of them."""
        domains = self.has_class("-domains")
        if self.watched is not None:
            off = action in _OF_NO_RUN or (action == "domain" and not domains)
            return "a run is going on; 2 has all scenarios" if off else ""
        # The strip of a fleet stays when its run is over, and shows no host any more.
        of_a_run = action in OF_A_RUN or (action == "next_host" and self.hosts is not None and len(self.hosts) > 1)
        if domains:
            return "no run is going on; press 2 to start one" if of_a_run else ""
        off = of_a_run or action == "domain"
        return "no run is going on, nor is a guest of the host's own shown; press 2 to start a run" if off else ""

    def action_domain(self) -> None:
        """The one under the list's cursor, which is the first until it is moved."""
        cast("RowList", self.query_one("#domains")).action_choose()

    def action_span(self) -> None:
        """Charts over all that is kept, or over the newest ticks again."""
        self.query_one(ChartBoard).switch_span()

    def action_demo(self) -> None:
        """The recording that comes with the program."""
        self.console.open_demo()

    def action_try_it(self) -> None:
        """The plan of what is to be tried first."""
        from vmlab.tui.feed.planner import TRIED

        name, overrides = TRIED
        self.console.propose(Proposal(name, overrides.size))

    def action_switch_cache(self) -> None:
        """Cells to come: none where the next is not, writeback otherwise. The running cell stays as it is."""
        self._change(self._asked, cache=other_mode(self._coming("cache")))

    def action_switch_cache_now(self) -> None:
        """Guests that run: none where they have another mode, writeback otherwise. The running cell does not count."""
        mode = other_mode(self._guests_have("cache"))
        self.notify(f"to cache {mode}: dirty pages are written first", title=_RUNNING_GUESTS)
        self._change(self._asked_now, cache=mode)

    def action_switch_ksm_now(self) -> None:
        """Guests that run: the host's KSM off where it is on, else on. The running cell does not count."""
        self._change(self._asked_now, ksm="off" if self._guests_have("ksm") == "on" else "on")

    def action_change_tiles(self, step: int) -> None:
        """Cells to come: one tile more or fewer. The running cell stays as it is."""
        if (count := _number(self._coming("tiles")) + step) < 1:
            self.notify("a cell has at least one tile", title=_TO_COME, severity="warning")
        else:
            self._change(self._asked, tiles=count)

    def action_as_planned(self) -> None:
        """Cells to come: those that the run was started with."""
        self._change(self._asked, as_planned=True)

    def action_change_tiles_now(self, step: int) -> None:
        """Add a tile to the loop that goes on, or retire its newest."""
        cell = self.view().cell
        count = _number(cell.tiles if cell is not None else None) + step
        self._ask(_THE_LOOP, lambda run: run.change_now({"tiles": count}))

    def action_end_loop(self) -> None:
        """No workload of the loop starts again; what is under way ends."""
        self._ask(_THE_LOOP, lambda run: run.change_now({"end": True}))

    async def action_edit_coming(self) -> None:
        """Open the list of the cells to come in place of the log, or close it."""
        if self._listed is not None:
            await self._close_coming()
        else:
            from vmlab.tui.widgets.tables.coming_list import ComingList

            self._listed = ComingList(self._asked, id="coming")
            self.add_class("-coming")
            await self.mount_all([self._listed.titled(_TO_COME)], before="#log")
            self._listed.focus()
            self._list_coming()

    async def _close_coming(self) -> None:
        listed, self._listed = self._listed, None
        if listed is not None:
            self.remove_class("-coming")
            await listed.remove()

    async def on_coming_list_closed(self) -> None:
        """Escape in the list."""
        await self._close_coming()

    def on_coming_list_asked(self) -> None:
        """A key in the list, for one cell."""
        self._ask_next(self._asked)

    def _list_coming(self) -> None:
        """Have the run tell what is to come, and show it where the list is open."""
        if (run := self.watched) is not None:
            self.fetch(lambda: self._commands(run).coming(), self._show_coming, self._tell_in_list, group="coming")

    def _show_coming(self, cells: Sequence[CellToCome]) -> None:
        if self._listed is not None:
            self._listed.fill(cells)

    def _tell_in_list(self, problem: str) -> None:
        if self._listed is not None:
            self._listed.tell(problem)

    def action_stop_run(self) -> None:
        """Ask, and then stop the run that is shown."""
        if self.watched is not None:
            self.console.ask_to_stop(runs_folder() / self.watched)

    def _coming(self, axis: str) -> AxisValue | None:
        """The next cell's value of an axis, if known: the one the user asked for, else the running cell's."""
        view, asked = self.view(), self._asked.value(axis)
        if asked is not None:
            return asked
        if view.next_axes is not None and axis in dict(view.next_axes):
            return dict(view.next_axes)[axis]
        return view.cell.axis(axis) if view.cell is not None else None

    def _guests_have(self, what: str) -> AxisValue | None:
        """What the running guests have: what the user asked for, else what the run reported."""
        asked = self._asked_now.value(what)
        return getattr(self.view().cell, what, None) if asked is None else asked

    def _change(self, asked: AskedChanges, **change: AxisValue) -> None:
        """Ask for a change of all cells to come, or of the running guests."""
        asked.add(change)
        self._ask_next(asked)

    def _ask_next(self, asked: AskedChanges) -> None:
        """Ask for the next of the changes that were added."""
        title = _TO_COME if asked is self._asked else _RUNNING_GUESTS
        self._ask(title, asked.make_next, asked.forget)

    def _commands(self, run: str) -> RunCommands:
        """Commands to a run; loads the planner, so only for a thread."""
        from vmlab.tui.commands import RunCommands

        self.console.require_control()
        return RunCommands(runs_folder() / run)

    def _ask(
        self, title: str, command: Callable[[RunCommands], str], refused: Callable[[], None] | None = None
    ) -> None:
        """Have `command` ask the run that is watched, and show what it says, or why it did not work."""

        def told(effect: str) -> None:
            if effect:
                self.notify(effect, title=title)
            if self._listed is not None:
                self._list_coming()

        def failed(problem: str) -> None:
            if refused is not None:
                refused()
            self.notify(problem, title=f"{title}: not changed", severity="error")

        if (run := self.watched) is not None:
            self.fetch(lambda: command(self._commands(run)), told, failed, group="commands", exclusive=False)

    def _note(self, level: str, text: str) -> None:
        if self.state is not None:
            self.state.note(LogLine(time.time(), level, text))
        self.changed()


def _number(tiles: AxisValue | None) -> int:
    """How many tiles that are; one where it is not known."""
    return tiles if isinstance(tiles, int) else 1
