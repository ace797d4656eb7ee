"""All keys of the screen that was open, from its bindings: the help cannot be out of date."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.markup import escape
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from vmlab.tui.contract import Explaining, Said, Saying
from vmlab.tui.widgets.glyphs import glyphs_for
from vmlab.tui.widgets.scrolling import SCROLL_KEYS, Scrolling

CLOSES = "Esc closes"


class HelpText(VerticalScroll, Scrolling, inherit_bindings=False):
    """The lines, which scroll up and down alone."""

    BINDINGS: ClassVar[list[BindingType]] = [*SCROLL_KEYS]


class HelpModal(ModalScreen[None], inherit_bindings=False):
    """Keys, what they do, and a longer explanation where there is one."""

    CSS_PATH = "../styles/help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "Close")]

    def __init__(self, about: Screen[Any]) -> None:
        super().__init__()
        self._lines = list(help_lines(about))

    def compose(self) -> ComposeResult:
        """One text that scrolls."""
        with HelpText(id="help"):
            yield Static("\n".join(self._lines), markup=False)

    def on_mount(self) -> None:
        """Arrows scroll at once; what is said stands in the lower edge, as the screen below is out of sight."""
        self.query_one(HelpText).focus()
        self._say(None)
        if isinstance(self.app, Saying):
            self.app.said_changed.subscribe(self, self._say)

    def _say(self, said: Said | None) -> None:
        self.query_one(HelpText).border_subtitle = CLOSES if said is None else escape(said.text)


def help_lines(screen: Screen[Any]) -> Iterator[str]:
    """The lines for the bindings that are active on `screen`, by what they belong to."""
    plain = glyphs_for().plain
    groups: dict[str, list[str]] = {}
    for node, binding, enabled, tooltip in screen.active_bindings.values():
        if not binding.description or binding.system:
            continue
        title = "Everywhere" if node is screen.app else "This screen" if node is screen else "The list or pane"
        key = binding.key_display or screen.app.get_key_display(binding)
        why = screen.why_not(binding.action.partition("(")[0]) if isinstance(screen, Explaining) else ""
        off = f" (not now: {why})" if why else "" if enabled else " (not now)"
        about = f": {tooltip}" if tooltip else ""
        line = f"  {key:<12} {binding.description}{about}{off}"
        groups.setdefault(title, []).append(line.encode("ascii", "replace").decode() if plain else line)
    for title, lines in groups.items():
        yield title
        yield from dict.fromkeys(lines)
        yield ""
    yield "Runs go on without the console; `vmlab attach` or `vmlab` finds them again."
