"""The interface of the console for its screens; the console itself is in `app`, which loads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from vmlab.tui.feed.picks import Pick


class ConsoleCommands(Protocol):
    """Commands that concern more than one screen."""

    def open_run(self, folder: Path, *, live: bool) -> None:
        """Watch the run in `folder` when it lives, play it back when it is over."""
        ...

    def open_results(self, store: Path) -> None:
        """Show the tables of the run at `store`."""
        ...

    def compare(self, picks: Sequence[Pick]) -> None:
        """Set runs or cells side by side."""
        ...

    def ask_to_stop(self, folder: Path) -> None:
        """Ask the user, and then the run, to stop."""
        ...


@runtime_checkable
class Tabular(Protocol):
    """A screen whose table can be copied."""

    def table_text(self) -> str:
        """The whole table as plain text."""
        ...
