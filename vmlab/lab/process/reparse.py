"""Makes the figures of a run again from the raw texts that it keeps, after a parser was mended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab import __version__
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.remade import changes_of
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    FiguresRemade,
    MeasurementTaken,
    WorkloadEnded,
)
from vmlab.model.errors import RefusedError, WorkloadError
from vmlab.model.event import CellWithdrawn, RunStarted
from vmlab.model.jsonable import jsonable
from vmlab.model.run import Outcome
from vmlab.store.life import is_alive
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter
from vmlab.system.file_system import demand_usable
from vmlab.workloads.metrics import demand_not_longer
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import AnyWorkload, Collected

_KINDS = (RunStarted, CellStarted, CellWithdrawn, WorkloadEnded, MeasurementTaken, FiguresRemade, CellEnded)


@dataclass(frozen=True, slots=True)
class Reparsed:
    """What reading the raw texts of a run again gives.

    `read` is how many workloads were read, `changed` has an event for each of them with other figures than before.
    `problems` are lines on workloads that were left as they were; `beyond` on kinds whose figures need more than texts.
    """

    run: str
    read: int
    changed: tuple[FiguresRemade, ...]
    problems: tuple[str, ...]
    beyond: tuple[str, ...]

    def to_json(self, *, dry_run: bool) -> dict[str, Any]:
        """The document ``vmlab.reparse/1``."""
        return {
            "schema": "vmlab.reparse/1",
            "run": self.run,
            "version": __version__,
            "dry_run": dry_run,
            "workloads_read": self.read,
            "changes": [{"cell": one.cell, **jsonable(change)} for one in self.changed for change in changes_of(one)],
            "problems": list(self.problems),
            "beyond": list(self.beyond),
        }


def reparse(store: Path, *, dry_run: bool = False) -> Reparsed:
    """Read the raw texts of the run at `store` again, and keep what changed unless it is a `dry_run`.

    Every workload that passed is read by its own kind, with the parameters that it had. Raises RefusedError for a run
    that is not over, and for a folder that cannot be written or has no locks; UsageError for no store, StoreError for a
    damaged one and where nothing can be written.
    """
    if is_alive(store.parent):
        raise RefusedError(
            f"run {store.parent.name} is not over: it is still measured", remedy="wait, or `vmlab stop` it"
        )
    with RunReader(store) as reader:
        found = _read(reader)
    if found.changed and not dry_run:
        demand_usable(store.parent)
        with closing(RunWriter(store)) as writer:
            for event in found.changed:
                writer.append(event)
    return found


def _read(reader: RunReader) -> Reparsed:
    timeline = RunTimeline.read(reader, _KINDS)
    read, changed, problems, beyond = 0, list[FiguresRemade](), list[str](), dict[str, None]()
    for number, cell in timeline.cells.items():
        texts: dict[tuple[str, int], dict[str, str]] = {}
        for _, output in reader.raw_outputs(number):
            texts.setdefault((output.workload, output.tile), {})[output.name] = output.text
        for ended in cell.ended_workloads:
            if ended.outcome != Outcome.PASSED:
                continue
            try:
                workload = _workload(cell.told.settings.get("workloads", {}).get(ended.workload))
                if not workload.texts:
                    beyond[f"values of {workload.kind} cannot be made again: they need more than its texts"] = None
                    continue
                values = _figures(workload, texts.get((ended.workload, ended.tile), {}), ended.seconds)
            except WorkloadError as error:
                problems.append(f"cell {number}, {ended.workload} of tile {ended.tile}, is left as it was: {error}")
                continue
            read += 1
            changed += _changes(cell, ended, values)
    run = timeline.started.run if timeline.started else reader.path.parent.name
    return Reparsed(run, read, tuple(changed), tuple(problems), tuple(beyond))


def _workload(said: Mapping[str, Any] | None) -> AnyWorkload:
    """The workload with the parameters that a cell's settings spell out. Raises WorkloadError."""
    if not isinstance(said, dict) or not isinstance(said.get("params"), dict):
        raise WorkloadError("its record does not say what it was asked to do")
    kind = kinds().get(str(said.get("kind")))
    if kind is None:
        raise WorkloadError(f"this vmlab has no workload of the kind {said.get('kind')!r}")
    # These are the program's own values and not a scenario's words, in which sizes have units.
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in said["params"].items()}
    with _unfit():
        return kind(kind.Params.model_construct(None, **given))


@contextmanager
def _unfit() -> Iterator[None]:
    """Raises WorkloadError for the errors that parameters of another form make; a store may come from anywhere."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise WorkloadError(f"what is kept of it cannot be read ({type(error).__name__}: {error})") from error


def _figures(workload: AnyWorkload, texts: Mapping[str, str], seconds: float) -> dict[str, tuple[float, str]]:
    """Value and unit of each figure by its metric. Raises WorkloadError where a text is missing, or is refused."""
    missing = [name for name in workload.texts if name not in texts]
    if missing:
        raise WorkloadError(f"its raw text {', '.join(missing)} is not kept")
    with _unfit():
        collected = Collected(workload.figures(texts, seconds))
        # Its place and how long its guests waited are not kept, so that a time may be too long alone.
        demand_not_longer(workload.kind, workload.tool_time(collected.values, texts, "tcg"), seconds)
        readings = workload.readings(collected)
    return {one.metric: (one.value, one.unit) for one in readings}


def _changes(
    cell: CellTimeline, ended: WorkloadEnded, values: Mapping[str, tuple[float, str]]
) -> Iterator[FiguresRemade]:
    """One event with every figure that is not what it was; none where all are the same."""
    old = {
        taken.metric: taken
        for taken in cell.told.measurements
        if (taken.workload, taken.tile) == (ended.workload, ended.tile)
    }
    other = [
        metric
        for metric in {**old, **values}
        if metric not in old or metric not in values or old[metric].value != values[metric][0]
    ]
    if other:
        yield FiguresRemade(
            mono=cell.last_mono,
            cell=cell.told.cell,
            workload=ended.workload,
            tile=ended.tile,
            guest=ended.guest,
            version=__version__,
            was={metric: math.nan if (was := old[metric].value) is None else was for metric in other if metric in old},
            values={metric: values[metric][0] for metric in other if metric in values},
            units={metric: values[metric][1] if metric in values else old[metric].unit for metric in other},
        )
