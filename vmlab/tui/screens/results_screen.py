"""The Results screen: the tables of a run as the command line prints them, and what was published beside them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from vmlab.tui.feed.run_tables import ResultText, results_of
from vmlab.tui.screens.base_screen import ConsoleScreen
from vmlab.tui.widgets.key_bar import KeyBar
from vmlab.tui.widgets.tables.result_board import ResultBoard


class ResultsScreen(ConsoleScreen):
    """One run's figures, laid out for the width of the terminal; it scrolls."""

    CSS_PATH = "../styles/results.tcss"
    COPIED = ("#results",)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Back", tooltip="Go back to the previous screen"),
        Binding("p", "published", "Published", tooltip="Show what was published beside this run, with claims; or back"),
    ]

    def __init__(self, store: Path) -> None:
        super().__init__()
        self.store = store
        self._results: ResultText | None = None
        self._published = False

    def compose(self) -> ComposeResult:
        """The text, the keys."""
        yield ResultBoard(id="results").titled("Results")
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the store; arrows scroll at once."""
        self.query_one(ResultBoard).focus()
        self.fetch(partial(results_of, self.store), self._told, group="results")

    def _told(self, results: ResultText) -> None:
        self._results = results
        self._draw()

    def _draw(self) -> None:
        if self._results is not None:
            self.query_one(ResultBoard).show(self._results.published if self._published else self._results.tables)

    def reason(self, action: str) -> str:
        """There is one text alone where nothing could be read, and none before."""
        if action != "published":
            return ""
        if self._results is None:
            return "the run is still being read"
        return "this is all that can be read of the run" if self._results.published == self._results.tables else ""

    def action_published(self) -> None:
        """The run's own tables, or the publication's with ours beside."""
        self._published = not self._published
        self._draw()
