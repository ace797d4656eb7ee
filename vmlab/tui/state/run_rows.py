"""The list of runs as rows: filtered, sorted, with the cells of those that are unfolded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from vmlab.model.axes import axes_words, repeat_words
from vmlab.store.runs import RunSummary
from vmlab.tui.state.views import CellView

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
    return " ".join((run.id, run.scenario, run.size, run.outcome, *run.tags))


def has_words(text: str, wanted: str) -> bool:
    """Whether every word of `wanted` is in `text`, in capital letters or small ones."""
    return all(word in text.lower() for word in wanted.lower().split())


def kept_marks(marked: Collection[str], runs: Iterable[RunSummary]) -> list[str]:
    """Marks in the order they were set, without those whose run has gone."""
    there = {run.id for run in runs}
    return [key for key in marked if key.partition(":")[0] in there]
