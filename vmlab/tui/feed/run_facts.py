"""What the list of runs shows: rows, filtered and sorted, and of each run what it varied and how long cells took."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.axes import axes_words, axis_word, repeat_words
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.errors import VmlabError
from vmlab.model.event import HostProbed
from vmlab.model.grouping import grouped
from vmlab.model.ordered import behind, ordered_words
from vmlab.model.run import RUNNING, Outcome
from vmlab.model.visible import visible_line
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE, RunSummary
from vmlab.tui.state.views import CellView

_MOST_RUNS = 60
_MOST_CELLS = 200


class RunFacts(NamedTuple):
    """`varied` has the values of the axes in words; `cell_seconds` is the mean wall clock of the cells that passed,
    None where none did. `behind` are the words that stand behind that figure.
    """

    varied: str = ""
    cell_seconds: float | None = None
    behind: tuple[str, ...] = ()


def readable_soon(runs: Iterable[RunSummary]) -> Iterator[RunSummary]:
    """Those of the first of `runs` whose stores the list reads: they are over, sound, and have not too many cells."""
    for run in list(runs)[:_MOST_RUNS]:
        if not run.problem and run.outcome != RUNNING and run.cells_done <= _MOST_CELLS:
            yield run


class RunFactsList:
    """Reads the facts of runs that have ended once each; for one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, RunFacts] = {}

    def of(self, runs: Iterable[RunSummary], place: Path) -> dict[str, RunFacts]:
        """The facts of the first of `runs`, by id, whose folders are in `place`; none of what cannot be read."""
        for run in readable_soon(runs):
            if run.id in self._known:
                continue
            try:
                self._known[run.id] = facts_of(place / run.id / STORE)
            except VmlabError:
                self._known[run.id] = RunFacts()  # The list of runs shows the error.
        return dict(self._known)


def facts_of(store: Path) -> RunFacts:
    """The facts of the run at `store`. Raises StoreError and UsageError."""
    with RunReader(store) as reader:
        run = RunTimeline.read(reader, (HostProbed, CellStarted, CellEnded))
    cells, probed = [cell.told for cell in run.cells.values()], run.probed
    has_guests = any(cell.provision.guests for cell in cells)
    axes = grouped(pair for cell in cells for pair in cell.axes.items())
    passed = [cell for cell in cells if cell.outcome == Outcome.PASSED]
    walls = [cell.wall_seconds for cell in passed if cell.wall_seconds is not None]
    words = behind(probed.accelerator if has_guests else None, ordered_words(probed.host)) if probed else ()
    varied = "; ".join(f"{name} {', '.join(map(axis_word, dict.fromkeys(values)))}" for name, values in axes.items())
    return RunFacts(varied, sum(walls) / len(walls) if walls else None, words)


SORTS: tuple[tuple[str, Callable[[RunSummary], Any], bool], ...] = (
    ("newest first", lambda run: run.id[:15], True),
    ("scenario", lambda run: (run.scenario, run.id), False),
    ("outcome", lambda run: (run.outcome, run.id), False),
    ("longest first", lambda run: (run.ended or 0.0) - (run.started or 0.0), True),
)
"""Name, key and whether it is turned round, for each order that `o` goes through."""


class RunRow(NamedTuple):
    """One row: a run, or one of its cells."""

    run: RunSummary
    cell: CellView | None = None

    @property
    def key(self) -> str:
        """What this row alone has."""
        return self.run.id if self.cell is None else f"{self.run.id}:{self.cell.number}"

    @property
    def outcome(self) -> str:
        """Of the run or the cell."""
        return self.run.outcome if self.cell is None else self.cell.outcome

    @property
    def what(self) -> str:
        """The run's names, or the cell's axes."""
        if self.cell is not None:
            return f"  {axes_words(dict(self.cell.axes))}, {repeat_words(self.cell.repeat)}"
        run = self.run
        # What a user calls it comes first: it is what the room is for.
        names = f"{', '.join(run.tags)}: " if run.tags else ""
        return names + (run.scenario or run.id) + (", targets missed" if run.cells_missed else "")

    @property
    def said(self) -> str:
        """The same with the run's note."""
        return f"{self.what}: {visible_line(self.run.note)}" if self.cell is None and self.run.note else self.what

    @property
    def took(self) -> float | None:
        """Seconds; None while it runs or where it is unknown."""
        if self.cell is not None:
            return self.cell.wall_seconds
        return self.run.ended - self.run.started if self.run.ended and self.run.started else None


def rows_of(
    runs: Iterable[RunSummary],
    *,
    wanted: str = "",
    sort: int = 0,
    unfolded: Mapping[str, Sequence[CellView]] = MappingProxyType({}),
) -> list[RunRow]:
    """Rows of the runs in which every word of `wanted` is found, in order `sort`."""
    _, key, turned = SORTS[sort]
    chosen = [run for run in runs if not wanted or has_words(_searched(run), wanted)]
    rows: list[RunRow] = []
    for run in sorted(chosen, key=key, reverse=turned):
        rows += [RunRow(run), *(RunRow(run, cell) for cell in unfolded.get(run.id, ()))]
    return rows


def _searched(run: RunSummary) -> str:
    return " ".join((run.id, run.scenario, run.size, run.outcome, *run.tags, run.note))


def has_words(text: str, wanted: str) -> bool:
    """Whether every word of `wanted` is in `text`, in capital letters or small ones, however accents are written."""
    known = _alike(text)
    return all(word in known for word in _alike(wanted).split())


def _alike(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def kept_marks(marked: Collection[str], runs: Iterable[RunSummary]) -> list[str]:
    """Marks in the order they were set, without those whose run has gone."""
    there = {run.id for run in runs}
    return [key for key in marked if key.partition(":")[0] in there]
