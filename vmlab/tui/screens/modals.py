"""What lies over a screen: its keys, from its bindings so that they cannot be out of date, and a question."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.containers import Horizontal, Vertical
from textual.css.query import NoMatches
from textual.markup import escape
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Label

from vmlab.model.grouping import grouped
from vmlab.model.visible import visible
from vmlab.system.text_width import exactly, wrapped
from vmlab.tui.console_requests import Said, console_of
from vmlab.tui.screens.base_screen import CHANGING, WATCHES, ConsoleScreen, DismissedOnce
from vmlab.tui.widgets.glyphs import glyphs_for
from vmlab.tui.widgets.painted import Line, Painted, line_width

CLOSES = "Esc closes"
SCROLLS = "arrows scroll, "
"""Before `CLOSES` where not all keys are in sight."""
NOT_NOW = "Not now: "
"""Before the reason why keys do nothing at present, over these keys."""
LAST = "Runs go on without the console; `vmlab attach` or `vmlab` finds them again."
_GROUPS = ("This screen", "The list or pane", "Everywhere")
_KEYS, _GAP = 10, 2
"""Columns of the keys of an action, and between the two halves."""
_UNEVEN = 3
"""Rows by which one column may be higher than half of all, so that no group falls into both."""


class ListedKey(NamedTuple):
    """An action of a screen by its keys. `why` is the reason why it is not possible now, if it is not."""

    group: str
    keys: str
    description: str
    tooltip: str
    action: str
    why: str

    def text(self, width: int) -> list[str]:
        """What it does, on as many lines as it takes."""
        return wrapped(f"{self.description}: {self.tooltip}" if self.tooltip else self.description, max(10, width))


def listed_keys(screen: Screen[Any]) -> list[ListedKey]:
    """The bindings that are active on `screen`, one for each action; those that are not possible now are the last.

    What this console never does is left out.
    """
    found: dict[tuple[str, str], ListedKey] = {}
    active, get_key = screen.active_bindings.values(), screen.app.get_key_display
    alone = {binding.key_display or get_key(binding) for _, binding, _, _ in active if binding.description}
    for node, binding, _, tooltip in active:
        name = binding.action.partition("(")[0]
        if not binding.description or binding.system or console_of(screen).forbids(name):
            continue
        group = _GROUPS[2 if node is screen.app else 0 if node is screen else 1]
        key = _of_its_own(binding.key_display, alone) if binding.key_display else get_key(binding)
        why = screen.why_not(name) if isinstance(screen, ConsoleScreen) else ""
        before = found.get((binding.action, binding.description))
        if before is None:
            listed = ListedKey(group, key, binding.description, tooltip, binding.action, why)
        else:
            keys = before.keys.split()
            listed = before._replace(keys=before.keys if key in keys else " ".join([*keys, key]))
        found[binding.action, binding.description] = listed
    return sorted(found.values(), key=lambda one: (bool(one.why), _GROUPS.index(one.group)))


def _of_its_own(shown: str, alone: Collection[str]) -> str:
    """A key as the key bar shows it; of two signs such as ``+-`` the one that is not in the list by itself."""
    own = [sign for sign in shown if sign not in alone]
    return own[0] if len(shown) == 2 and len(own) == 1 else shown


class HelpText(Painted):
    """Keys and what they do, in two columns where there is room, else in one that scrolls."""

    can_focus = True

    def __init__(self, keys: Sequence[ListedKey], last: str = LAST, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._listed, self._last = keys, last

    def get_content_height(self, container: Any, viewport: Any, width: int) -> int:
        """As many rows as it takes, so that the edge lies around no empty ones."""
        return len(help_lines(self._listed, width, viewport.height - 2, self._last))

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The lines."""
        return help_lines(self._listed, width, self.screen.size.height - 2, self._last)


def help_lines(keys: Sequence[ListedKey], width: int, height: int, last: str = LAST) -> list[Line]:
    """All keys on `width` columns: in two columns where these have at most `height` rows, else in one.

    `last` is the sentence below them.
    """
    half = (width - 1 - _GAP) // 2
    left, right = _halves(_in_one(keys, half))
    pairs = itertools.zip_longest(left, right, fillvalue=())
    lines: list[Line] = [[*one, (" " * (half + _GAP - line_width(one)), "plain"), *other] for one, other in pairs]
    below: list[Line] = [[], *([(text, "quiet")] for text in wrapped(last, max(10, width - 1)))]
    return [*(lines if len(lines) + len(below) <= height else _in_one(keys, width - 1)), *below]


def _halves(lines: Sequence[Line]) -> tuple[Sequence[Line], Sequence[Line]]:
    """The lines as two columns: between two groups where they are about as high then, else in the middle."""
    middle = (len(lines) + 1) // 2
    between = min((place for place, line in enumerate(lines) if not line), key=lambda at: abs(at - middle), default=0)
    if abs(between - middle) <= _UNEVEN:
        return lines[:between], lines[between + 1 :]
    # A title does not stand apart from its keys.
    while lines[middle - 1][0][1] == "title":
        middle += 1
    return lines[:middle], lines[middle:]


def _in_one(keys: Sequence[ListedKey], width: int) -> list[Line]:
    lines: list[Line] = []
    titles = grouped((NOT_NOW + one.why if one.why else one.group, one) for one in keys)
    for title, own in titles.items():
        lines += [[]] if lines else []
        lines += [[(text, "title")] for text in wrapped(title, max(10, width))]
        for one in own:
            first, *others = one.text(width - _KEYS)
            tone = "quiet" if one.why else "plain"
            lines.append([(exactly(one.keys, _KEYS - 1) + " ", "quiet" if one.why else "accent"), (first, tone)])
            lines += [[(" " * _KEYS, "plain"), (text, tone)] for text in others]
    return lines


class HelpModal(DismissedOnce, ModalScreen[None], inherit_bindings=False):
    """Keys, what they do, and a longer explanation where there is room."""

    CSS_PATH = "../styles/help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "Close")]

    def __init__(self, about: Screen[Any]) -> None:
        super().__init__()
        self._listed = listed_keys(about)
        only_watches = any(map(console_of(about).forbids, CHANGING))
        self._last = f"{WATCHES[0].upper()}{WATCHES[1:]}." if only_watches else LAST

    def compose(self) -> ComposeResult:
        """One text that scrolls."""
        yield HelpText(self._listed, self._last, id="help")

    def on_mount(self) -> None:
        """Arrows scroll at once; what is said stands in the lower edge, as the screen below is out of sight."""
        self.set_class(glyphs_for().plain, "-plain")
        self.query_one(HelpText).focus()
        self.call_after_refresh(self._say, console_of(self).said)
        console_of(self).said_changed.subscribe(self, self._say)

    def _say(self, said: Said | None) -> None:
        # One that is dismissed before it was drawn has no text any more.
        for text in self.query(HelpText):
            closes = f"{SCROLLS}{CLOSES}" if text.max_scroll_y else CLOSES
            text.border_subtitle = closes if said is None else escape(said.text)


class Palette(DismissedOnce, CommandPalette):
    """Everything that can be done, by name: Textual's own, for keys that come faster than it is laid out."""

    def _action_command_list(self, action: str) -> None:
        """Where the list is not there yet, there is nothing to move in."""
        with suppress(KeyError, NoMatches):
            super()._action_command_list(action)


class QuestionModal(DismissedOnce, ModalScreen[bool], inherit_bindings=False):
    """Returns True if confirmed and False otherwise; a single accidental key does nothing."""

    CSS_PATH = "../styles/question.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", "No"),
        Binding("tab,shift+tab,left,right,h,l", "app.focus_next", "Other answer", show=False),
    ]

    def __init__(self, question: str, deed: str, keep: str) -> None:
        super().__init__()
        self._question = question
        self._deed = deed
        self._keep = keep

    def compose(self) -> ComposeResult:
        """The question and two buttons."""
        with Vertical(id="question"):
            yield Label(visible(self._question), markup=False)
            with Horizontal():
                yield Button(self._keep, id="keep", variant="primary", compact=True)
                yield Button(self._deed, id="deed", variant="error", compact=True)

    def on_mount(self) -> None:
        """The safe answer has the focus."""
        self.set_class(glyphs_for().plain, "-plain")
        self.query_one("#keep").focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "deed")
