"""Values of a choice that do not fit on one line go on below, and can be chosen there."""

from __future__ import annotations

from textual import on
from textual.app import App, ComposeResult

from tests.waiting import until
from vmlab.tui.widgets.tables.choice_form import Choice, ChoiceForm

NAMES = ("host", "none-1q", "none-4q", "writeback-4q", "windows")


class Form(App[None]):
    """A form alone, which keeps what was chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.toggled: list[Choice] = []

    def compose(self) -> ComposeResult:
        """The form."""
        yield ChoiceForm(id="form")

    @on(ChoiceForm.Toggled)
    def _toggled(self, message: ChoiceForm.Toggled) -> None:
        self.toggled.append(message.choice)


async def test_many_points_are_all_in_sight_and_can_be_clicked() -> None:
    app = Form()
    async with app.run_test(size=(40, 10)) as pilot:
        form = app.query_one(ChoiceForm)
        form.show(
            [
                Choice("setup", NAMES, NAMES, several=True),
                Choice("host.read_ahead", ("128 KiB", "4 MiB"), ("4 MiB",), several=True),
            ]
        )
        await pilot.pause()
        assert form.text().splitlines() == [
            "setup     [host][none-1q][none-4q]",
            "          [writeback-4q][windows]",
            "host.read_ahead 128 KiB [4 MiB]",
        ]
        await pilot.click(form, offset=(26, 1))
        await until(lambda: [choice.chosen for choice in app.toggled] == [NAMES[:-1]], "the first")
        await pilot.click(form, offset=(17, 2))
        await until(lambda: app.toggled[-1].chosen == ("128 KiB", "4 MiB"), "the second")


async def test_the_cursor_begins_on_what_is_chosen_and_stops_at_the_ends() -> None:
    app = Form()
    async with app.run_test(size=(60, 10)) as pilot:
        form = app.query_one(ChoiceForm)
        form.focus()
        form.show([Choice("size", ("smoke", "demo", "full"), ("full",), several=False)])
        await pilot.press("left", "space")
        await until(lambda: [choice.chosen for choice in app.toggled] == [("demo",)], "the one before")
        await pilot.press("left", "left", "left", "space")
        await until(lambda: [choice.chosen for choice in app.toggled] == [("demo",), ("smoke",)], "the first")
