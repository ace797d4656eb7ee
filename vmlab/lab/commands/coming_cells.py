"""The cells of a run that are still to come, which viewers may change while one runs, and the plan of a wider loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from vmlab.hypervisor.isolation.namespace import host_proc
from vmlab.lab.commands.verbs import ChangeComing
from vmlab.lab.process.prepared import RunRequest, host_of, plan_of, scenario_of
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.event import (
    CellsReplanned,
    CommandReceived,
    Event,
)
from vmlab.model.event_fields import CellToCome
from vmlab.model.grouping import grouped
from vmlab.model.quantities import format_bytes
from vmlab.model.run import CACHE_MODES, MOST_NUMBERED, WARM_UP, AxisValue
from vmlab.plan.estimate import guest_memory
from vmlab.plan.hosting import check_fit, left_free_bytes, read_host_facts
from vmlab.plan.planning import make_plan
from vmlab.plan.terms import CellPlan, Overrides
from vmlab.telemetry.source import Roots


def replanned(folder: RunFolder, planned: Sequence[CellPlan], change: dict[str, Any]) -> list[CellPlan | None]:
    """Each of the `planned` cells with `change` (``cache``: a mode, ``tiles``: a count) applied to it.

    They keep their numbers. None stands for a cell that has no such point. Raises UsageError for a change that is not
    possible, and RefusedError for one that does not fit on the host.
    """
    request = RunRequest.of(folder)
    if "cache" in change:
        _check_one_mode(planned)
    host = host_of(folder)
    file = scenario_of(folder, request)
    plan = make_plan(file, _changed(request.overrides, change), host)
    check_fit(plan, host)
    # An axis that only one of the plans has is the changed one, or replaces axes that the scenario does not have.
    kept = plan.scenario.axes.keys() & make_plan(file, request.overrides, host).scenario.axes.keys() - change.keys()
    by_place = {_place(cell, kept): cell for cell in plan.cells}
    found = [by_place.get(_place(cell, kept)) for cell in planned]
    return [cell and _numbered_as(before, cell) for before, cell in zip(planned, found, strict=True)]


def _numbered_as(before: CellPlan, cell: CellPlan) -> CellPlan:
    """A changed cell under its number; it measures another one again as long as it is the same."""
    return replace(cell, index=before.index, again_of=before.again_of if cell.axes == before.axes else 0)


def widened(folder: RunFolder, cell: CellPlan, tiles: int) -> CellPlan:
    """The running cell with more tiles, which must fit beside what runs.

    Raises UsageError where it cannot have so many, and RefusedError where the host's memory or disk cannot hold them:
    all of them by what the host had before the run, and the new ones by what it has now.
    """
    (plan,) = replanned(folder, [cell], {"tiles": tiles})
    if plan is None:
        raise UsageError(f"the scenario has no such cell with {tiles} tiles")
    new = [guest for guest in plan.guests if guest.tile > cell.tiles]
    needed = sum(guest_memory(guest.resources, host_of(folder)) for guest in new)
    now = read_host_facts(folder.disks, Roots(host_proc=host_proc()))
    available = now.memory_available_bytes - left_free_bytes(now, plan_of(folder).scenario.allow)
    if needed > available:
        room = format_bytes(max(0, available))
        raise RefusedError(f"tile {tiles} needs {format_bytes(needed)} of memory and the host has {room} free now")
    if (written := plan.disk_bytes - cell.disk_bytes) > now.disk_free_bytes:
        room = format_bytes(now.disk_free_bytes)
        raise RefusedError(f"tile {tiles} will write {format_bytes(written)} and the disk has {room} free now")
    return plan


def _changed(overrides: Overrides, change: dict[str, Any]) -> Overrides:
    for name, value in change.items():
        match name, value:
            case "cache", mode if mode in CACHE_MODES:
                overrides = replace(overrides, cache=(mode,))
            case "tiles", int(count) if count >= 1 and not isinstance(count, bool):
                overrides = replace(overrides, tiles=(count,))
            case _:
                raise UsageError(f"the cells to come cannot have {axes_words({name: value})}")
    return overrides


def _check_one_mode(coming: Sequence[CellPlan]) -> None:
    """Guests with different modes in the scenario must not get the same mode by one key press."""
    for cell in coming:
        modes = {guest.guest: guest.resources.cache for guest in cell.guests}
        if len(set(modes.values())) > 1:
            told = ", ".join(f"{guest} {mode}" for guest, mode in modes.items())
            raise UsageError(f"the guests of the cells to come differ in cache mode ({told}) and keep theirs")


def _place(cell: CellPlan, kept: Collection[str]) -> tuple[object, ...]:
    """The cell's values of the axes that are `kept`."""
    values = sorted((name, str(value)) for name, value in cell.axes.items() if name in kept)
    return (cell.repeat, *values)


@dataclass(frozen=True, slots=True)
class _Coming:
    """One cell to come: as `planned`, and as it will run (`cell`) with `change`, unless it is `skipped`.

    Both have the number under which it is recorded, which stays while others are skipped.
    """

    planned: CellPlan
    cell: CellPlan
    change: dict[str, Any] = field(default_factory=dict)
    skipped: bool = False

    @property
    def number(self) -> int:
        return self.cell.index

    @property
    def point(self) -> tuple[object, ...]:
        """What it measures, which is the same for two cells that are the same."""
        return (self.cell.repeat, *sorted((name, str(value)) for name, value in self.cell.axes.items()))

    @property
    def state(self) -> str:
        if self.skipped:
            return "skipped"
        return "planned" if self.cell.axes == self.planned.axes else "changed"

    def to_json(self) -> CellToCome:
        return {
            "cell": self.number,
            "axes": self.cell.axes,
            "repeat": self.cell.repeat,
            "state": self.state,
            "planned": self.planned.axes,
        }


class ComingCells:
    """The cells in order, until they are taken or changed; changes are emitted as events."""

    def __init__(
        self,
        folder: RunFolder,
        cells: Iterable[CellPlan],
        emit: Callable[[Event], object],
        begun: Collection[int] = (),
    ) -> None:
        """`begun` are the numbers of recorded cells, which no cell to come has."""
        self._folder = folder
        cells = tuple(cells)
        # From the first number that is taken on, all follow the highest.
        clash = min((cell.index for cell in cells if cell.index in begun), default=MOST_NUMBERED + 1)
        self._newest = max(begun, default=0)
        self._highest = max([self._newest, *(cell.index for cell in cells if cell.index < clash)])
        self._planned = tuple(cell if cell.index < clash else self._numbered_anew(cell) for cell in cells)
        self._cells = [_Coming(cell, cell) for cell in self._planned]
        self._begun: list[tuple[dict[str, AxisValue], int]] = []
        self._emit = emit
        self._taken = 0
        self._numbered_before: dict[int, CellPlan] = {}

    def again(self, cell: CellPlan, *, at_end: bool) -> None:
        """Have a cell measured again, after those of its repeat that are to come, or `at_end`, if a number is left."""
        if self._highest >= MOST_NUMBERED:
            return
        further = self._numbered_anew(cell)
        same = [place for place, one in enumerate(self._cells, start=1) if one.cell.repeat == cell.repeat]
        first = takewhile(lambda one: one.cell.again_of or one.cell.repeat == WARM_UP, self._cells)
        place = max(same) if same else len(list(first))
        self._cells.insert(len(self._cells) if at_end else place, _Coming(further, further))
        self.tell()

    def _numbered_anew(self, cell: CellPlan) -> CellPlan:
        self._highest += 1
        return replace(cell, index=self._highest)

    def take(self) -> CellPlan | None:
        """Remove and return the next cell, with those before it that are skipped; None after the last."""
        if not self._active:
            return None
        while (one := self._cells.pop(0)).skipped:
            pass
        self._taken = self._taken if one.cell.again_of else one.number
        self._newest = max(self._newest, one.number)
        self._begun.append((dict(one.cell.axes), one.cell.repeat))
        return one.cell

    def take_numbered(self, number: int) -> CellPlan:
        """Remove and return the cell with this number, also once more. Raises UsageError where none has it."""
        if (before := self._numbered_before.get(number)) is not None:
            return before
        one = self._numbered(number)
        self._cells.remove(one)
        self._numbered_before[number] = one.cell
        self._taken = max(self._taken, number)
        self._begun.append((dict(one.cell.axes), one.cell.repeat))
        return one.cell

    def has(self, repeat: int) -> bool:
        """Whether a cell of this repeat is still to come."""
        return any(one.cell.repeat == repeat for one in self._active)

    @property
    def _active(self) -> list[_Coming]:
        return [one for one in self._cells if not one.skipped]

    def tell(self) -> None:
        """Emit what is to come now."""
        active = self._active
        self._emit(
            CellsReplanned(
                cells=max((one.number for one in active), default=self._taken),
                next_axes=dict(active[0].cell.axes) if active else {},
                expected_seconds=sum(one.cell.seconds for one in active),
                coming=[one.to_json() for one in self._cells],
            )
        )

    def listed(self) -> Mapping[str, Any]:
        """The answer to viewers: as ``coming`` every cell to come (`CellToCome`), as ``cells`` those that will run."""
        cells = [{"index": one.number, "axes": one.cell.axes, "repeat": one.cell.repeat} for one in self._active]
        return {"cells": cells, "coming": [one.to_json() for one in self._cells]}

    def change(self, command: ChangeComing) -> Mapping[str, Any]:
        """Carry out the command ``set``; the answer is that of `listed`.

        It changes the cache mode, the tiles or both, or puts back as planned, all cells to come; with a number one of
        them, which can also be skipped. All as planned are what the run was started with, without
        those that have begun. Cells that become the same by a change of all are run once, and the others skipped.

        Raises UsageError and RefusedError, and then changes nothing and emits no event; see `replanned`.
        """
        change = command.values
        asked = [name for name in ("skip", "as_planned") if getattr(command, name)]
        if len(asked) + bool(change) > 1:
            raise UsageError("a cell is changed, or skipped, or put back as planned: one at a time")
        if command.cell is not None:
            self._cells, words = self._one_changed(command.cell, change, asked)
        elif asked == ["as_planned"]:
            self._cells, words = self._as_planned(), "set as planned"
        elif asked:
            raise UsageError("one cell is skipped at a time, by its number")
        else:
            self._cells, words = self._all_changed(change), f"set {axes_words(change)}"
        self._emit(CommandReceived(command=words, origin=command.origin))
        self.tell()
        return self.listed()

    def _all_changed(self, change: dict[str, Any]) -> list[_Coming]:
        if not self._active:
            raise UsageError("no cell is to come; the running one stays as it is")
        found = {one.number: one for one in self._changed(self._active, change)}
        if not found:
            raise UsageError("the cells to come have no such point")
        points: set[tuple[object, ...]] = set()
        cells = []
        for before in self._cells:
            one = found.get(before.number, replace(before, skipped=True))
            cells.append(replace(one, skipped=one.skipped or one.point in points))
            points |= set() if one.skipped else {one.point}
        return cells

    def _one_changed(self, number: int, change: dict[str, Any], asked: Sequence[str]) -> tuple[list[_Coming], str]:
        """The cells with another one in the place of that with this number, and what was done, in words."""
        one = self._numbered(number)
        match asked:
            case ["skip"] if one.skipped:
                raise UsageError(f"cell {one.number} is skipped already")
            case ["skip"]:
                changed, words = replace(one, skipped=True), f"skip cell {one.number}"
            case ["as_planned"] if one.state == "planned":
                raise UsageError(f"cell {one.number} is as planned already")
            case ["as_planned"]:
                changed, words = _Coming(one.planned, one.planned), f"set cell {one.number} as planned"
            case _ if one.skipped:
                raise UsageError(f"cell {one.number} is skipped; put it back as planned first")
            case _:
                found = self._changed([one], change)
                if not found:
                    raise UsageError(f"cell {one.number} has no point with {axes_words(change)}")
                (changed,), words = found, f"set cell {one.number} {axes_words(change)}"
        same = [other.number for other in self._active if other.number != one.number and other.point == changed.point]
        if same and not changed.skipped:
            what = f"{axes_words(changed.cell.axes)}, {repeat_words(changed.cell.repeat)}"
            raise UsageError(f"cell {same[0]} is the same ({what}); one of the two can be skipped")
        return [changed if other is one else other for other in self._cells], words

    def _numbered(self, number: int) -> _Coming:
        for one in self._cells:
            if one.number == number:
                return one
        if not self._cells:
            raise UsageError("no cell is to come; the running one stays as it is")
        first, last = self._cells[0].number, self._cells[-1].number
        known = f"cell {first} is" if first == last else f"cells {first} to {last} are"
        raise UsageError(f"there is no cell {number} to come; {known}")

    def _changed(self, cells: Sequence[_Coming], change: dict[str, Any]) -> list[_Coming]:
        """Those of `cells` that have such a point, with `change` in addition to what was changed of each before."""
        if not change:
            raise UsageError("a change of the cells to come needs a cache mode or a number of tiles")
        wanted = [replace(one, change=one.change | change) for one in cells]
        found = []
        for those in grouped((repr(sorted(one.change.items())), one) for one in wanted).values():
            plans = replanned(self._folder, [one.planned for one in those], those[0].change)
            found += [replace(one, cell=cell) for one, cell in zip(those, plans, strict=True) if cell is not None]
        return found

    def _as_planned(self) -> list[_Coming]:
        """The planned cells that have not begun. Raises UsageError for none.

        They keep their numbers; where one of them has been passed by, they are numbered after those that have begun.
        """
        left = [cell for cell in self._planned if (dict(cell.axes), cell.repeat) not in self._begun]
        if not left:
            raise UsageError("all planned cells have begun; none is to come")
        further = [one for one in self._cells if one.cell.again_of]
        if left[0].index <= self._taken:
            self._highest = max([self._newest, *(one.number for one in further)])
            if self._highest + len(left) > MOST_NUMBERED:
                raise UsageError(f"a run has no cells beyond number {MOST_NUMBERED}")
            left = [self._numbered_anew(cell) for cell in left]
        return [*(_Coming(cell, cell) for cell in left), *further]
