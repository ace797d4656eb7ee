"""Live's keys that change the run: its cells to come, in all or one by one, the guests that run, and the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from vmlab.model.places import runs_folder
from vmlab.model.run import other_mode
from vmlab.tui.screens.base_screen import RUN_KEYS
from vmlab.tui.screens.watch_screen import WatchScreen

if TYPE_CHECKING:
    from vmlab.model.event import Event
    from vmlab.model.event_fields import CellToCome
    from vmlab.model.run import AxisValue
    from vmlab.tui.commands import RunCommands
    from vmlab.tui.state.asked import AskedChanges
    from vmlab.tui.widgets.tables.coming_list import ComingList

_TO_COME, _RUNNING_GUESTS, _THE_LOOP = "Cells to come", "The running guests", "The loop"
"""What changes are about."""


class CommandingScreen(WatchScreen):
    """Asks the run that is `watched` for what keys say; the run tells in events what it did."""

    BINDINGS: ClassVar[list[BindingType]] = [*RUN_KEYS]

    def __init__(self) -> None:
        super().__init__()
        self.watched: str | None = None
        """The run that is followed; None while none lives."""
        self._listed: ComingList | None = None
        """The list of the cells to come while it is open."""
        self._asked: AskedChanges
        """What the user asked for of the cells to come of the run that is followed."""
        self._asked_now: AskedChanges
        """The same of the guests that run."""

    def watch_run(self, run: str | None) -> None:
        """Nothing was asked of this run yet."""
        from vmlab.tui.state.asked import AskedChanges

        self.watched = run
        self._asked, self._asked_now = AskedChanges(), AskedChanges(now=True)
        if self._listed is not None:
            self.call_later(self._close_coming if run is None else self._list_coming)
        self.refresh_bindings()

    def see_changes(self, events: Iterable[Event]) -> None:
        """The run tells what it did."""
        for asked in (self._asked, self._asked_now):
            asked.see(events)
        if self._listed is not None and self._listed.is_outdated_by(events):
            self._list_coming()

    def action_switch_cache(self) -> None:
        """Cells to come: none where the next is not, writeback otherwise. The running cell stays as it is."""
        self._change(self._asked, cache=other_mode(self._coming("cache")))

    def action_switch_cache_now(self) -> None:
        """Guests that run: none where they have another mode, writeback otherwise. The running cell does not count."""
        mode = other_mode(self._guests_have("cache"))
        self.notify(f"to cache {mode}: dirty pages are written first", title=_RUNNING_GUESTS)
        self._change(self._asked_now, cache=mode)

    def action_switch_ksm_now(self) -> None:
        """Guests that run: the host's KSM off where it is on, else on. The running cell does not count."""
        self._change(self._asked_now, ksm="off" if self._guests_have("ksm") == "on" else "on")

    def action_change_tiles(self, step: int) -> None:
        """Cells to come: one tile more or fewer. The running cell stays as it is."""
        if (count := _number(self._coming("tiles")) + step) < 1:
            self.notify("a cell has at least one tile", title=_TO_COME, severity="warning")
        else:
            self._change(self._asked, tiles=count)

    def action_as_planned(self) -> None:
        """Cells to come: those that the run was started with."""
        self._change(self._asked, as_planned=True)

    def action_change_tiles_now(self, step: int) -> None:
        """Add a tile to the loop that goes on, or retire its newest."""
        cell = self.view().cell
        count = _number(cell.tiles if cell is not None else None) + step
        self._ask(_THE_LOOP, lambda run: run.change_now({"tiles": count}))

    def action_end_loop(self) -> None:
        """No workload of the loop starts again; what is under way ends."""
        self._ask(_THE_LOOP, lambda run: run.change_now({"end": True}))

    def action_stop_run(self) -> None:
        """Ask, and then stop the run that is shown."""
        if self.watched is not None:
            self.console.ask_to_stop(runs_folder() / self.watched)

    async def action_edit_coming(self) -> None:
        """Open the list of the cells to come in place of the log, or close it."""
        if self._listed is not None:
            await self._close_coming()
        else:
            from vmlab.tui.widgets.tables.coming_list import ComingList

            self._listed = ComingList(self._asked, id="coming")
            self.add_class("-coming")
            await self.mount_all([self._listed.titled(_TO_COME)], before="#log")
            self._listed.focus()
            self._list_coming()

    async def _close_coming(self) -> None:
        listed, self._listed = self._listed, None
        if listed is not None:
            self.remove_class("-coming")
            await listed.remove()

    async def on_coming_list_closed(self) -> None:
        """Escape in the list."""
        await self._close_coming()

    def on_coming_list_asked(self) -> None:
        """A key in the list, for one cell."""
        self._ask_next(self._asked)

    def _list_coming(self) -> None:
        """Have the run tell what is to come, and show it where the list is open."""
        if (run := self.watched) is not None:
            self.fetch(lambda: self._commands(run).coming(), self._show_coming, self._tell_in_list, group="coming")

    def _show_coming(self, cells: Sequence[CellToCome]) -> None:
        if self._listed is not None:
            self._listed.fill(cells)

    def _tell_in_list(self, problem: str) -> None:
        if self._listed is not None:
            self._listed.tell(problem)

    def _coming(self, axis: str) -> AxisValue | None:
        """The next cell's value of an axis, if known: the one the user asked for, else the running cell's."""
        view, asked = self.view(), self._asked.value(axis)
        if asked is not None:
            return asked
        if view.next_axes is not None and axis in dict(view.next_axes):
            return dict(view.next_axes)[axis]
        return view.cell.axis(axis) if view.cell is not None else None

    def _guests_have(self, what: str) -> AxisValue | None:
        """What the running guests have: what the user asked for, else what the run reported."""
        asked = self._asked_now.value(what)
        return getattr(self.view().cell, what, None) if asked is None else asked

    def _change(self, asked: AskedChanges, **change: AxisValue) -> None:
        """Ask for a change of all cells to come, or of the running guests."""
        asked.add(change)
        self._ask_next(asked)

    def _ask_next(self, asked: AskedChanges) -> None:
        """Ask for the next of the changes that were added."""
        title = _TO_COME if asked is self._asked else _RUNNING_GUESTS
        self._ask(title, asked.make_next, asked.forget)

    def _commands(self, run: str) -> RunCommands:
        """Commands to a run; loads the planner, so only for a thread."""
        from vmlab.tui.commands import RunCommands

        self.console.require_control()
        return RunCommands(runs_folder() / run)

    def _ask(
        self, title: str, command: Callable[[RunCommands], str], refused: Callable[[], None] | None = None
    ) -> None:
        """Have `command` ask the run that is watched, and show what it says, or why it did not work."""

        def told(effect: str) -> None:
            if effect:
                self.notify(effect, title=title)
            if self._listed is not None:
                self._list_coming()

        def failed(problem: str) -> None:
            if refused is not None:
                refused()
            self.notify(problem, title=f"{title}: not changed", severity="error")

        if (run := self.watched) is not None:
            self.fetch(lambda: command(self._commands(run)), told, failed, group="commands", exclusive=False)


def _number(tiles: AxisValue | None) -> int:
    """How many tiles that are; one where it is not known."""
    return tiles if isinstance(tiles, int) else 1
