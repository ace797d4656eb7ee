"""One line of the list of runs, read from the run's store."""

from __future__ import annotations

from pathlib import Path

from vmlab.model.cell_event import CellEnded
from vmlab.model.errors import VmlabError
from vmlab.model.event import (
    CellWithdrawn,
    MeasuredAgain,
    RepeatsAdded,
    RepeatsEnded,
    RunEnded,
    RunStarted,
)
from vmlab.model.run import DAMAGED, RUNNING, Outcome
from vmlab.store.life import is_alive, note_of, process_ids
from vmlab.store.reader import NotBegunError, RunReader
from vmlab.store.runs import RunSummary

_MOST_CELLS = 1000
_ALWAYS = (RunStarted, MeasuredAgain, RepeatsAdded, RepeatsEnded, RunEnded)


def summarise(store: Path) -> RunSummary:
    """The line of the list for the run whose store is at `store`, which need not exist yet."""
    folder = store.parent
    # Checked before the store is read: a run that ends in between is then shown as its last event says.
    alive = is_alive(folder)
    started: RunStarted | None = None
    ended: RunEnded | None = None
    done = 0
    ended_cells: dict[int, CellEnded] = {}
    enough: int | None = None
    further: set[int] = set()
    problem = None
    unended: str = Outcome.ABORTED
    try:
        with RunReader(store) as reader:
            done = reader.count(CellEnded)
            # Not through the timeline of `analysis`, which is above the store: the list of hundreds of runs needs two
            # events of each, and a timeline of all of them would take minutes. With some dozens of cells, reading their
            # events also finds damage; with very many, only the number is read.
            kinds = (*_ALWAYS, *((CellEnded, CellWithdrawn) if done <= _MOST_CELLS else ()))
            for _, event in reader.events(kinds=kinds):
                if isinstance(event, RunStarted):
                    started = event
                elif isinstance(event, CellEnded):
                    ended_cells[event.cell] = event
                elif isinstance(event, CellWithdrawn) and ended_cells.pop(event.cell, None) is not None:
                    done -= 1
                elif isinstance(event, MeasuredAgain):
                    further.add(event.cell)
                elif isinstance(event, RepeatsEnded | RepeatsAdded):
                    enough = event.cells
                elif isinstance(event, RunEnded):
                    ended = event
    except NotBegunError as error:
        problem = None if alive else str(error)
    except VmlabError as error:
        problem, unended = str(error), DAMAGED
    return RunSummary(
        id=folder.name,
        scenario=started.scenario if started else "",
        size=started.size if started else "",
        outcome=ended.outcome if ended else RUNNING if alive else unended,
        started=started.wall if started else None,
        ended=ended.wall if ended else None,
        runner_pid=_runner_pid(folder) if alive and ended is None else None,
        cells_done=done - len(further & ended_cells.keys() if ended_cells else further),
        cells_aborted=sum(cell.outcome == Outcome.ABORTED for cell in ended_cells.values()),
        cells_planned=enough or (started.cells if started else 0),
        problem=problem,
        control=started is not None and started.control,
        cells_missed=sum(cell.missed > 0 for cell in ended_cells.values()),
        note=note_of(folder),
    )


def _runner_pid(folder: Path) -> int | None:
    noted = process_ids(folder)
    return noted.get("runner_pid", noted.get("launcher_pid"))
