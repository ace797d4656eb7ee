"""A screen with a list of which a filter leaves some rows: those that have all of the words that are typed."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label

from vmlab.tui.screens.base_screen import ConsoleScreen
from vmlab.tui.widgets.row_list import RowList


class FilterLine(Horizontal):
    """A prompt, the words, and ``14 of 17``; in sight while there are words, or they are being typed."""

    def __init__(self, placeholder: str) -> None:
        super().__init__()
        self._placeholder = placeholder

    def compose(self) -> ComposeResult:
        """Prompt, field, count."""
        yield Label("/", classes="prompt")
        yield Input(placeholder=self._placeholder, id="filter", compact=True)
        yield Label("", classes="count")

    def on_mount(self) -> None:
        """Nothing is filtered yet."""
        self.display = False

    @property
    def value(self) -> str:
        """The words."""
        return self.query_one(Input).value

    def count(self, shown: int, known: int) -> None:
        """Say that `shown` of `known` rows have the words."""
        self.query_one(".count", Label).update(f"{shown} of {known}")


class FilteredScreen(ConsoleScreen):
    """Has a `RowList` and a `FilterLine`; a subclass draws the rows that are left."""

    def draw_rows(self) -> None:
        """Draw the rows that have the words."""
        raise NotImplementedError

    def action_filter(self) -> None:
        """Type words; Enter goes back to the list."""
        line = self.query_one(FilterLine)
        line.display = True
        line.query_one(Input).focus()

    def action_clear(self) -> None:
        """Forget the filter; where there is none, what else there is to forget."""
        line = self.query_one(FilterLine)
        if line.display:
            line.query_one(Input).value = ""
            line.display = False
        else:
            self.forget()
        self.query_one(RowList).focus()
        self.draw_rows()

    def forget(self) -> None:
        """What is done where no filter is set."""
        self.notify("no filter is set")

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self.draw_rows()

    @on(Input.Submitted, "#filter")
    def _filter_done(self) -> None:
        line = self.query_one(FilterLine)
        line.display = bool(line.value)
        self.query_one(RowList).focus()
