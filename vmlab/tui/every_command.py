"""The command palette: everything that can be done, by name."""

from __future__ import annotations

from contextlib import suppress

from textual.command import CommandPalette
from textual.css.query import NoMatches

from vmlab.tui.screens.base_screen import DismissedOnce


class Palette(DismissedOnce, CommandPalette):
    """Textual's own, for keys that come faster than it is laid out."""

    def _action_command_list(self, action: str) -> None:
        """Where the list is not there yet, there is nothing to move in."""
        with suppress(KeyError, NoMatches):
            super()._action_command_list(action)
