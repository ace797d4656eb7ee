"""One of the host's own guests in full: who it is, its charts, and each disk with its cache mode and figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from vmlab.model.quantities import format_bytes
from vmlab.system.text_width import ends_of, exactly, left, width_of
from vmlab.telemetry.host.host_figures import Terms
from vmlab.tui.screens.base_screen import SPAN_KEY, ConsoleScreen
from vmlab.tui.state.charts import Chart, domain_charts
from vmlab.tui.state.history import bridged
from vmlab.tui.widgets.charts.axis_scale import short
from vmlab.tui.widgets.charts.chart_board import ChartBoard, Charted, Panel, most_across
from vmlab.tui.widgets.key_bar import KeyBar
from vmlab.tui.widgets.painted import Line, TextBoard

if TYPE_CHECKING:
    from vmlab.telemetry.domains.hurting import DomainState
    from vmlab.tui.state.history import History

_REDRAW_SECONDS = 0.5


class DomainCharts(ChartBoard):
    """The same charts as the host's, of one guest."""

    has_lines = False
    panels: tuple[Panel, ...] = ()

    def _grid(self, width: int, height: int) -> tuple[int, int, tuple[Panel, ...]]:
        across = min(3, most_across(width))
        return across, (width - across + 1) // across, self.panels

    def _values(self, chart: Chart, terms: Terms, drawn: int) -> list[float]:
        return bridged(super()._values(chart, terms, drawn))


class Found(NamedTuple):
    """What is known of a guest now: who it is, its charts, and what stands below these."""

    who: list[Line]
    charts: tuple[Chart, ...]
    below: list[Line]


class DiskBoard(TextBoard):
    """A line for each disk; it scrolls."""

    can_focus = True


class OneGuestScreen(ConsoleScreen):
    """Follows one guest in the figures of the screen that it was opened from."""

    CSS_PATH = "../styles/domain.tcss"
    COPIED = ("#who", "#disks")
    TITLES = ("Guest", "Workloads")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Back", tooltip="Go back to the previous screen"),
        Binding("left,h", "other(-1)", "Other", key_display="←→", tooltip="The guest before in the list"),
        Binding("right,l", "other(1)", "Next", show=False, tooltip="The next guest in the list"),
        SPAN_KEY,
    ]

    def __init__(self, name: str, history: Callable[[], History]) -> None:
        """`history` gives the figures."""
        super().__init__()
        self._name = name
        self._history = history
        self._drawn = -1

    def compose(self) -> ComposeResult:
        """Who it is, charts, disks, keys."""
        yield TextBoard(id="who")
        yield DomainCharts(id="charts").titled(self.TITLES[0])
        yield DiskBoard(id="disks").titled(self.TITLES[1])
        yield KeyBar(id="keys")

    def names(self) -> list[str]:
        """The guests that there are, in the order of the list that this one was opened from."""
        raise NotImplementedError

    def found(self) -> Found | None:
        """What is known of the guest; None where it has ended."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Draw, and again when figures have come."""
        self.query_one(DiskBoard).focus()
        self.call_after_refresh(self._draw_shown)
        self.set_interval(_REDRAW_SECONDS, self._draw_newer)

    def on_resize(self) -> None:
        """Another size has other lines."""
        super().on_resize()
        self.call_after_refresh(self._draw_shown)

    def _draw_newer(self) -> None:
        if self._history().version != self._drawn:
            self._draw_shown()

    def draw(self) -> None:
        """Draw the newest figures; of a guest that has ended, those that were there."""
        self._drawn = self._history().version
        charts, found = self.query_one(DomainCharts), self.found()
        if found is None:
            self.query_one("#who", TextBoard).show([[(f" {self._name} has ended", "warning")]])
        else:
            panels = tuple((chart,) for chart in found.charts)
            if panels != charts.panels:
                charts.panels = panels
                charts.repaint()
            for name, lines in (("#who", found.who), ("#disks", found.below)):
                board = self.query_one(name, TextBoard)
                board.styles.height = len(lines) + board.gutter.height
                board.show(lines)
        charts.show(Charted(self._history()))

    def action_other(self, step: int) -> None:
        """The guest before or after this one, in the order of the list."""
        names = self.names()
        if self._name in names and len(names) > 1:
            self._name = names[(names.index(self._name) + step) % len(names)]
            self.draw()
        else:
            self.notify("there is no other guest")


class DomainScreen(OneGuestScreen):
    """One of the host's own guests."""

    TITLES = ("Domain", "Disks")

    def __init__(self, name: str, history: Callable[[], History], states: Callable[[], list[DomainState]]) -> None:
        """`states` gives the guests by the newest figures, in the order of the list."""
        super().__init__(name, history)
        self._states = states

    def names(self) -> list[str]:
        """The host's own guests."""
        return [state.domain.name for state in self._states()]

    def found(self) -> Found | None:
        """Who it is, what it takes, and its disks."""
        state = next((state for state in self._states() if state.domain.name == self._name), None)
        if state is None:
            return None
        has_requests = state.figures["domain_disk_await_ms"] == state.figures["domain_disk_await_ms"]
        charts = domain_charts(state.domain, has_requests=has_requests)
        return Found(_who(state, self.size.width), charts, _disks(state, self.size.width))


def _who(state: DomainState, width: int) -> list[Line]:
    domain = state.domain
    known = [
        f"{domain.vcpus} vCPU{'s' * (domain.vcpus != 1)}" if domain.vcpus else "",
        format_bytes(domain.memory_bytes) if domain.memory_bytes else "",
        domain.accelerator,
        "by libvirt" if domain.source == "libvirt" else "QEMU without libvirt",
        f"process {domain.pid}" if domain.pid else "",
    ]
    take = f"takes {state.take.words}" if state.take is not None else "takes nothing"
    lines: list[Line] = [
        [(f" {domain.name}  ", "title"), (", ".join(filter(None, known)), "plain")],
        [(f" {take}", "plain")],
    ]
    tone = "bad" if state.take is not None and state.take.is_short else "warning"
    lines += [[(f" at its limit: {limit.words}"[:width], tone)] for limit in state.limits]
    return lines


def _disks(state: DomainState, width: int) -> list[Line]:
    name = max([width_of(disk.target) for disk in state.domain.disks], default=0) + 1
    lines: list[Line] = [
        [(f" {'disk':<{name}} {'cache':<22} {'format':<8}   MB/s   req/s await ms  queue  file", "quiet")]
    ]
    for disk in state.domain.disks:
        get = state.disks[disk.target].__getitem__
        moved = get("domain_disk_read_bytes_per_second") + get("domain_disk_write_bytes_per_second")
        requests = get("domain_disk_reads_per_second") + get("domain_disk_writes_per_second")
        await_ms, queue = get("domain_disk_await_ms"), get("domain_disk_queue_depth")
        proof = {True: " O_DIRECT", False: "", None: ""}[disk.o_direct]
        numbers = f"{short(moved / 1e6):>7} {short(requests):>7} {short(await_ms):>8} {short(queue):>6}"
        where = f"{disk.file}{f' on {disk.holder}' if disk.holder else ''}"
        lines.append(
            [
                (f" {left(disk.target, name)} ", "accent"),
                (f"{exactly(disk.cache_words + proof, 22)} ", "two"),
                (f"{exactly(disk.format, 8)}{numbers}  ", "plain"),
                (ends_of(where, width - name - 66), "quiet"),
            ]
        )
    return lines
