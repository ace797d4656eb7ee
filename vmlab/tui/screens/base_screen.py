"""What all screens share: the keys between panes, and that a key which does nothing says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.screen import Screen

from vmlab.tui.contract import Limiting, Saying
from vmlab.tui.widgets.glyphs import glyphs_for
from vmlab.tui.widgets.kept import KeptLines

SMALLEST = (60, 16)
"""Columns and rows below which a screen would be cut to what misleads."""


class DismissedOnce:
    """A screen that ends itself once: Textual's own would take the one below away at a second key of a burst.

    Goes before a class of screens, and is none itself: Textual takes styles from the first of such bases alone.
    """

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Textual's own, where this screen is the one that is shown."""
        shown: AwaitComplete = super().dismiss(result) if cast(Screen[Any], self).is_current else AwaitComplete()  # type: ignore[misc]
        return shown


class ConsoleScreen(KeptLines, DismissedOnce, Screen[None], inherit_bindings=False):
    """A screen with the console's own keys alone: Textual's would be in the help, and do nothing here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "pane(1)", "Next pane", show=False, tooltip="To the next pane; arrows then move in it"),
        Binding("shift+tab", "pane(-1)", "Pane before", show=False),
    ]

    def on_resize(self) -> None:
        """Where there is no room for any screen, one sentence says so, over all of it."""
        self.set_class(glyphs_for().plain, "-plain")
        width, height = self.app.size
        small = width < SMALLEST[0] or height < SMALLEST[1]
        over = self.query("TooSmall")
        if small and not over:
            from vmlab.tui.widgets.too_small import TooSmall

            self.mount_all([TooSmall(SMALLEST)])
        elif over and not small:
            over.remove()

    @property
    def has_panes(self) -> bool:
        """Whether it is shown; the panes of a screen that is being removed go before the last of its messages come."""
        return self.is_current and self.is_attached

    def on_screen_suspend(self) -> None:
        """What was said of this screen would hide the keys of the next one."""
        if isinstance(self.app, Saying) and self.app.said is not None and self.app.said.of_screen:
            self.app.say_nothing()

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

    def why_not(self, action: str) -> str:
        """See `Explaining`: what this console may not do, or else what is not possible now."""
        forbidden = self.app.forbids(action) if isinstance(self.app, Limiting) else ""
        return forbidden or self.reason(action)

    def reason(self, action: str) -> str:
        """Why `action` is not possible now, as a sentence; empty where it is. For screens to say."""
        return ""

    def is_refused(self, action: str) -> bool:
        """Whether `action` is not possible now; then the reason is said."""
        why = self.why_not(action)
        if why:
            self.notify(why, severity="warning")
        return bool(why)
