"""What all screens share: keys, of which each that does nothing says why, reading in threads, and kept grounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import get_current_worker

from vmlab.model.errors import VmlabError
from vmlab.system.text_width import wrapped
from vmlab.tui.console_requests import console_of
from vmlab.tui.widgets.glyphs import glyphs_for
from vmlab.tui.widgets.painted import Line, Painted

if TYPE_CHECKING:
    from vmlab.tui.app import Console
    from vmlab.tui.widgets.charts.chart_board import ChartBoard

NOW = "Switch the running guests' cache mode now, writeback or none; invalidates this cell"
KSM_NOW = "Switch the host's KSM now, on or off; invalidates this cell"
TILE_NOW = "In a loop, add a tile while the others work; invalidates this cell"
TILE_AWAY = "In a loop, retire the newest tile when its rounds have ended"
FEWER = "Cells to come: one tile fewer"
NEXT_HOST = "In a fleet, show the next or previous host in full"

RUN_KEYS = (
    Binding("b", "switch_cache", "Cache", key_display="bB", tooltip="Cells to come: cache writeback or none"),
    Binding("B", "switch_cache_now", "Cache now", show=False, tooltip=NOW),
    Binding("K", "switch_ksm_now", "KSM now", show=False, tooltip=KSM_NOW),
    Binding("plus,equals_sign", "change_tiles(1)", "Tiles", key_display="+-", tooltip="Cells to come: one tile more"),
    Binding("minus", "change_tiles(-1)", "Fewer tiles", key_display="-", show=False, tooltip=FEWER),
    Binding("e", "edit_coming", "Coming", tooltip="List the cells to come, to change, skip or put back each"),
    Binding("u", "as_planned", "As planned", show=False, tooltip="Cells to come: undo all changes"),
    Binding("greater_than_sign", "change_tiles_now(1)", "Tile now", key_display="<>", show=False, tooltip=TILE_NOW),
    Binding("less_than_sign", "change_tiles_now(-1)", "Tile away", key_display="<", show=False, tooltip=TILE_AWAY),
    Binding("E", "end_loop", "End the loop", show=False, tooltip="In a loop, let no workload start again"),
    Binding("X", "stop_run", "Stop", tooltip="Ask whether to stop the run that is shown"),
)
"""Live obeys these, and a replay says why it cannot."""
OF_A_RUN = frozenset(binding.action.partition("(")[0] for binding in RUN_KEYS)
CHANGING = OF_A_RUN | {"file", "picture", "start", "stop"}
"""The actions that start, change or stop a run, open a file by its path, or write one."""
WATCHES = "this console only watches; `vmlab serve --control` serves one that changes runs"
HOST_KEYS = (
    Binding("f", "next_host(1)", "Next host", show=False, key_display="fF", tooltip=NEXT_HOST),
    Binding("F", "next_host(-1)", show=False),
)
SPAN_KEY = Binding("z", "span", "Hour", show=False, tooltip="Draw charts over an hour, or over the newest ticks again")


def refused_keys(action: str) -> Iterator[Binding]:
    """The keys of `RUN_KEYS`, out of sight and for `action`, for a screen on which there is nothing to change."""
    for binding in RUN_KEYS:
        # A replay has those for a tile now for its speed.
        if "change_tiles_now" not in binding.action:
            yield Binding(binding.key, action, binding.description, show=False, tooltip=binding.tooltip)


Found = TypeVar("Found")
SMALLEST = (60, 16)
"""Columns and rows below which a screen would be cut to what misleads."""


class KeptLines(Widget):
    """A ground that others lie on: Textual asks for its lines with each picture.

    It renders them again only after it was refreshed, or for another size.
    """

    _lines: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of the last time, where nothing has changed."""
        if self._lines is None or self._lines[0] != crop:
            self._lines = crop, super().render_lines(crop)
        return self._lines[1]

    def refresh(self, *regions: Region, **how: Any) -> Self:
        """Textual's own; what was kept is no longer right."""
        self._lines = None
        return super().refresh(*regions, **how)

    def notify_style_update(self) -> None:
        """A new theme has new colours."""
        self._lines = None
        super().notify_style_update()


class KeptContainer(KeptLines, Container):
    """A container whose ground is kept."""


class SureTimers:
    """Timers of an app or a screen that fire, however busy the machine is.

    The rule: nothing that is due once is lost. Textual passes over a tick that is late already when its timer begins,
    also where it is the only one: then a change of mode, a resize or a picture that is due would never be drawn.
    """

    def set_timer(self, *given: Any, **named: Any) -> Timer:
        """Textual's own, which passes over nothing; its task has not begun yet."""
        timer: Timer = super().set_timer(*given, **named)  # type: ignore[misc]
        timer._skip = False
        return timer


class DismissedOnce(SureTimers):
    """A screen that ends itself once: Textual's own would take the one below away at a second key of a burst.

    Goes before a class of screens, and is none itself: Textual takes styles from the first of such bases alone.
    """

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Textual's own, where this screen is the one that is shown."""
        shown: AwaitComplete = super().dismiss(result) if cast(Screen[Any], self).is_current else AwaitComplete()  # type: ignore[misc]
        return shown


class ConsoleScreen(KeptLines, DismissedOnce, Screen[None], inherit_bindings=False):
    """A screen with the console's own keys alone: Textual's would be in the help, and do nothing here."""

    COPIED: ClassVar[Sequence[str]] = ()
    """The panes with the screen's table, in order."""
    TABS_FROM: ClassVar[int] = 72
    """Columns from which on the screens of the console have their place among the keys before any other key."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "pane(1)", "Next pane", show=False, tooltip="Go to the next pane; arrows then move in it"),
        Binding("shift+tab", "pane(-1)", "Pane before", show=False, tooltip="Go to the previous pane"),
    ]

    def on_resize(self) -> None:
        """Where there is no room for any screen, one sentence says so, over all of it."""
        self.set_class(glyphs_for().plain, "-plain")
        width, height = self.app.size
        small = width < SMALLEST[0] or height < SMALLEST[1]
        over = self.query("TooSmall")
        if small and not over:
            self.mount_all([TooSmall()])
        elif over and not small:
            over.remove()

    @property
    def console(self) -> Console:
        """The console, for what concerns more than this screen."""
        return console_of(self)

    def draw(self) -> None:
        """Draw everything as it stands. For screens to do."""

    def _draw_shown(self) -> None:
        """Draw where it is shown: panes of a screen that is being removed go before the last of its messages come."""
        if self.is_current and self.is_attached:
            self.draw()

    def action_span(self) -> None:
        """Charts over all that is kept, or over the newest ticks again."""
        cast("ChartBoard", self.query_one("#charts")).switch_span()

    def on_screen_suspend(self) -> None:
        """What was said of this screen would hide the keys of the next one."""
        if self.console.said is not None and self.console.said.of_screen:
            self.console.say_nothing()

    def action_pane(self, step: int) -> None:
        """Give another pane the focus, so that keys move in it."""
        if self.focused is not None and len(self.focus_chain) < 2:
            self.notify("there is only this pane", severity="warning")
        elif step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def hand_over(self, receive: Callable[..., object], *found: Any, **named: Any) -> None:
        """Have a thread's work received in the console's own thread, unless this screen is being removed."""

        def received() -> None:
            if self.is_attached and self.display:
                receive(*found, **named)

        self.app.call_from_thread(received)

    def fetch(
        self,
        read: Callable[[], Found],
        receive: Callable[[Found], object],
        refused: Callable[[str], object] | None = None,
        *,
        group: str,
        exclusive: bool = True,
        title: str = "",
    ) -> None:
        """Have received in the console's thread what `read` finds in one of its own, as it may take a moment.

        Where that raises, `refused` is told why, or else it is said, under `title`. An `exclusive` one takes the place
        of those of its `group` that are under way.
        """

        def fetched() -> None:
            worker = get_current_worker()

            def unless_outdated(tell: Callable[[Any], object], what: Any) -> None:
                if not worker.is_cancelled:
                    tell(what)

            try:
                found = read()
            except VmlabError as error:
                tell = refused or partial(self.notify, title=title, severity="error")
                self.hand_over(unless_outdated, tell, str(error))
            else:
                self.hand_over(unless_outdated, receive, found)

        self.run_worker(fetched, thread=True, exclusive=exclusive, group=group)

    def why_not(self, action: str) -> str:
        """Why `action` does nothing now, as a sentence: this console never does it, or there is a `reason`."""
        return self.console.forbids(action) or self.reason(action)

    def reason(self, action: str) -> str:
        """Why `action` is not possible now, as a sentence; empty where it is. For screens to say."""
        return ""

    def table_text(self) -> str:
        """What `y` copies: those of `COPIED` that are in sight, as plain text."""
        return "".join(f"{one.text()}\n" for name in self.COPIED if (one := self.query_one(name, Painted)).display)

    def is_refused(self, action: str) -> bool:
        """Whether `action` is not possible now; then the reason is said."""
        why = self.why_not(action)
        if why:
            self.notify(why, severity="warning")
        return bool(why)


class TooSmall(Painted):
    """One sentence over the whole screen; it goes as soon as there is room."""

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The sentence on as many lines as it takes."""
        columns, rows = self.app.size
        needed = "the console needs {} and {}".format(*SMALLEST)
        sentence = f"This terminal has {columns} columns and {rows} rows; {needed}."
        return [[(line, "warning")] for line in wrapped(sentence, max(10, width))]
