"""Makes the document of a run, ``vmlab.run/1``, from its store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from vmlab.analysis.cells import CELL_EVENTS, cell_document, fold_cells
from vmlab.analysis.host import host_during
from vmlab.analysis.intent import axes_of, table_of
from vmlab.analysis.shape import RUNNING, SCHEMA, RunDocument, RunPart
from vmlab.model.event import HostProbed, Notice, RunEnded, RunnerFinished, RunStarted
from vmlab.model.run import Outcome
from vmlab.store.life import is_alive
from vmlab.store.reader import RunReader


def run_document(reader: RunReader) -> RunDocument:
    """Everything that is known of a run, whether it ended, still runs or broke off.

    Raises StoreError for a damaged store.
    """
    # Asked before the events are read: a run that ends in between is then told by its own last event.
    alive = is_alive(reader.path.parent)
    landmarks = _Landmarks.read(reader)
    unended = RUNNING if alive and landmarks.ended is None else str(Outcome.ABORTED)
    cells = []
    for history in fold_cells(event for _, event in reader.events(kinds=CELL_EVENTS)):
        cell = cell_document(history, unended)
        if history.execution is not None:
            cell["host"] = host_during(reader, *history.execution)
        cells.append(cell)
    return {"schema": SCHEMA, "run": _run_part(reader, landmarks, unended), "cells": cells}


@dataclass(slots=True)
class _Landmarks:
    """What the run said of itself."""

    started: RunStarted | None = None
    probed: HostProbed | None = None
    finished: RunnerFinished | RunEnded | None = None
    ended: RunEnded | None = None
    notices: list[Notice] = field(default_factory=list)

    @classmethod
    def read(cls, reader: RunReader) -> _Landmarks:
        found = cls()
        for _, event in reader.events(kinds=(RunStarted, HostProbed, Notice, RunnerFinished, RunEnded)):
            match event:
                case RunStarted():
                    found.started = event
                case HostProbed():
                    found.probed = event
                case Notice() if event.level != "info":
                    found.notices.append(event)
                case RunnerFinished():
                    found.finished = event
                case RunEnded():
                    found.finished = found.ended = event
        return found


def _run_part(reader: RunReader, known: _Landmarks, unended: str) -> RunPart:
    started, probed, ended = known.started, known.probed, known.ended
    texts = reader.documents()
    axes = axes_of(texts)
    return {
        "id": started.run if started else reader.path.parent.name,
        "scenario": started.scenario if started else "",
        "size": started.size if started else "",
        "outcome": str(ended.outcome) if ended else unended,
        "started": time_of_day(started.wall if started else None),
        "ended": time_of_day(ended.wall if ended else None),
        "accelerator": probed.accelerator if probed else None,
        "seed": started.seed if started else None,
        "host": probed.host if probed else {},
        "reason": known.finished.reason if known.finished else "",
        "exit_code": ended.exit_code if ended else None,
        "cells_planned": started.cells if started else 0,
        "axes": axes,
        "table": table_of(texts, axes),
        "notices": [notice.text for notice in known.notices],
    }


def time_of_day(wall: float | None) -> str | None:
    """Seconds since the epoch as the documents have them: ISO 8601 in UTC, to the millisecond; None stays None."""
    return None if wall is None else datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")
