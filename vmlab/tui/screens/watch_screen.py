"""What Live and Replay share: charts, tiles, log and strip, redrawn at most four times a second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from vmlab.model.ordered import EMULATED_DISK
from vmlab.model.run import OF_HOST, RUNNING, Phase
from vmlab.tui.screens.base_screen import HOST_KEYS, ConsoleScreen, KeptContainer
from vmlab.tui.state.history import MUCH_PERCENT, TICKS, Gauge, History, gauges, outside_share
from vmlab.tui.state.views import NO_RUN, Measured, RunView
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.charts.chart_board import ChartBoard, Charted, Times
from vmlab.tui.widgets.key_bar import KeyBar
from vmlab.tui.widgets.painted import Painted, TextBoard
from vmlab.tui.widgets.status_strip import HOST, Origin, StatusStrip, Strip
from vmlab.tui.widgets.tables.event_log import EventLog
from vmlab.tui.widgets.tables.guest_table import GuestTable, Tiles

if TYPE_CHECKING:
    from vmlab.model.domain import Domain
    from vmlab.model.event import Event
    from vmlab.model.sample import Sample
    from vmlab.telemetry.domains.hurting import DomainState
    from vmlab.tui.state.hosts_of_run import FleetHosts
    from vmlab.tui.state.run_state import RunState
    from vmlab.tui.widgets.row_list import RowList
    from vmlab.tui.widgets.tables.host_strip import HostStrip

_Pane = TypeVar("_Pane", bound=Painted)
SHORTEST_REDRAW = 0.25
"""Seconds between two pictures at least, however fast things arrive."""
UNHURRIED_REDRAW = 1.1
"""The same where only progress arrived: it is drawn with the next sample, which comes within a second."""
_OUTSIDE_SAMPLES = 5
MeasuredKey = tuple[str, frozenset[int], int, int]
_WORK_DONE = (Phase.COLLECT, Phase.CLEAN_UP)
_ROOMY = 30
"""Rows from which on the hosts of a fleet have a line each."""
_HIGH = 40
"""Rows from which on the log has more than its newest lines."""
_PROJECTOR = (190, 55)
"""Columns and rows from which on a terminal is taken for one on a projector."""
LATENCY = "Show latency of the guests' disks as a heat map, or the charts again"


class WatchScreen(ConsoleScreen):
    """A picture of a run and of the host. Subclasses feed `state` and `history` and call `changed`."""

    CSS_PATH = "../styles/watch.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "latency", "Latency", show=False, tooltip=LATENCY),
        *HOST_KEYS,
    ]
    # Arrow keys belong to the screen until the user moves into a pane with Tab.
    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__()
        self.state: RunState | None = None
        """What is known of the run; None until its first event, so that the first picture need not wait for it."""
        self.history = History()
        self._drawn_at = 0.0
        self._due: Timer | None = None
        self._unhurried = False
        self.domains: tuple[Domain, ...] = ()
        """The host's own guests, where the figures come with theirs."""
        self.others = ""
        """The runs of other users or state folders that measure on this host."""
        self.hosts: FleetHosts | None = None
        """What the hosts of a fleet do; None of any other run."""
        self.host = ""
        """The host of a fleet that is shown in full."""
        self.measured = Measured()
        """What the run's cells say so far."""
        self._measured_key: MeasuredKey = ("", frozenset(), 0, 0)

    def compose(self) -> ComposeResult:
        """Strip, charts with the tiles below or beside them, log, keys; see `pane` for the others."""
        yield StatusStrip(id="strip")
        yield from self.compose_above()
        with KeptContainer(id="middle"):
            yield ChartBoard(id="charts").titled("Host")
            yield GuestTable(id="guests").titled("Guests")
        yield EventLog(id="log").titled("Events")
        yield from self.compose_more()
        yield KeyBar(id="keys")

    def compose_above(self) -> ComposeResult:
        """What a subclass has between strip and charts."""
        yield from ()

    def compose_more(self) -> ComposeResult:
        """What a subclass has between log and keys."""
        yield from ()

    def pane(self, kind: type[_Pane], id: str, *, before: str, title: str = "") -> _Pane:
        """One that most pictures lack, with `title` in its edge: mounted when it is first shown, before another one.

        The first picture does not wait until such panes are loaded.
        """
        for there in self.query(f"#{id}").results(kind):
            return there
        made = kind(id=id)
        self.mount_all([made.titled(title) if title else made], before=before)
        return made

    def action_latency(self) -> None:
        """A heat map of the latency of the guests' disks in the place of the charts, or the charts again."""
        from vmlab.tui.widgets.charts.latency_board import LatencyBoard

        self.pane(LatencyBoard, "latency", before="#guests", title="Latency")
        self.toggle_class("-latency")
        self.call_after_refresh(self._draw_shown)

    def action_next_host(self, step: int) -> None:
        """Of a fleet show another host in full."""
        # Said here and not by `reason`: the help of most runs would have a heading for this key alone.
        if self.hosts is None or len(self.hosts) < 2:
            self.notify("this is one host; a run of a fleet has several")
        else:
            names = self.hosts.names
            at = names.index(self.host) if self.host in names else -step
            self.choose_host(names[(at + step) % len(names)])

    def on_host_strip_chosen(self, message: HostStrip.Chosen) -> None:
        """A click on a host."""
        if message.name != self.host and not self.is_refused("next_host"):
            self.choose_host(message.name)

    def choose_host(self, name: str) -> None:
        """Show this host of a fleet in full."""

    def now(self) -> float:
        """The moment that is shown, on the monotonic clock."""
        return time.monotonic()

    def origin(self) -> Origin:
        """Where the figures come from."""
        return HOST

    def view(self) -> RunView:
        """The run as it stands."""
        return NO_RUN if self.state is None else self.state.snapshot()

    def take(self, events: Iterable[Event], samples: Iterable[Sample]) -> None:
        """Take in what is new of the run and of the host."""
        if self.state is not None:
            for event in events:
                self.state.apply(event)
            if self.state.domains is not None:
                self.domains = self.state.domains
        for sample in samples:
            self.history.take(sample)

    def changed(self, *, unhurried: bool = False) -> None:
        """Something arrived: draw now, or as soon as the last picture is old enough."""
        if not self.is_current:
            return
        wait = (UNHURRIED_REDRAW if unhurried else SHORTEST_REDRAW) - (time.monotonic() - self._drawn_at)
        if wait <= 0:
            self._draw_shown()
        elif self._due is None or (self._unhurried and not unhurried):
            self._cancel_due()
            self._unhurried = unhurried
            self._due = self.set_timer(wait, self._draw_shown)

    def _cancel_due(self) -> None:
        if self._due is not None:
            self._due.stop()
            self._due = None

    def on_resize(self) -> None:
        """Where there are few rows, those of the guests come before those of the log."""
        super().on_resize()
        self.set_class(self.size.height >= _HIGH, "-high")

    def on_screen_resume(self) -> None:
        """Coming back from another screen."""
        self._draw_shown()

    def draw(self) -> None:
        """Draw everything as it stands."""
        self.begin_picture()
        run = self.view()
        gauges = self.gauges_of(run)
        charts = self.query_one(ChartBoard)
        charts.show(Charted(self.history, run.switched, run.moments, *self.counted(run)))
        self._draw_latency()
        self._draw_guests(run)
        self._draw_domains(run)
        self._draw_measured(run)
        is_large = self._draw_large(run, gauges)
        self._draw_loop(run)
        self._draw_hosts()
        self.query_one(EventLog).show(run.log)
        # What stands in large letters is not said a second time.
        shown = () if is_large else gauges
        strip = Strip(run, self.now(), self.origin(), self._outside(run), shown, self.others)
        self.query_one(StatusStrip).show(strip)

    def begin_picture(self) -> None:
        """What is drawn now need not be drawn once more."""
        self._cancel_due()
        self._drawn_at = time.monotonic()

    def _draw_hosts(self) -> None:
        """The hosts of a fleet, above charts and guests, which are those of one of them."""
        hosts = self.hosts
        shown = hosts is not None and len(hosts) > 0
        self.set_class(shown, "-fleet")
        if hosts is None or not shown:
            return
        from vmlab.tui.widgets.tables.host_strip import TITLE, HostLines, HostStrip

        height, now = self.size.height, self.now()
        before = next(id for id in ("#large", "#answer", "#middle") if self.query(id))
        strip = self.pane(HostStrip, "hosts", before=before, title=TITLE)
        strip.show(HostLines(hosts.views(now), self.host, now, 1 if height < _ROOMY else height // 5))
        self.query_one(ChartBoard).border_title = f"Host {self.host}" if self.host else "Host"

    def counted(self, run: RunView) -> tuple[Sequence[str], Times]:
        """The words behind the charts, and the times whose figures of the disk count; None for all times."""
        return run.ordered, run.executed if EMULATED_DISK in run.ordered else None

    def _draw_measured(self, run: RunView) -> None:
        """The answer as far as it is known, and the targets of the last cell once its guests have ended."""
        key = measured_key(run)
        if key != self._measured_key:
            self._measured_key = key
            self.measure(*key[1:3])
        measured = self.measured
        self.set_class(measured.board is not None, "-asked")
        self.set_class(self.is_answered(run), "-answered")
        self.set_class(bool(measured.targets) and self.has_room_for_targets(run), "-measured")
        if measured.board is not None:
            from vmlab.tui.widgets.tables.tiles_answer import TilesAnswer

            self.pane(TilesAnswer, "answer", before="#middle").show(measured.board)
        if measured.targets:
            from vmlab.tui.widgets.tables.tiles_answer import TargetMeter

            meter = self.pane(TargetMeter, "targets", before="#guests", title="Targets")
            meter.retitle(f"Targets of cell {measured.cell}")
            meter.show(measured.targets)

    def measure(self, done: frozenset[int], cell: int) -> None:
        """Find out what the cells in `done` say, and the targets of `cell`; sets `measured`."""

    def has_room_for_targets(self, run: RunView) -> bool:
        """Whether the targets stand in the place of the guests, which have ended."""
        return not is_working(run)

    def is_answered(self, run: RunView) -> bool:
        """Whether the board has the room of guests and log, as nothing more is to come."""
        return self.measured.board is not None and bool(run.id) and run.outcome != RUNNING

    def _draw_latency(self) -> None:
        if self.has_class("-latency") and self.state is not None:
            from vmlab.tui.widgets.charts.latency_board import LatencyBoard

            self.query_one(LatencyBoard).show(self.state.latency)

    def _draw_loop(self, run: RunView) -> None:
        """Throughput and latency of a loop's workloads, between guests and log."""
        self.set_class(bool(run.loop), "-loop")
        if run.loop:
            from vmlab.report.run.loop_text import loop_section
            from vmlab.report.writers.text import text_lines

            board = self.pane(TextBoard, "loop", before="#log", title="Loop: the newest verified round")
            lines = text_lines([*loop_section(run.loop).blocks], max(20, self.size.width - 2))
            board.show([((f" {line}", "plain"),) for line in lines])

    def _draw_large(self, run: RunView, gauges: Sequence[Gauge]) -> bool:
        """On a projector, the little that matters in large letters. Whether they are shown."""
        width, height = self.size
        shown = bool(run.id) and width >= _PROJECTOR[0] and height >= _PROJECTOR[1] and not self.has_class("-plain")
        self.set_class(shown, "-large")
        if shown:
            from vmlab.tui.widgets.large_strip import LargeWords, RunStrip

            strip = self.pane(RunStrip, "large", before="#answer" if self.query("#answer") else "#middle")
            strip.show(LargeWords(run, self.now(), self.measured.board, gauges))
        return shown

    def gauges_of(self, run: RunView) -> tuple[Gauge, ...]:
        """How near disk and CPUs are to their limits, while workloads run: before, an emulated disk has none."""
        if run.cell is None or not is_executing(run):
            return ()
        began = run.cell.phase_began
        return gauges([sample for sample in self.history.newest(TICKS) if sample.mono - sample.length >= began])

    def _outside(self, run: RunView) -> float | None:
        """How much of the CPUs other work takes while workloads run, in percent; None where it is not much."""
        if not is_executing(run) or run.size == OF_HOST:
            return None
        share = outside_share(self.history.newest(_OUTSIDE_SAMPLES))
        return share if share >= MUCH_PERCENT else None

    def _draw_guests(self, run: RunView) -> None:
        # Only beside the charts is the table as high as the screen lets it be, whatever it draws.
        history = self.history if self.has_class("-wide") else None
        tiles = Tiles(run.guests, self.history.last, self.now(), self.hint(run), run.cells, history)
        self.query_one(GuestTable).show(tiles)

    def states(self) -> list[DomainState]:
        """The host's own guests by the newest figures, the one first that hurts most."""
        from vmlab.telemetry.domains.hurting import SPAN, Recent, ranked

        return ranked(Recent(self.history.newest(SPAN)).get, self.domains)

    def _draw_domains(self, run: RunView) -> None:
        """In the place of a run's guests, where there is no run or it is a recording of the host."""
        shown = bool(self.domains) and (not run.id or run.size == OF_HOST)
        begins = shown and not self.has_class("-domains")
        self.set_class(shown, "-domains")
        if shown:
            from vmlab.telemetry.domains.hurting import SPAN, Recent, host_limits
            from vmlab.tui.widgets.tables.domain_list import DomainList

            listed = self.pane(DomainList, "domains", before="#guests", title="Domains")
            if begins and self.focused is None:
                # There is one list here, so arrows and Enter are for it.
                listed.focus()
            limits = host_limits(Recent(self.history.newest(SPAN)).get, self.domains)
            listed.show_states(self.states(), limits)

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """Enter on one of the host's own guests."""
        if self.has_class("-domains") and message.key:
            from vmlab.tui.screens.domain_screen import DomainScreen

            self.app.push_screen(DomainScreen(message.key, lambda: self.history, self.states))

    def hint(self, run: RunView) -> tuple[str, ...]:
        """The text in place of the tiles."""
        if run.id and run.outcome == RUNNING:
            return (f"{run.scenario}: the guests are not there yet.", *freezing_lines(run, self.now()))
        return ("No guests.",)

    def table_text(self) -> str:
        """What `y` copies: the tiles with their figures."""
        guests = "#domains" if self.has_class("-domains") else "#guests"
        shown = ("#strip", guests, *(["#latency"] if self.has_class("-latency") else []))
        return "".join(f"{self.query_one(name, Painted).text()}\n" for name in shown)


def measured_key(run: RunView) -> MeasuredKey:
    """The run once it has a cell, the numbers of the cells whose workloads are done, the newest of them or 0.

    Then how many have ended: of a run that goes on, what was measured is complete only then.
    """
    done = {cell.number for cell in run.cells}
    if run.cell is not None and (run.cell.phase in _WORK_DONE or run.cell.outcome != RUNNING):
        done.add(run.cell.number)
    return run.id if run.cell or run.cells else "", frozenset(done), max(done, default=0), len(run.cells)


def is_executing(run: RunView) -> bool:
    """Whether workloads run."""
    return run.cell is not None and run.cell.phase == Phase.EXECUTE and run.outcome == RUNNING


def is_working(run: RunView) -> bool:
    """Whether a cell's guests are there, or come."""
    return run.cell is not None and run.cell.outcome == RUNNING and run.cell.phase not in _WORK_DONE


def freezing_lines(run: RunView, now: float) -> tuple[str, ...]:
    """What is made before guests can be restored for the first time, a line for each."""
    if not run.freezing:
        return ()
    made = sum(one.seconds is not None for one in run.freezing)
    lines: list[str] = []
    for one in run.freezing:
        how = f"{one.stage}, {clock(now - one.began)}"
        if one.seconds is not None:
            how = f"is frozen, after {clock(one.seconds)}"
        lines.append(f"  {one.guest:<12} {how}")
    return (f"They are frozen once, for this run and later ones: {made} of {len(run.freezing)} so far.", *lines)
