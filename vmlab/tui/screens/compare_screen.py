"""The Compare screen: runs or cells side by side, and their time series over each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from vmlab.model.ordered import EMULATED_DISK, of_emulated_disk, ordered_title
from vmlab.telemetry.host.host_figures import HostFigure, headlines
from vmlab.tui.console_requests import Pick, Proposal
from vmlab.tui.feed.sides import COLOURS, Course, PickedSide, course_of, sides_of
from vmlab.tui.screens.base_screen import ConsoleScreen
from vmlab.tui.state.compared import ComparedSides, compared_sides
from vmlab.tui.widgets.charts.side_charts import Overlay, OverlayChart, PhaseLines, Phases, SideBars, rows_of_bars
from vmlab.tui.widgets.key_bar import KeyBar
from vmlab.tui.widgets.side_table import SideTable

_ROOMY = (110, 34)
"""Columns and rows from which on bars and phases are drawn."""
_HIGH = 40
"""Rows from which on phases are drawn, and notes stand before the host's figures."""
_CHART_ROWS = 11
HINT = (
    "Nothing to compare yet.",
    "Press 3 for the runs, mark two of them (or cells of one) with Space, and press c.",
    "c on a single run compares its own cells, such as cache none against writeback.",
)


class CompareScreen(ConsoleScreen):
    """Shows what was picked on the Runs screen; the first pick is the baseline."""

    CSS_PATH = "../styles/compare.tcss"
    COPIED = ("#bars", "#sides")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.switch_mode('runs')", "Runs", tooltip="Go back to the list of runs"),
        Binding("m", "metric(1)", "Chart", tooltip="Show the next host metric in the chart"),
        Binding("M", "metric(-1)", "Series before", show=False, tooltip="Show the previous host metric in the chart"),
        Binding("a", "every_metric", "Metrics", tooltip="Show run times only, or all that was measured"),
        Binding("r", "repeat", "Repeat…", show=False, tooltip="Plan this run with as many repeats as an answer needs"),
        Binding("x", "swap", "Swap", tooltip="Let the next side be the baseline"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._picks: list[Pick] = []
        self._sides: list[PickedSide] = []
        self._compared = ComparedSides(hint=HINT)
        self._every_metric = False
        self._metric: int | None = None
        """The host figure that a user chose for the chart."""

    def compose(self) -> ComposeResult:
        """Bars where there is room, the table, the chart with the phases, the keys."""
        yield SideBars(id="bars").titled("Compare")
        yield SideTable(id="sides").titled("Compare")
        yield OverlayChart(id="overlay").titled("Over time")
        yield PhaseLines(id="phases")
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Say what to do while nothing was picked."""
        for widget in (OverlayChart, PhaseLines, SideBars):
            self.query_one(widget).display = False
        self._draw()

    def on_resize(self) -> None:
        """Bars and phases need room."""
        self._draw()

    def compare(self, picks: Sequence[Pick]) -> None:
        """Set `picks` side by side; one run alone falls into its own cells."""
        self._picks, self._metric = list(picks), None
        self._compared = self._compared._replace(hint=("Reading the runs …",))
        self._read()

    def _read(self, unchanged: str = "") -> None:
        """Read and compare what was picked; `unchanged` is said where that gives what is shown already."""
        picks, every_metric = self._picks, self._every_metric

        def read() -> tuple[list[PickedSide], ComparedSides]:
            found = sides_of(picks)
            shown, left_out = found[:COLOURS], [one.side.label for one in found[COLOURS:]]
            sides = [one.side for one in shown]
            return shown, compared_sides(sides, every_metric=every_metric, left_out=left_out)

        def refused(problem: str) -> None:
            self._sides_received(([], ComparedSides(hint=(problem, "", *HINT[1:]))))

        self.fetch(read, partial(self._sides_received, unchanged=unchanged), refused, group="compare")

    def _sides_received(self, found: tuple[list[PickedSide], ComparedSides], unchanged: str = "") -> None:
        before = self.table_text()
        self._sides, self._compared = found
        self._draw()
        if unchanged and self.table_text() == before:
            self.notify(unchanged)
        self.refresh_bindings()
        self._read_series()

    def _read_series(self) -> None:
        figure, sides = headlines()[self._place], self._sides
        self.fetch(
            lambda: [course_of(one, figure.name) for one in sides], partial(self._draw_series, figure), group="series"
        )

    @property
    def _place(self) -> int:
        """The place of the chart's figure among the host's: the chosen one, or that of what was at its limit."""
        return self._compared.limited if self._metric is None else self._metric

    def _draw(self) -> None:
        compared = self._compared
        bars = self.query_one(SideBars)
        roomy = self._is_roomy and bool(compared.labels)
        high = self.size.height >= _HIGH
        self.set_class(roomy, "-roomy")
        bars.display = roomy
        self.query_one(PhaseLines).display = roomy and high
        rows = compared.rows if roomy and high else compared.narrow
        if roomy:
            height = rows_of_bars(compared, self.size.width, self.size.height * (5 if high else 4) // 10)
            bars.styles.height = height + bars.gutter.height
            bars.show(compared)
            rest = self.size.height - height - _CHART_ROWS - (len(compared.labels) + 1 if high else 0) - 1
            self.query_one(SideTable).styles.max_height = max(3, rest)
            # The answer comes first: over the bars, or where there is no room for them over the table.
            rows, compared = rows[compared.times :], compared._replace(sentence="")
        compared = compared._replace(rows=rows)
        self.query_one(SideTable).show(compared)

    @property
    def _is_roomy(self) -> bool:
        return self.size.width >= _ROOMY[0] and self.size.height >= _ROOMY[1]

    def _draw_series(self, figure: HostFigure, courses: Sequence[Course]) -> None:
        chart = self.query_one(OverlayChart)
        chart.display = bool(self._sides)
        # What is true of the disk alone stands behind its figures alone.
        ordered = self._compared.ordered
        words = [word for word in ordered if word != EMULATED_DISK or of_emulated_disk(figure.name, ordered)]
        title = ordered_title(figure.label, words)
        labels, curves, switches = (
            self._compared.labels,
            [one.curves for one in courses],
            [one.switches for one in courses],
        )
        chart.show(Overlay(title, figure.name, curves, labels, switches))
        phases = Phases(labels, [one.phases for one in courses], [one.cells[0] for one in self._sides])
        self.query_one(PhaseLines).show(phases)

    def reason(self, action: str) -> str:
        """Keys that change the comparison need one."""
        if action in ("metric", "every_metric", "swap", "repeat") and not self._sides:
            return "nothing is compared; press 3, and c on a run"
        if action == "repeat" and self._compared.repeats is None:
            return "these repeats are as many as an answer takes, or are of several runs"
        return ""

    def action_metric(self, step: int) -> None:
        """Another figure in the chart."""
        self._metric = (self._place + step) % len(headlines())
        self._read_series()

    def action_every_metric(self) -> None:
        """Run times only, or everything that was measured."""
        self._every_metric = not self._every_metric
        self._read(unchanged="there are no other metrics to compare")

    def action_repeat(self) -> None:
        """Plan a new run with enough repeats; nothing is pooled with this one."""
        run = self._sides[0].side.run
        axes = {name: axis.values for name, axis in run.axes.items()}
        self.console.propose(Proposal(run.scenario, run.size, self._compared.repeats, axes))

    def action_swap(self) -> None:
        """Turn the sides by one, so that another one is the baseline."""
        if len(self._picks) > 1:
            self._picks = [*self._picks[1:], self._picks[0]]
            self._read()
        else:
            self.notify("these are the cells of one run, whose scenario names the baseline; mark two of them to choose")
