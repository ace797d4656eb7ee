"""A cell's events, the raw output of its tools, and its outcome."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from vmlab.lab.cell.common_start import StartSkew
from vmlab.lab.cell.validity import lever_faults
from vmlab.lab.cell.workload_instance import WorkloadInstance, timed_step
from vmlab.model.cell_event import (
    CacheProved,
    CellEnded,
    CellStarted,
    GuestInspected,
    GuestStateChanged,
    LeverProved,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    Switched,
    TilesChanged,
)
from vmlab.model.errors import MOST_LETTERS
from vmlab.model.event import (
    CommandReceived,
    Event,
    MeasuredAgain,
    Notice,
)
from vmlab.model.results import CacheProof, LeverProof, Measurement, Provision, RawOutput
from vmlab.model.run import Outcome, Part, Phase, worst
from vmlab.model.visible import cut
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.terms import CellPlan, GuestPlan

Emit = Callable[[Event], object]
_MOST_REASONS = 2**17
"""Letters of all reasons of a cell."""
_SWITCHED = {"cache": "the cache mode", "ksm": "the host's KSM"}


def _held(reasons: Sequence[str]) -> list[str]:
    """As many reasons as an event can hold: hostile guests may have said much in each."""
    held, letters = list[str](), 0
    for reason in reasons:
        letters += min(len(reason), MOST_LETTERS)
        if letters > _MOST_REASONS:
            return [*held, f"and {len(reasons) - len(held)} more"]
        held.append(cut(reason, MOST_LETTERS))
    return held


class KeepsRaw(Protocol):
    """Stores the raw output of tools."""

    def raw(self, cell: int, output: RawOutput) -> None:
        """Store one text."""


class CellEvents:
    """Emits all events of one cell, and keeps the reasons why the cell is not passed."""

    def __init__(self, plan: CellPlan, emit: Emit, raw: KeepsRaw) -> None:
        self._plan = plan
        self.cell = plan.index
        self.emit = emit
        self._raw = raw
        self._reasons: list[str] = []
        self._outcomes: list[Outcome] = []
        self._inside = False
        self._changes: dict[str, list[str]] = {}
        self._of_changes: dict[str, str] = {}
        self._missed = 0
        self.in_force: dict[str, str | int | None] = {}
        """The host's settings that are recorded with the cell."""

    @property
    def outcome(self) -> Outcome:
        """The worst outcome reported so far; passed where there is none."""
        return worst(self._outcomes)

    @property
    def disturbed(self) -> bool:
        """Whether the cell is invalid for causes outside of it alone."""
        return self.outcome is Outcome.INVALID and not self._inside

    def end_as(self, outcome: Outcome, reason: str, *, outside: bool = False) -> None:
        """The cell ends with no better outcome than this one, for this reason, whose cause may be `outside` of it."""
        self._outcomes.append(outcome)
        self._reasons.append(reason)
        self._inside |= not outside

    def invalidate(self, reasons: Iterable[str], *, outside: bool = False) -> None:
        """The cell is invalid for each of these reasons; see `end_as`."""
        for reason in reasons:
            self.end_as(Outcome.INVALID, reason, outside=outside)

    def started(self, host: Mapping[str, str | int | None], *, looped: bool = False) -> None:
        """The cell begins, with these settings of the host in force."""
        self.in_force = dict(host)
        plan, guests = self._plan, len(self._plan.guests)
        settings = {**settings_of(plan), "host": dict(host)}
        if plan.again_of:
            self.emit(MeasuredAgain(cell=plan.index, again_of=plan.again_of))
        self.emit(
            CellStarted(
                cell=plan.index, axes=plan.axes, repeat=plan.repeat, guests=guests, settings=settings, looped=looped
            )
        )

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Emits start and end of a phase, which is the block."""
        began = time.monotonic()
        self.emit(PhaseStarted(cell=self.cell, phase=phase))
        try:
            yield
        finally:
            self.emit(PhaseEnded(cell=self.cell, phase=phase, seconds=time.monotonic() - began))

    def step(self, part: Part, step: str, tile: int = 0, place: str = "") -> AbstractContextManager[None]:
        """Emits how long the block took, which is a step of a part of the cell."""
        return timed_step(self.emit, self._plan.index, part, step, tile, place)

    def guest(self, guest: GuestPlan, state: str) -> None:
        """A guest is in another state."""
        self.emit(
            GuestStateChanged(
                cell=self.cell, tile=guest.tile, guest=guest.guest, role="+".join(guest.roles), state=state
            )
        )

    def seen_inside(self, guest: GuestPlan, seen: dict[str, Any]) -> None:
        """What was found in a guest, as it sees itself."""
        self.emit(GuestInspected(cell=self.cell, tile=guest.tile, guest=guest.guest, seen=seen))

    def proofs(self, proofs: Sequence[CacheProof]) -> None:
        """The cache mode was proved."""
        for proof in proofs:
            self.emit(CacheProved(cell=self.cell, proof=proof))

    def lever_proofs(self, proofs: Sequence[LeverProof]) -> None:
        """Attributes of guests were proved; the cell is invalid where one does not agree."""
        for proof in proofs:
            self.emit(LeverProved(cell=self.cell, proof=proof))
        self.invalidate(lever_faults(proofs))

    def asked(self, command: str, origin: str) -> None:
        """A viewer asked for something that concerns this cell."""
        self.emit(CommandReceived(command=command, origin=origin))

    def switched(self, event: Switched) -> None:
        """What running guests have was switched, which makes the cell invalid."""
        self.emit(event)
        self._changed(_SWITCHED[event.what], event.before, event.after)

    def tiles_changed(self, before: int, after: int, origin: str) -> None:
        """A tile was added or retired while the others worked, which makes the cell invalid."""
        self.emit(TilesChanged(cell=self.cell, origin=origin, before=before, after=after))
        self._changed("the number of tiles", before, after)

    def _changed(self, what: str, before: object, after: object) -> None:
        """The cell is invalid; one reason for all changes of the same."""
        changes = self._changes.setdefault(what, [])
        changes.append(f"from {before} to {after}")
        often = "" if len(changes) == 1 else f" {len(changes)} times, first"
        if (known := self._of_changes.get(what)) in self._reasons:
            self._reasons.remove(str(known))
        change = f"{what} changed{often} {changes[0]} while it ran"
        self._of_changes[what] = f"{change}: a change mid-run invalidates the cell"
        self.end_as(Outcome.INVALID, self._of_changes[what])

    def warn(self, text: str) -> None:
        """A line for people."""
        self.emit(Notice(level="warning", text=text))

    def note(self, text: str) -> None:
        """A line for people, on what is as it should be."""
        self.emit(Notice(level="info", text=text))

    def doubt(self, text: str) -> None:
        """A line for people on what makes the cell's figures less certain, with its number."""
        self.warn(f"cell {self.cell}: {text}")

    def measurement(self, measurement: Measurement) -> None:
        """One figure of the cell."""
        place = measurement.workload, measurement.metric
        asked = (one for one in self._plan.targets if one.applicable and (one.workload, one.metric) == place)
        value = math.nan if measurement.value is None else measurement.value
        self._missed += sum(not one.met_by(value) for one in asked)
        self.emit(MeasurementTaken(cell=self.cell, figure=measurement))

    def figures(self, instance: WorkloadInstance) -> None:
        """The figures that a workload collected."""
        for one in instance.readings:
            place = (instance.plan.name, instance.plan.tile, instance.context.source.name)
            self.measurement(Measurement(*place, one.metric, one.value, one.unit))

    def raw(self, instances: Sequence[WorkloadInstance]) -> None:
        """Keep what the tools of all workloads printed."""
        for instance in instances:
            for name, text in instance.raw().items():
                output = RawOutput(instance.plan.name, instance.plan.tile, instance.context.source.name, name, text)
                self._raw.raw(self._plan.index, output)

    def ended(self, wall_seconds: float | None, skew: StartSkew | None, provision: Provision) -> None:
        """The cell's last event."""
        self.emit(
            CellEnded(
                cell=self.cell,
                outcome=self.outcome,
                reasons=_held(self._reasons),
                wall_seconds=wall_seconds,
                start_skew_ms=None if skew is None else skew.seconds * 1e3,
                skew_uncertainty_ms=None if skew is None else skew.uncertainty * 1e3,
                provision=provision,
                missed=self._missed if self.outcome == Outcome.PASSED else 0,
                disturbed=self.disturbed,
            )
        )
