"""A recorded run for programs: what it is, its documents, and its cells, measurements and samples as frames."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vmlab.analysis.advice.advice import advice_document
from vmlab.analysis.compared_runs import beside_published
from vmlab.analysis.document import (
    compared_document,
    laid_out,
    only_cell,
    raw_document,
    run_document,
    stored_document,
)
from vmlab.analysis.record.phases import run_time
from vmlab.analysis.record.timeline import demand_cell
from vmlab.lab.provision.host_support import host_for_plans
from vmlab.model.errors import RefusedError
from vmlab.model.jsonable import jsonable
from vmlab.report.exports.tidy import Exported, Kind, Tidy, measurements, per_cell, sampled, unicode_rows
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run, run_names
from vmlab.system.packages import extra_command

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run, or one that is under way: each call reads its store at `path` anew, and needs no root.

    Methods raise VmlabError for a damaged store, and for a `cell` that the run does not have. Their `cell` is the
    number of the only cell that they should have.
    """

    path: Path
    id: str
    scenario: str
    size: str
    outcome: str
    """``passed``, ``failed``, ``invalid``, ``aborted`` or ``running``."""
    started: datetime | None
    """In UTC; None for a run that has not begun."""
    note: str = ""
    """What `note_run` or the command line noted of it before it was opened."""

    def cells(self) -> polars.DataFrame:
        """A row for each cell: its place, its axes, its outcome, and its wall clock in seconds."""
        return self._frame(per_cell, None)

    def measurements(self, cell: int | None = None) -> polars.DataFrame:
        """A row for each figure that a workload gave: `value` in `unit`, null where the tool gave no number."""
        return self._frame(measurements, cell)

    def samples(self, cell: int | None = None) -> polars.DataFrame:
        """A row for each value that the recorder read, with its time, cell and phase. Of a long run it is large."""
        return self._frame(sampled, cell)

    def document(self, cell: int | None = None, *, knee: int | None = None) -> dict[str, Any]:
        """What ``vmlab show --json`` prints: the document ``vmlab.run`` of docs/reference/json.md.

        `knee` is the share in percent of ``--knee``, by which its scores find the knee.
        """
        whole = stored_document(self.path)
        if knee is not None:
            whole = laid_out(whole, knee)
        body: dict[str, Any] = jsonable(whole if cell is None else only_cell(whole, cell))
        return body

    def raw(self, cell: int | None = None) -> dict[str, Any]:
        """What ``vmlab show --raw --json`` prints: the document ``vmlab.raw``, with what tools printed."""
        with RunReader(self.path) as reader:
            if cell is not None:
                demand_cell(self.id, [one.cell for one in run_document(reader).cells], cell)
            return raw_document(reader, cell)

    def phases(self, cell: int | None = None) -> dict[str, Any]:
        """What ``vmlab show --phases --json`` prints: the document ``vmlab.phases``, where the run's time went."""
        with RunReader(self.path) as reader:
            body: dict[str, Any] = jsonable(run_time(reader, cell))
        return body

    def reference(self) -> dict[str, Any]:
        """What ``vmlab show --reference --json`` prints: the document ``vmlab.reference``, beside published figures.

        Raises VmlabError where the run's scenario names no publication.
        """
        body: dict[str, Any] = jsonable(beside_published(str(self.path)))
        return body

    def advice(self) -> dict[str, Any]:
        """What ``vmlab advise --json`` prints: the document ``vmlab.advice``.

        Raises VmlabError for a run that is no recording and copies none.
        """
        from vmlab.analysis.advice.likeness import copied_document, copied_of

        with RunReader(self.path) as reader:
            document = run_document(reader)
            copied = copied_of(reader, document)
        return advice_document(document) if copied is None else copied_document(copied)

    def load_scenario(self, disk: str = "") -> str:
        """The text that ``vmlab advise -o`` writes: a scenario that copies the load of a `disk` of this recording.

        A disk is ``GUEST/DISK``. Raises VmlabError where there is no load to copy.
        """
        from vmlab.analysis.advice.load_scenario import load_scenario
        from vmlab.plan.copied_guest.trial import Trial

        with RunReader(self.path) as reader:
            return load_scenario(reader, run_document(reader), disk, Trial(host_for_plans()))[1]

    def _frame(self, table: Callable[[Exported], Tidy], cell: int | None) -> polars.DataFrame:
        with RunReader(self.path) as reader:
            if cell is not None:
                demand_cell(self.id, [one.cell for one in run_document(reader).cells], cell)
            return frame_of(table(Exported(reader, cell=cell, labelled=False)))


def open_run(name: str | os.PathLike[str] = "last") -> Run:
    """The run of that name: an id or its unique beginning, a tag, ``last``, or a path to a run's folder or store.

    Raises VmlabError, with one line, for what names no run, and for a store that cannot be read.
    """
    path = resolve_run(name if isinstance(name, str) else str(Path(name).absolute())).absolute()
    with RunReader(path) as reader:
        part = compared_document(reader).run
    started = None if part.started is None else datetime.fromisoformat(part.started)
    return Run(path, part.id, part.scenario, part.size, part.outcome, started, part.note)


def runs() -> list[str]:
    """The ids of all recorded runs, the newest first. Raises VmlabError where this user may not read them."""
    return run_names()


def named(run: str | Run) -> str:
    """The name by which the command line would have a run."""
    return str(run.path) if isinstance(run, Run) else run


def frame_of(table: Tidy) -> polars.DataFrame:
    """All rows of a table; what was not measured is null. Raises RefusedError without polars."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise RefusedError("frames need polars", remedy=shlex.join(extra_command("frames"))) from error

    types: dict[Kind, polars.DataType] = {
        "text": polars.String(),
        "whole": polars.Int64(),
        "number": polars.Float64(),
        "flag": polars.Boolean(),
        "moment": polars.Datetime("ms", "UTC"),
    }
    schema = {name: types[kind] for name, kind in table.columns.items()}
    parts = [polars.DataFrame(rows, schema=schema, orient="row") for rows in unicode_rows(table)]
    return polars.concat([polars.DataFrame(schema=schema), *parts])
