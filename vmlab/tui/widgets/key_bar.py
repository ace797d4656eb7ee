"""The bottom lines: what the console has to say, or else the keys; screens, help and quit stay in sight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from textual.events import Click

from vmlab.system.text_width import width_of, wrapped
from vmlab.tui.console_requests import console_of
from vmlab.tui.widgets.painted import Line, Painted, Piece

if TYPE_CHECKING:
    from vmlab.tui.screens.base_screen import ConsoleScreen

_LAST = ("help", "quit")
_TABS = "switch_mode"
_MOST_LINES = 4


class KeyBar(Painted):
    """Keys from the active bindings, greyed where they do not apply, the screen's own lit; a click presses them."""

    _actions: Sequence[tuple[int, int, str]] = ()
    """First column, column behind the last, and the action of each key that is drawn."""

    def on_mount(self) -> None:
        """Follow the bindings of the screen."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.repaint())
        console_of(self).said_changed.subscribe(self, lambda _: self._say())

    def _say(self) -> None:
        """Be as high as what is said; then it is drawn."""
        self.styles.height = max(1, len(self._said(self.size.width)))
        self.repaint()

    def _said(self, width: int) -> list[Line]:
        said = console_of(self).said
        if said is None or not width:
            return []
        return [[(f" {text}", said.tone)] for text in wrapped(said.text, max(20, width - 2))[:_MOST_LINES]]

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """What is said, or one line of keys; those that have no room are in the help."""
        return self._said(width) or self._keys(width)

    def _keys(self, width: int) -> list[Line]:
        # A binding of several keys is there once for each of them.
        every = self.screen.active_bindings.values()
        shown = list({active.binding.action: active for active in every if active.binding.show}.values())
        last = (*_LAST, _TABS) if width >= cast("ConsoleScreen", self.screen).TABS_FROM else _LAST
        ends = [active for active in shown if active.binding.action.startswith(last)]
        room = width - sum(len(active.binding.description) + 4 for active in ends)
        line: list[Piece] = []
        used = 0
        actions: list[tuple[int, int, str]] = []
        for active in [*(one for one in shown if one not in ends), *ends]:
            binding = active.binding
            key = binding.key_display or self.app.get_key_display(binding)
            text = f" {binding.description} "
            length = len(key) + width_of(text) + 1
            if used + length > (width + 1 if active in ends else room):
                continue
            off, here = self._is_off(binding.action), binding.action == f"{_TABS}('{self.app.current_mode}')"
            line += [(f" {key}", "cursor" if here else "quiet" if off else "accent")]
            line += [(text, "cursor" if here else "quiet" if off else "plain")]
            actions.append((used, used + length, binding.action))
            used += length
        self._actions = actions
        return [line]

    def _is_off(self, action: str) -> bool:
        return bool(cast("ConsoleScreen", self.screen).why_not(action.partition("(")[0]))

    async def on_click(self, event: Click) -> None:
        """Press the key under the pointer; where something is said, take it away."""
        console = console_of(self)
        if console.said is not None:
            console.say_nothing()
            return
        for begin, end, action in self._actions:
            if begin <= event.x < end and action:
                await self.screen.run_action(action)
                return
