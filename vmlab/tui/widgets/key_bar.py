"""The bottom line: the keys that apply now, help and quit always in sight."""

from __future__ import annotations

from collections.abc import Iterable

from textual.events import Click

from vmlab.tui.widgets.painted import Line, Painted, Piece

_LAST = ("help", "quit")


class KeyBar(Painted):
    """Keys from the active bindings of the screen, greyed where they do not apply; a click presses them."""

    def on_mount(self) -> None:
        """Follow the bindings of the screen."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.repaint())
        self._actions: list[tuple[int, int, str]] = []

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """One line; keys that have no room are in the help."""
        # A binding of several keys is there once for each of them.
        every = self.screen.active_bindings.values()
        shown = list({active.binding.action: active for active in every if active.binding.show}.values())
        ends = [active for active in shown if active.binding.action in _LAST]
        room = width - sum(len(active.binding.description) + 4 for active in ends)
        line: list[Piece] = []
        used = 0
        self._actions = []
        for active in [*(one for one in shown if one not in ends), *ends]:
            binding = active.binding
            key = binding.key_display or self.app.get_key_display(binding)
            text = f" {binding.description} "
            length = len(key) + len(text) + 1
            if used + length > (width + 1 if active in ends else room):
                continue
            line += [
                (f" {key}", "accent" if active.enabled else "quiet"),
                (text, "plain" if active.enabled else "quiet"),
            ]
            self._actions.append((used, used + length, binding.action if active.enabled else ""))
            used += length
        return [line]

    async def on_click(self, event: Click) -> None:
        """Press the key under the pointer."""
        for begin, end, action in self._actions:
            if begin <= event.x < end and action:
                await self.screen.run_action(action)
                return
