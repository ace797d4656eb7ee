"""Choices in rows: up and down choose the row, left and right the value, Space takes a value in or out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from vmlab.tui.state.choices import Choice
from vmlab.tui.widgets.painted import Line, Painted, Piece

_NAME_WIDTH = 10


class ChoiceForm(Painted):
    """Chosen values stand in brackets; the cursor is on one value."""

    can_focus = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "row(-1)", "Row up", show=False),
        Binding("down,j", "row(1)", "Row down", show=False),
        Binding("left,h", "value(-1)", "Value", key_display="←→", tooltip="The value to the left or right"),
        Binding("right,l", "value(1)", "Value", show=False),
        Binding("space,enter", "choose", "Choose", tooltip="Take this value, or take it out"),
    ]

    class Toggled(Message):
        """Somebody chose, or took out, a value of the row numbered `row`."""

        def __init__(self, row: int, choice: Choice) -> None:
            super().__init__()
            self.row = row
            self.choice = choice

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices: Sequence[Choice] = ()
        self._row = 0
        self._column = 0

    def show(self, choices: Sequence[Choice]) -> None:
        """Draw `choices`; the cursor stays where it can."""
        self._choices = choices
        self._row = min(self._row, max(0, len(choices) - 1))
        self._column = min(self._column, max(0, len(self._values) - 1))
        self.repaint()

    @property
    def _values(self) -> Sequence[object]:
        return self._choices[self._row].values if self._choices else ()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """A row for each choice."""
        for place, choice in enumerate(self._choices):
            line: list[Piece] = [(choice.name.ljust(_NAME_WIDTH), "accent" if choice.touched else "plain")]
            for column, value in enumerate(choice.values):
                chosen = value in choice.chosen
                text = f"[{value}]" if chosen else f" {value} "
                here = self.has_focus and place == self._row and column == self._column
                line.append((text, "cursor" if here else "good" if chosen else "quiet"))
            yield line

    def on_focus(self) -> None:
        """The cursor shows while the form has the focus."""
        self.repaint()

    def on_blur(self) -> None:
        """And goes with it."""
        self.repaint()

    def action_row(self, step: int) -> None:
        """Another row."""
        if self._choices:
            self._row = (self._row + step) % len(self._choices)
            self._column = min(self._column, len(self._values) - 1)
            self.repaint()

    def action_value(self, step: int) -> None:
        """Another value of this row."""
        if self._choices:
            self._column = (self._column + step) % len(self._values)
            self.repaint()

    def action_choose(self) -> None:
        """Take the value under the cursor, or take it out."""
        if self._choices:
            choice = self._choices[self._row]
            self.post_message(self.Toggled(self._row, choice.toggled(choice.values[self._column])))

    def on_click(self, event: Click) -> None:
        """Choose the value under the pointer."""
        if event.y >= len(self._choices):
            return
        self._row, begin = event.y, _NAME_WIDTH
        for column, value in enumerate(self._values):
            end = begin + len(str(value)) + 2
            if begin <= event.x < end:
                self._column = column
                self.action_choose()
            begin = end
        self.repaint()
