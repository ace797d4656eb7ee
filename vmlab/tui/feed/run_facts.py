"""What the list of runs shows of a run besides its summary: what it varied, and how long its cells took."""

from __future__ import annotations

from collections.abc import Iterable
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


def earlier(run: RunSummary, runs: Iterable[RunSummary], facts: dict[str, RunFacts], count: int) -> list[float]:
    """The `cell_seconds` of the newest runs like `run` up to itself, oldest first.

    They have the same scenario, size and axes, and the same words behind.
    """
    own = facts.get(run.id, RunFacts())
    like = [
        one
        for one in runs
        if one.id <= run.id
        and (one.scenario, one.size) == (run.scenario, run.size)
        and facts.get(one.id, RunFacts())._replace(cell_seconds=None) == own._replace(cell_seconds=None)
    ]
    values = [facts[one.id].cell_seconds for one in sorted(like, key=lambda one: by_time(one.id)) if one.id in facts]
    return [value for value in values if value is not None][-count:]
