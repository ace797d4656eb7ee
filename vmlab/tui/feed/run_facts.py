"""What the list of runs shows of a run besides its summary: what it varied, and how long its cells took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from vmlab.model.axes import axis_word
from vmlab.model.errors import VmlabError
from vmlab.model.event import CellEnded, CellStarted, HostProbed
from vmlab.model.ordered import behind, ordered_words
from vmlab.model.run import RUNNING, AxisValue, Outcome
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE, RunSummary, by_time

_MOST_RUNS = 60
_MOST_CELLS = 200


class RunFacts(NamedTuple):
    """`varied` has the values of the axes in words; `cell_seconds` is the mean wall clock of the cells that passed,
    None where none did. `behind` are the words that stand behind that figure.
    """

    varied: str = ""
    cell_seconds: float | None = None
    behind: tuple[str, ...] = ()


class RunFactsList:
    """Reads the facts of runs that have ended once each; for one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, RunFacts] = {}

    def of(self, runs: Iterable[RunSummary], place: Path) -> dict[str, RunFacts]:
        """The facts of the first of `runs`, by id, whose folders are in `place`; none of what cannot be read."""
        for run in list(runs)[:_MOST_RUNS]:
            if run.id in self._known or run.problem or run.outcome == RUNNING or run.cells_done > _MOST_CELLS:
                continue
            try:
                self._known[run.id] = facts_of(place / run.id / STORE)
            except VmlabError:
                self._known[run.id] = RunFacts()  # The list of runs shows the error.
        return dict(self._known)


def facts_of(store: Path) -> RunFacts:
    """The facts of the run at `store`. Raises StoreError and UsageError."""
    axes: dict[str, dict[AxisValue, None]] = {}
    walls: list[float] = []
    probed: HostProbed | None = None
    has_guests = False
    with RunReader(store) as reader:
        for _, event in reader.events(kinds=(HostProbed, CellStarted, CellEnded)):
            if isinstance(event, HostProbed):
                probed = event
            elif isinstance(event, CellStarted):
                has_guests |= event.guests > 0
                for name, value in event.axes.items():
                    axes.setdefault(name, {})[value] = None
            elif isinstance(event, CellEnded) and event.outcome == Outcome.PASSED and event.wall_seconds is not None:
                walls.append(event.wall_seconds)
    words = behind(probed.accelerator if has_guests else None, ordered_words(probed.host)) if probed else ()
    varied = "; ".join(f"{name} {', '.join(map(axis_word, values))}" for name, values in axes.items())
    return RunFacts(varied, sum(walls) / len(walls) if walls else None, words)


class EarlierRuns:
    """The `cell_seconds` of runs, in the order in which they began, by what makes runs alike.

    These have the same scenario, size and axes, and the same words behind.
    """

    def __init__(self, runs: Iterable[RunSummary], facts: Mapping[str, RunFacts]) -> None:
        self._facts = facts
        self._alike: dict[tuple[str, str, RunFacts], list[tuple[tuple[str, str, str], float]]] = {}
        for run in runs:
            own = facts.get(run.id, RunFacts())
            if own.cell_seconds is not None:
                self._alike.setdefault(self._key(run, own), []).append((by_time(run.id), own.cell_seconds))
        for values in self._alike.values():
            values.sort()

    def up_to(self, run: RunSummary, count: int) -> list[float]:
        """Those of the newest runs like `run` up to itself, oldest first."""
        values = self._alike.get(self._key(run, self._facts.get(run.id, RunFacts())), [])
        place = bisect_right(values, by_time(run.id), key=lambda one: one[0])
        return [seconds for _, seconds in values[max(0, place - count) : place]]

    @staticmethod
    def _key(run: RunSummary, facts: RunFacts) -> tuple[str, str, RunFacts]:
        return (run.scenario, run.size, facts._replace(cell_seconds=None))
