"""Moving by keys: where nothing lies further on, that is said."""

from __future__ import annotations

from collections.abc import Callable

from textual.binding import Binding
from textual.widget import Widget

SCROLL_KEYS = (
    Binding("up,k", "scroll_up", "Line up", show=False),
    Binding("down,j", "scroll_down", "Line down", show=False),
    Binding("pageup", "page_up", "Page up", show=False),
    Binding("pagedown", "page_down", "Page down", show=False),
    Binding("home,g", "scroll_home", "First line", show=False),
    Binding("end,G", "scroll_end", "Last line", show=False),
)


class Scrolling(Widget):
    """Textual's actions of a pane that scrolls up and down; for classes that bind `SCROLL_KEYS`."""

    def action_scroll_up(self) -> None:
        """A line up."""
        self._scrolled(-1, self.scroll_up)

    def action_scroll_down(self) -> None:
        """A line down."""
        self._scrolled(1, self.scroll_down)

    def action_page_up(self) -> None:
        """A page up."""
        self._scrolled(-1, self.scroll_page_up)

    def action_page_down(self) -> None:
        """A page down."""
        self._scrolled(1, self.scroll_page_down)

    def action_scroll_home(self) -> None:
        """To the first line."""
        self._scrolled(-1, self.scroll_home)

    def action_scroll_end(self) -> None:
        """To the last line, at once: what glides there would arrive where the end was."""
        self._scrolled(1, lambda: self.scroll_end(animate=False, immediate=True))

    def _scrolled(self, step: int, scroll: Callable[[], None]) -> None:
        most = self.max_scroll_y
        if most <= 0:
            self.notify("all of it is in sight")
        elif step < 0 and self.scroll_target_y <= 0:
            self.notify("this is the beginning")
        elif step > 0 and self.scroll_target_y >= most:
            self.notify("this is the end")
        else:
            scroll()
