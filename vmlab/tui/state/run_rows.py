"""The list of runs as rows: filtered, sorted, with the cells of those that are unfolded."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.model.axes import axes_words, repeat_words
from vmlab.store.runs import RunSummary
from vmlab.tui.state.views import CellView
from vmlab.tui.widgets.filter_line import has_words

SORTS: tuple[tuple[str, Callable[[RunSummary], Any], bool], ...] = (
    ("newest first", lambda run: run.id[:15], True),
    ("scenario", lambda run: (run.scenario, run.id), False),
    ("outcome", lambda run: (run.outcome, run.id), False),
    ("longest first", lambda run: (run.ended or 0.0) - (run.started or 0.0), True),
)
"""Name, key and whether it is turned round, for each order that `o` goes through."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row: a run, or one of its cells. `key` is unique; `took` is None while it runs or where it is unknown."""

    key: str
    run: str
    cell: int | None
    outcome: str
    what: str
    size: str
    cells: str
    started: str
    took: float | None
    problem: str = ""


def rows_of(
    runs: Iterable[RunSummary],
    *,
    wanted: str = "",
    sort: int = 0,
    unfolded: Mapping[str, Sequence[CellView]] | None = None,
) -> list[RunRow]:
    """Rows of the runs in which every word of `wanted` is found, in order `sort`."""
    chosen = [run for run in runs if not wanted or has_words(_searched(run), wanted)]
    _, key, turned = SORTS[sort]
    rows: list[RunRow] = []
    for run in sorted(chosen, key=key, reverse=turned):
        rows.append(_run_row(run))
        rows += [_cell_row(run, cell) for cell in (unfolded or {}).get(run.id, ())]
    return rows


def _searched(run: RunSummary) -> str:
    return " ".join((run.id, run.scenario, run.size, run.outcome, *run.tags))


def _run_row(run: RunSummary) -> RunRow:
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started)) if run.started else "-"
    took = run.ended - run.started if run.ended and run.started else None
    # What a user calls it comes first: it is what the room is for.
    names = f"{', '.join(run.tags)}: " if run.tags else ""
    what = names + (run.scenario or run.id) + (", targets missed" if run.cells_missed else "")
    return RunRow(run.id, run.id, None, run.outcome, what, run.size, run.cells, started, took, run.problem or "")


def _cell_row(run: RunSummary, cell: CellView) -> RunRow:
    what = f"  {axes_words(dict(cell.axes))}, {repeat_words(cell.repeat)}"
    return RunRow(
        f"{run.id}:{cell.number}",
        run.id,
        cell.number,
        cell.outcome,
        what,
        "",
        f"#{cell.number}",
        "",
        cell.wall_seconds,
    )


def kept_marks(marked: Collection[str], runs: Iterable[RunSummary]) -> list[str]:
    """Marks in the order they were set, without those whose run has gone."""
    there = {run.id for run in runs}
    return [key for key in marked if key.partition(":")[0] in there]
