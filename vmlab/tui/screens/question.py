"""A question before something that cannot be undone: two answers, and the safe one is chosen already."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Label

from vmlab.model.visible import visible
from vmlab.tui.screens.base_screen import DismissedOnce
from vmlab.tui.widgets.glyphs import glyphs_for


class QuestionModal(DismissedOnce, ModalScreen[bool], inherit_bindings=False):
    """Returns True if confirmed and False otherwise; a single accidental key does nothing."""

    CSS_PATH = "../styles/question.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "No"),
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

    def action_answer(self, answer: bool) -> None:
        """Leave with an answer."""
        self.dismiss(answer)
