"""Choices in rows: up and down choose the row, left and right the value, Space takes a value in or out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from vmlab.model.axes import axis_word
from vmlab.model.run import AxisValue
from vmlab.system.text_width import left, width_of
from vmlab.tui.state.choices import Choice
from vmlab.tui.widgets.painted import Line, Painted, Piece

_NAME_WIDTH = 10
_EMPTY = "there is nothing to choose"


class ChoiceForm(Painted, inherit_bindings=False):
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
        """The user chose or removed a value; the row is now `choice`."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices: Sequence[Choice] = ()
        self._row = 0
        self._column = 0

    def show(self, choices: Sequence[Choice]) -> None:
        """Draw `choices`; the cursor keeps its value, or goes to the first chosen one of its row or of the first."""
        before = self._choices[self._row] if self._choices else None
        value = self._values[self._column] if before is not None else None
        self._choices = choices
        names = [choice.name for choice in choices]
        known = before is not None and before.name in names
        self._row = names.index(before.name) if before is not None and known else 0
        if known and value in self._values:
            self._column = self._values.index(value)
        else:
            self._to_chosen()
        self.repaint()

    def _to_chosen(self) -> None:
        """Put the cursor on the first value of its row that is chosen."""
        if self._choices:
            choice = self._choices[self._row]
            self._column = choice.values.index(choice.chosen[0]) if choice.chosen[0] in choice.values else 0

    @property
    def _values(self) -> Sequence[AxisValue]:
        return self._choices[self._row].values if self._choices else ()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """A row for each choice; values that do not fit go on below."""
        for row, column, count in self._spans(width):
            choice = self._choices[row]
            name = "" if column else choice.name
            line: list[Piece] = [(left(name, _NAME_WIDTH), "accent" if choice.touched else "plain")]
            for place in range(column, column + count):
                value = choice.values[place]
                chosen = value in choice.chosen
                word = axis_word(value)
                text = f"[{word}]" if chosen else f" {word} "
                here = self.has_focus and row == self._row and place == self._column
                line.append((text, "cursor" if here else "good" if chosen else "quiet"))
            yield line

    def _spans(self, width: int) -> Iterator[tuple[int, int, int]]:
        """For each line the row, its first value there and how many stand there."""
        for row, choice in enumerate(self._choices):
            begin, used = 0, _name_room(choice)
            for column, value in enumerate(choice.values):
                taken = _taken(value)
                if column > begin and used + taken > width:
                    yield row, begin, column - begin
                    begin, used = column, _NAME_WIDTH
                used += taken
            yield row, begin, len(choice.values) - begin

    def on_focus(self) -> None:
        """The cursor shows while the form has the focus."""
        self.repaint()

    def on_blur(self) -> None:
        """The cursor is hidden without the focus."""
        self.repaint()

    def action_row(self, step: int) -> None:
        """Another row."""
        if len(self._choices) < 2:
            self.notify("there is no other row" if self._choices else _EMPTY)
        else:
            self._row = (self._row + step) % len(self._choices)
            self._to_chosen()
            self.repaint()

    def action_value(self, step: int) -> None:
        """The value beside; at the end of the row the cursor stays, so that no key takes it to the other end."""
        place = max(0, min(self._column + step, len(self._values) - 1))
        if not self._choices:
            self.notify(_EMPTY)
        elif place == self._column:
            end = "first" if step < 0 else "last"
            self.notify(f"{self._choices[self._row].name}: this is the {end} value")
        else:
            self._column = place
            self.repaint()

    def action_choose(self) -> None:
        """Choose the value under the cursor, or remove it."""
        if self._choices:
            choice = self._choices[self._row]
            toggled = choice.toggled(choice.values[self._column])
            if toggled.chosen == choice.chosen:
                self.notify(f"{choice.name}: at least one value stays chosen" if choice.several else "this is chosen")
            else:
                self.post_message(self.Toggled(toggled))
        else:
            self.notify(_EMPTY)

    def on_click(self, event: Click) -> None:
        """Choose the value under the pointer."""
        spans, place = list(self._spans(self.size.width)), event.y - self.styles.gutter.top
        if not 0 <= place < len(spans):
            return
        self._row, first, count = spans[place]
        begin = _NAME_WIDTH if first else _name_room(self._choices[self._row])
        for column in range(first, first + count):
            end = begin + _taken(self._values[column])
            if begin <= event.x < end:
                self._column = column
                self.action_choose()
            begin = end
        self.repaint()


def _name_room(choice: Choice) -> int:
    return max(_NAME_WIDTH, width_of(choice.name))


def _taken(value: AxisValue) -> int:
    """Columns of a value with its brackets."""
    return len(axis_word(value)) + 2
