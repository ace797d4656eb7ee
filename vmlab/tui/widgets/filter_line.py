"""The line in which words are typed that a row must have, with how many rows do."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label


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

    def ask(self) -> None:
        """Have words typed."""
        self.display = True
        self.query_one(Input).focus()

    def settle(self) -> None:
        """The words are as they shall be."""
        self.display = bool(self.value)

    def clear(self) -> bool:
        """Forget the words; whether there were any, or they were being typed."""
        was = self.display
        self.query_one(Input).value = ""
        self.display = False
        return was

    def count(self, shown: int, known: int) -> None:
        """Say that `shown` of `known` rows have the words."""
        self.query_one(".count", Label).update(f"{shown} of {known}")


def has_words(text: str, wanted: str) -> bool:
    """Whether every word of `wanted` is in `text`, in capital letters or small ones."""
    return all(word in text.lower() for word in wanted.lower().split())
