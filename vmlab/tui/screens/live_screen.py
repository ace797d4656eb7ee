"""The Live screen: the current run, or the host itself while there is none."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from vmlab.model.run import RUNNING, Phase
from vmlab.tui.console_requests import Proposal
from vmlab.tui.screens.base_screen import OF_A_RUN, SPAN_KEY
from vmlab.tui.screens.commanding_screen import CommandingScreen
from vmlab.tui.state.history import HOUR, History
from vmlab.tui.state.views import LogLine, Measured, Readiness, RunView
from vmlab.tui.widgets.charts.chart_board import Times
from vmlab.tui.widgets.painted import Line, Piece, TextBoard
from vmlab.tui.widgets.status_strip import HOST, LIVE, Origin

if TYPE_CHECKING:
    from vmlab.report.demo.chapters import Demo
    from vmlab.telemetry.recorder import Recorder
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
    from vmlab.tui.widgets.row_list import RowList

_TRY = "Plan cache-modes, or one tile, at size smoke"
_IN_FULL = "Show a guest of the run in full, or the host's own heaviest guest"
_OF_NO_RUN = ("demo", "try_it")
QUESTION = "How many guests does this host carry, and what slows them down?"
_WHAT = "vmlab starts real guests that load each other, and watches the host."
_WAYS = (
    ("d", "watch the demo", "demo", "a recorded run"),
    ("c", "is the host's cache worth it?", "cache-modes", "cache-modes smoke"),
    ("s", "one whole tile", "tile", "tile smoke"),
)
"""Keys, what each answers, what it begins, and that in words."""
_AIRY = 24
"""Rows from which on the welcome has blank lines."""
_WELCOME_SECONDS = 1.0
"""After so long without a run the host is looked at: what is to be tried may lack something."""
_TARGET_SECONDS = 8.0
"""How long the targets of a cell stand while the guests of the next one come."""
_SILENT = "A disk answers nothing"


class LiveScreen(CommandingScreen):
    """Finds the live run by itself; when it ends, its last picture stays and the host's figures go on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        SPAN_KEY,
        Binding("enter", "domain", "Domain", show=False, tooltip=_IN_FULL),
        Binding("d", "demo", "Demo", show=False, tooltip="Watch the demo, which starts nothing"),
        Binding("c", "try_it('cache-modes')", "Try it", key_display="cs", show=False, tooltip=_TRY),
        Binding("s", "try_it('tile')", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.history = History(HOUR)
        self._host: Recorder | None = None
        self._wanted: Path | None = None
        self._feed: LiveFeed | None = None
        self._measured_at = -math.inf
        # The first picture is laid out for it.
        self.add_class("-welcome")
        self.readiness = Readiness()
        """What this host has or lacks for what is to be tried first, as far as that is known."""

    def compose_above(self) -> ComposeResult:
        """What stands there without a run."""
        yield TextBoard(id="welcome")

    def draw(self) -> None:
        """Draw; without a run and guests of the host's own, beginning with what a user may begin with."""
        welcomes = not self.view().id and not self.domains
        self.set_class(welcomes, "-welcome")
        if welcomes:
            airy = self.size.height >= _AIRY
            lines = tuple(welcome_lines(self.readiness, airy=airy))
            board = self.query_one("#welcome", TextBoard)
            board.styles.height = None if airy else len(lines)
            board.show(lines)
        super().draw()

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

    def _readiness_found(self, found: Readiness) -> None:
        self.readiness = found
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

        self.watch_run(message.run)
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
        self.see_changes(message.events)
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
                from vmlab.store.runs import store_of
                from vmlab.tui.feed.run_tables import document_of, measured_of

                return measured_of(document_of(store_of(run.id)), ended, max(ended, default=0))

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
        self.watch_run(None)
        if self.host:
            self.host, self.history = "", History(HOUR)
        self._start_host()
        self.changed()

    def reason(self, action: str) -> str:
        """Commands to a run need one, what is for a host without a run needs none; one sentence for all of them."""
        domains = self.has_class("-domains")
        if self.watched is not None:
            if action == "domain" and not domains and not self.view().guests:
                return "a run is going on; its guests are not there yet"
            return "a run is going on; 2 has all scenarios" if action in _OF_NO_RUN else ""
        # The strip of a fleet stays when its run is over, and shows no host any more.
        of_a_run = action in OF_A_RUN or (action == "next_host" and self.hosts is not None and len(self.hosts) > 1)
        if domains:
            return "no run is going on; press 2 to start one" if of_a_run else ""
        off = of_a_run or action == "domain"
        return "no run is going on, nor is a guest of the host's own shown; press 2 to start a run" if off else ""

    def action_domain(self) -> None:
        """The one under the list's cursor, which is the first until it is moved; of a run the first one."""
        if self.has_class("-domains"):
            cast("RowList", self.query_one("#domains")).action_choose()
            return
        from vmlab.tui.screens.guest_screen import GuestScreen

        guests = self.view().guests
        # Where something is under way is more to see.
        first = next((guest for guest in guests if guest.workloads), guests[0])
        self.app.push_screen(GuestScreen(first.key, lambda: self.history, lambda: self.view().guests, self.now))

    def action_demo(self) -> None:
        """The recording that comes with the program."""

        def read() -> Demo:
            from vmlab.report.demo.chapters import load_demo

            return load_demo()

        self.fetch(read, self.console.play_demo, group="demo")

    def action_try_it(self, name: str) -> None:
        """The plan of a scenario that is to be tried first."""
        from vmlab.tui.feed.planner import TRIED_SIZE

        self.console.propose(Proposal(name, TRIED_SIZE))

    def _note(self, level: str, text: str) -> None:
        if self.state is not None:
            self.state.note(LogLine(time.time(), level, text))
        self.changed()


def welcome_lines(ready: Readiness, *, airy: bool) -> Iterator[Line]:
    """The question and the ways to begin; with blank lines between them where there is room for that."""
    gap: list[Line] = [[]] if airy else []
    yield [(f" {QUESTION}", "title")]
    yield [(f" {_WHAT}", "quiet")]
    yield from gap
    for key, answers, begins, words in _WAYS:
        yield _way(key, answers, ", ".join(filter(None, (words, ready.needs.get(begins, "")))))
    every = f"all {ready.scenarios} scenarios" if ready.scenarios else "all scenarios"
    yield [*_way("2", every, "each with its time"), ("   3", "accent"), ("  the runs there are", "plain")]
    yield from gap
    yield [(f" {ready.words or 'finding out what this host has'}", "plain" if ready.is_ready else "warning")]
    yield from gap


def _way(key: str, answers: str, what: str) -> list[Piece]:
    return [(f" {key:<3}", "accent"), (f"{answers:<31}", "plain"), (what, "quiet")]
