"""The Scenarios screen: choose one, see who loads whom, change it in place, see the plan, start it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Key
from textual.widgets import Input

from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.quantities import about_seconds
from vmlab.plan.terms import Overrides
from vmlab.system.text_width import ends_of, exactly, left, wrapped
from vmlab.tui.commands import start
from vmlab.tui.console_requests import Proposal
from vmlab.tui.feed.planner import Planned, grouped, own_file, planned, scenario_names, scenarios
from vmlab.tui.feed.run_facts import has_words
from vmlab.tui.screens.filtered_screen import FilteredScreen, FilterLine
from vmlab.tui.state.load_map import TOO_MUCH, load_map, plan_lines, published_lines
from vmlab.tui.widgets.key_bar import KeyBar
from vmlab.tui.widgets.painted import Line, Painted, Piece, TextBoard
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.choice_form import Choice, ChoiceForm, choices_of, overrides_of, proposed

_FIRST_SIZE = "demo"
_ROOMY = 36
"""Rows from which on the publication is shown."""
_MAP_SHARE = 0.55
"""Of the screen's rows, so many are for what was published and the map; the style sheet allows a few more."""
_FILTERED = ("no scenario has", "all of these words", "Esc clears them")


class ScenariosScreen(FilteredScreen):
    """Left the scenarios, right the chosen one: map, choices, plan."""

    CSS_PATH = "../styles/scenarios.tcss"
    COPIED = ("#map", "#choices", "#plan")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "pane(1)", "Next pane", tooltip="From the list to the choices and back"),
        Binding("s", "start", "Start", tooltip="Start the planned run; it goes on without the console"),
        Binding("slash", "filter", "Filter", key_display="/", tooltip="List only scenarios with all words you type"),
        Binding("escape", "clear", "Clear", show=False, tooltip="Remove the filter"),
        Binding("f", "file", "File…", tooltip="Open a scenario file of your own by its path"),
        Binding("r", "reset", "As written", tooltip="Undo all changes of this scenario"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._name: str | None = None
        self._summaries: dict[str, str] = {}
        self._choices: tuple[Choice, ...] = ()
        self._planned: Planned | None = None
        self._problem = ""
        self._hint = "Reading them …"
        self._proposal: Proposal | None = None
        self._starting = False
        self._is_planning = self._is_wanted = False

    def compose(self) -> ComposeResult:
        """List, map, choices, plan, keys."""
        with Container(id="halves"):
            yield RowList(id="names").titled("Scenarios")
            with Vertical(id="chosen"):
                yield TextBoard(id="map").titled("Chosen")
                yield ChoiceForm(id="choices").titled("Choices")
                yield TextBoard(id="plan").titled("What a run costs")
        yield FilterLine("words that a scenario's name or question must have")
        yield Input(placeholder="path of a scenario file; Esc leaves it", id="file", compact=True)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the scenarios in a thread."""
        self.query_one("#file", Input).display = False
        self.query_one(RowList).focus()
        self._read()

    @work(thread=True, group="scenarios")
    def _read(self) -> None:
        # Reading and checking them all takes a moment; their names are known at once.
        self.hand_over(self._listed, scenario_names())
        found = scenarios()
        self.hand_over(self._listed, found)

    def _listed(self, found: Sequence[tuple[str, str]]) -> None:
        self._summaries |= dict(found)
        self._hint = "none is shipped"
        self.draw_rows()

    def action_file(self) -> None:
        """Ask for the path of a file."""
        field = self.query_one("#file", Input)
        field.display = True
        field.focus()

    def on_key(self, event: Key) -> None:
        """Escape leaves the path."""
        if event.key == "escape" and self.query_one("#file", Input).has_focus:
            event.stop()
            self._leave_file()

    def _leave_file(self) -> None:
        field = self.query_one("#file", Input)
        field.value, field.display = "", False
        self.query_one(RowList).focus()

    @on(Input.Submitted, "#file")
    def _file_named(self, message: Input.Submitted) -> None:
        if message.value.strip():
            self.fetch(partial(own_file, message.value.strip()), self._opened, group="file", title="Not opened")
        else:
            self._leave_file()

    def _opened(self, found: tuple[str, str]) -> None:
        self._leave_file()
        self._listed([found])
        self.query_one(RowList).place(found[0])

    @on(RowList.Moved)
    def _moved(self, message: RowList.Moved) -> None:
        if message.key != self._name:
            self._name = message.key
            self._choices = ()
            self._plan_anew()

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.query_one(ChoiceForm).focus()

    @on(ChoiceForm.Toggled)
    def _toggled(self, message: ChoiceForm.Toggled) -> None:
        # Another size has other axes; what was changed for the old one does not carry over. Its rows stay until the
        # plan is there, so that keys pressed meanwhile choose in the row that they mean.
        keeps = message.choice.name != "size"
        self._choices = tuple(
            message.choice if choice.name == message.choice.name else replace(choice, touched=keeps and choice.touched)
            for choice in self._choices
        )
        self.query_one(ChoiceForm).show(self._choices)
        self._plan_anew()

    def propose(self, proposal: Proposal) -> None:
        """Plan a run as `proposal` has it."""
        self._name, self._choices, self._proposal = proposal.scenario, (), proposal
        self._listed([] if self._summaries else scenario_names())
        self._listed([] if proposal.scenario in self._summaries else [(proposal.scenario, "")])
        self.query_one(RowList).place(proposal.scenario)
        self.query_one(ChoiceForm).focus()
        self._plan_anew()

    def action_reset(self) -> None:
        """As the scenario is written, at its first size."""
        sizes = [choice.chosen for choice in self._choices if choice.name == "size"]
        if sizes in ([], [(_FIRST_SIZE,)]) and not any(choice.touched for choice in self._choices):
            self.notify("nothing was changed: the plan is as the scenario is written")
            return
        self._choices = ()
        self._plan_anew()

    def _plan_anew(self) -> None:
        """Make the plan of what is chosen now; until it is there, nothing can be started."""
        self._is_planning, self._is_wanted = True, False
        name, choices, before = self._name, self._choices, self._planned
        if name is None:
            return
        # It is kept until its plan is there: a list that is filled for the first time moves its cursor later.
        proposal = self._proposal if self._proposal is not None and self._proposal.scenario == name else None
        size = str(choices[0].chosen[0]) if choices else _FIRST_SIZE
        if proposal is None and (not choices or before is None or (before.name, before.plan.size) != (name, size)):
            changed = {choice.name: choice.chosen for choice in choices[1:] if choice.touched}
            repeats = changed.pop("repeats", None)
            proposal = Proposal(name, size, int(repeats[0]) if repeats else None, changed)
        self.fetch(partial(_plan_of, name, choices, proposal), self._plan_received, self._refused, group="plan")

    def _refused(self, problem: str) -> None:
        self._problem, self._is_planning, self._proposal = problem, False, None
        self.draw_rows()

    def _plan_received(self, found: tuple[Planned, tuple[Choice, ...]]) -> None:
        self._planned, self._choices = found
        self._problem = self._planned.refusal
        if self._proposal is not None and self._proposal.scenario == self._planned.name:
            self._proposal = None
        self._is_planning = False
        self.draw_rows()
        if self._is_wanted:
            self._is_wanted = False
            self.action_start()

    def on_resize(self) -> None:
        """The map depends on the width, and the headings on the height."""
        self.draw_rows()

    def _heading(self, part: Painted, tone: str) -> list[Piece]:
        """The title of a part for a line of it; empty where the screen is high enough for edges, which have it."""
        return [] if self.has_class("-tall") else [(f"{part.border_title}", tone)]

    def draw_rows(self) -> None:
        listed = self.query_one(RowList)
        room = max(8, listed.size.width - 2)
        line = self.query_one(FilterLine)
        wanted = [name for name, told in self._summaries.items() if has_words(f"{name} {told}", line.value)]
        groups = grouped(wanted)
        names: list[tuple[str, Line]] = [
            (name, [(f" {left(ends_of(_shown(name), room), room)}", "plain")])
            for _, members in groups
            for name in members
        ]
        # Each part has room in the narrow list.
        hint = _FILTERED if self._summaries else (self._hint,)
        listed.show(self._heading(listed, "quiet"), names, hint, {members[0]: title for title, members in groups})
        line.count(len(wanted), len(self._summaries))
        self.query_one(ChoiceForm).show(self._choices)
        chosen = self.query_one("#map", TextBoard)
        chosen.border_title = _shown(self._name or "")
        chosen.show(self._map_lines())
        self.query_one("#plan", TextBoard).show(list(self._plan_lines()))

    def _map_lines(self) -> list[Line]:
        board = self.query_one("#map", TextBoard)
        width = _text_width(board)
        made = self._planned if self._planned is not None and self._planned.name == self._name else None
        summary = made.file.scenario.summary if made else self._summaries.get(self._name or "", "")
        lines: list[Line] = [[(text, "title")] for text in wrapped(summary, width)]
        if made is not None:
            tiles = max((cell.tiles for cell in made.plan.cells), default=1)
            each = " (each of them)" if tiles > 1 else ""
            drawn: list[Line] = [[(f"Who loads whom in a tile{each}", "title")]]
            drawn += load_map(made.plan, width, plain=board.glyphs.plain)
            room = int(_MAP_SHARE * self.size.height) - len(lines) - len(drawn)
            lines += [*self._published(made, width, room), *drawn]
        return lines

    def _published(self, made: Planned, width: int, room: int) -> list[Line]:
        """What was published that this scenario measures again: its title alone where there is little room."""
        reference = made.file.scenario.reference
        if reference is None:
            return [[("nothing was published on it", "quiet")]]
        if self.size.height < _ROOMY:
            return [[(exactly(f"published: {reference.title}", width).rstrip(), "quiet")]]
        return list(published_lines(reference, width, room))

    def _plan_lines(self) -> list[Line]:
        width = _text_width(self.query_one("#plan", TextBoard))
        lines: list[Line] = []
        made = self._planned
        if made is not None:
            lines += filter(None, [self._heading(self.query_one("#plan", TextBoard), "title")])
            accelerator = "if KVM works" if made.host.accelerator_guess == "kvm" else "emulated (TCG)"
            lines.append([("time     ", "quiet"), (f"{about_seconds(made.plan.seconds)}, {accelerator}", "plain")])
            for label, text in plan_lines(made.plan, made.host):
                lines.append([(left(label, 9), "quiet"), (text, "bad" if TOO_MUCH in text else "plain")])
            lines += [[(text, "warning")] for note in made.plan.notes for text in wrapped(f"! {note}", width)]
        lines += [[(text, "bad")] for text in wrapped(self._problem, width)]
        if made is not None and not self._problem:
            forbidden = self.why_not("start")
            lines.append([(forbidden, "quiet") if forbidden else ("Press s to start it.", "good")])
            lines += [
                [
                    (f"{cell.index:>4} ", "quiet"),
                    (axes_words(cell.axes), "plain"),
                    (f", {repeat_words(cell.repeat)}", "quiet"),
                ]
                for cell in made.plan.cells
            ]
            lines += [[(text, "quiet")] for one in made.plan.absent for text in wrapped(f"   - {one}", width)]
        return lines

    def action_start(self) -> None:
        """Start what the plan says."""
        if self._is_planning:
            self._is_wanted = True
            self.notify("the plan of what you chose is still being made; it starts as soon as that is there")
        elif self._planned is None or self._problem:
            self.notify(self._problem or "choose a scenario first", title="Not started", severity="warning")
        elif not self._starting:
            self._starting = True
            self._start(self._planned)

    def _start(self, made: Planned) -> None:
        def started() -> Path:
            self.console.require_control()
            return start(made.file, made.overrides)

        self.fetch(started, self._started, self._not_started, group="start")

    def _not_started(self, problem: str) -> None:
        self._starting = False
        self.notify(problem, title="Not started", severity="error", timeout=10)

    def _started(self, folder: Path) -> None:
        self._starting = False
        self.notify(f"run {folder.name}", title="Started")
        self.console.open_run(folder, live=True)


def _plan_of(name: str, choices: tuple[Choice, ...], proposal: Proposal | None) -> tuple[Planned, tuple[Choice, ...]]:
    """The plan of a scenario with `choices`, or with those of a `proposal`, and these choices."""
    if proposal is None:
        return planned(name, overrides_of(choices)), choices
    made = planned(name, Overrides(size=proposal.size))
    choices = choices_of(made.file.scenario, made.plan.scenario, made.plan.size)
    choices = proposed(choices, proposal.repeats, proposal.axes)
    return planned(name, overrides_of(choices)) if any(choice.touched for choice in choices) else made, choices


def _shown(name: str) -> str:
    """The name of a scenario as it is shown: a file of the user's own is known by its path."""
    return Path(name).name


def _text_width(board: TextBoard) -> int:
    """The columns of its text: the last one is left to the scroll bar, which comes with more lines than it has."""
    return max(20, board.outer_size.width - 1) if board.outer_size.width else 60
