"""What can be changed of a scenario before it starts, as choices in rows.

Up and down choose the row, left and right the value, Space takes a value in or out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from vmlab.model.axes import axis_word, axis_yaml
from vmlab.model.run import CACHE_MODES, AxisValue
from vmlab.model.scenarios.scenario import SIZES, Scenario
from vmlab.plan.terms import Overrides
from vmlab.system.text_width import left, width_of
from vmlab.tui.widgets.painted import Line, Painted, Piece

_MOST_OFFERED_TILES = 4
_SAFE_MODES = tuple(mode for mode in CACHE_MODES if mode != "unsafe")
_REPEATS = (1, 2, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to choose. `several` values may hold together, as on an axis, or just one, as of sizes.

    `touched` is False while the choice is the scenario's own.
    """

    name: str
    values: tuple[AxisValue, ...]
    chosen: tuple[AxisValue, ...]
    several: bool
    touched: bool = False

    def toggled(self, value: AxisValue) -> Choice:
        """With `value` chosen, or not chosen any more; one value always stays, and they keep their order."""
        if not self.several:
            return replace(self, chosen=(value,), touched=True)
        wanted = set(map(str, self.chosen)) ^ {str(value)}
        chosen = tuple(each for each in self.values if str(each) in wanted)
        return replace(self, chosen=chosen, touched=True) if chosen else self


def choices_of(written: Scenario, sized: Scenario, size: str) -> tuple[Choice, ...]:
    """The choices for a scenario as it is `written`, standing as it is at `size`."""
    sizes = tuple(each for each in SIZES if each == "full" or each in written.sizes)
    choices = [Choice("size", sizes, (size,), several=False)]
    for name, axis in sized.axes.items():
        own = tuple(axis.points) or (written.axes[name].values if name in written.axes else axis.values)
        choices.append(Choice(name, _offered(name, own, axis.values), axis.values, several=True))
    offered = tuple(sorted({*_REPEATS, sized.repeats}))
    return (*choices, Choice("repeats", offered, (sized.repeats,), several=False))


def proposed(
    choices: tuple[Choice, ...], repeats: int | None, axes: Mapping[str, Sequence[AxisValue]]
) -> tuple[Choice, ...]:
    """`choices` with so many repeats, and with the values of `axes`."""
    wanted = {name: tuple(values) for name, values in axes.items() if values}
    if repeats is not None:
        wanted["repeats"] = (repeats,)
    return tuple(_with(choice, wanted.get(choice.name, choice.chosen)) for choice in choices)


def _with(choice: Choice, chosen: tuple[AxisValue, ...]) -> Choice:
    if chosen == choice.chosen:
        return choice
    return replace(choice, values=tuple(dict.fromkeys((*choice.values, *chosen))), chosen=chosen, touched=True)


def _offered(name: str, *own: tuple[AxisValue, ...]) -> tuple[AxisValue, ...]:
    more: tuple[AxisValue, ...] = ()
    if name == "tiles":
        more = tuple(range(1, _MOST_OFFERED_TILES + 1))
    elif name == "cache":
        more = _SAFE_MODES
    values = dict.fromkeys(value for each in (*own, more) for value in each)
    return tuple(sorted(values, key=int)) if name == "tiles" else tuple(values)


def overrides_of(choices: tuple[Choice, ...]) -> Overrides:
    """The overrides that the same choices give on the command line."""
    chosen = {choice.name: choice.chosen for choice in choices if choice.touched or choice.name == "size"}
    size, repeats, tiles, cache = (chosen.pop(name, ()) for name in ("size", "repeats", "tiles", "cache"))
    return Overrides(
        size=str(size[0]) if size else "demo",
        repeats=int(repeats[0]) if repeats else None,
        tiles=tuple(map(int, tiles)) or None,
        cache=tuple(map(str, cache)) or None,  # type: ignore[arg-type]
        sets=tuple(f"axes.{name}={axis_yaml(values)}" for name, values in chosen.items()),
    )


_NAME_WIDTH = 10
_EMPTY = "there is nothing to choose"


class ChoiceForm(Painted, inherit_bindings=False):
    """Chosen values stand in brackets; the cursor is on one value."""

    can_focus = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "row(-1)", "Row up", show=False, tooltip="Go to the choice above"),
        Binding("down,j", "row(1)", "Row down", show=False, tooltip="Go to the choice below"),
        Binding("left,h", "value(-1)", "Value", key_display="←→", tooltip="The value to the left or right"),
        Binding("right,l", "value(1)", show=False),
        Binding("space,enter", "choose", "Choose", tooltip="Take this value, or take it out"),
    ]

    @dataclass(eq=False)
    class Toggled(Message):
        """The user chose or removed a value; the row is now `choice`."""

        choice: Choice

    _choices: Sequence[Choice] = ()
    _row = 0
    _column = 0

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
