"""The runs of a comparison as a user names them: their stores are read, and become its sides, or a host's noise.

That is from a control run: one configuration measured as both sides of a comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Key, Noise, Row
from vmlab.analysis.comparison.meetings import Side, demand_distinct, sides_by_axis, with_baseline
from vmlab.analysis.comparison.overall import Overall
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import StoreError, UsageError
from vmlab.model.event import RunStarted
from vmlab.model.places import runs_folder
from vmlab.model.run import OF_HOST
from vmlab.model.visible import quoted, visible_values
from vmlab.store.reader import RunReader
from vmlab.store.runs import by_time, named_sides, resolve_run, tagged

if TYPE_CHECKING:
    from vmlab.analysis.comparison.nights import NightGate
    from vmlab.analysis.comparison.pooled import PooledComparison
    from vmlab.analysis.reference.published import BesideReference


def sides_to_compare(
    references: Sequence[str], cell: int | None = None, *, whole: bool = False, baseline: str | None = None
) -> list[Side]:
    """A side for each reference; a single run falls into the values of the axis that it varies.

    The first is the `baseline`: a reference, or the id of its only run, or of one run the value of its axis, also as
    AXIS=VALUE; without one it is the first that is named. With `whole` they have the resources at their limit, too.
    A run that varies no axis is the only side, as is a single cell.
    Raises UsageError for what names no run or no side, or a cell twice, StoreError for a damaged store.
    """
    sides = list(_sides(references, cell, whole=whole))
    demand_distinct(sides)
    return with_baseline(sides, baseline)


def pooled_runs(
    references: Sequence[str], *, baseline: str | None = None, chosen: Sequence[str] = ()
) -> PooledComparison:
    """One answer of all runs that the references name, one by one, by commas or by a name that they have in common.

    Raises UsageError for what names no whole run, and as `pool` does; StoreError for a damaged store.
    """
    from vmlab.analysis.comparison.pooled import pool

    named = [run for side in named_sides(references) for run in side.runs]
    if one := next((run for run in named if run.cell is not None), None):
        raise UsageError(f"--pooled takes whole runs, and {quoted(one.name)} is a cell")
    return pool([_document(run.store) for run in named], baseline=baseline, chosen=chosen)


def _sides(references: Sequence[str], cell: int | None, *, whole: bool) -> Iterator[Side]:
    sides = named_sides(references, cell)
    if len(sides) == len(sides[0].runs) == 1 and sides[0].runs[0].cell is None:
        run = sides[0].runs[0]
        document = _document(run.store, whole=whole)
        yield from sides_by_axis(document) or ([Side.of(run.name, document)] if document.cells else [])
        return
    for side in sides:
        parts = [Side.of(run.name, _document(run.store, whole=whole), run.cell) for run in side.runs]
        yield Side.of_runs(side.label, parts)


def judged_night(
    store: Path, baseline: str, nights: int, *, chosen: Sequence[str] = (), allowed: Sequence[str] = ()
) -> NightGate:
    """The run of this store against so many of the last runs named `baseline` that began before it.

    Raises UsageError for a name whose file is damaged, and as `judge_night` does; StoreError for a damaged store.
    """
    from vmlab.analysis.comparison.nights import judge_night

    tonight, named = _document(store), tagged(baseline)
    if named == ():
        raise UsageError(f"{baseline!r} names no run, as its file is damaged; `vmlab tag --rm {baseline}` removes it")
    before = sorted((run for run in named or () if by_time(run) < by_time(tonight.run.id)), key=by_time)[-nights:]
    found: list[RunDocument] = []
    gone: list[tuple[str, str]] = []
    for run in before:
        try:
            found.append(_document(resolve_run(str(runs_folder() / run))))
        except (UsageError, StoreError):
            gone.append((run, "it is not here any more, or damaged"))
    return judge_night(tonight, found, baseline=baseline, chosen=chosen, allowed=allowed, gone=gone)


def beside_published(reference: str) -> BesideReference:
    """What was published, beside the run of that name; alone for the name of a shipped scenario, or a YAML file.

    Raises UsageError for what names neither, and ScenarioError for a file that is no scenario.
    """
    # Imported late: it loads the planner and the reader of YAML, which double the time of a comparison.
    from vmlab.analysis.reference.published import beside_reference, published_alone
    from vmlab.plan.planning import load_valid
    from vmlab.plan.scenario_file.loading import shipped_names

    if reference.endswith((".yaml", ".yml")) or reference in shipped_names():
        return published_alone(load_valid(reference).scenario)
    with RunReader(resolve_run(reference)) as reader:
        return beside_reference(reader)


def noise_of_run(reference: str | None) -> Noise | None:
    """The noise of the control run of that name; None for none. Raises UsageError where it is no control run."""
    return None if reference is None else noise_of(_document(resolve_run(reference)))


def noise_of(document: RunDocument) -> Noise:
    """The noise that a control run shows: by figure the far end of the difference's interval, at all its places.

    Raises UsageError where the run has not two sides, or too few repeats for an interval.
    """
    run, sides = document.run, sides_by_axis(document)
    if len(sides) != 2:
        raise UsageError(f"run {run.id} is no control run: it has not two sides")
    found = compare(sides)
    rows = found.rows
    percents: dict[Key, float] = {}
    every: list[Row | Overall] = [*rows, *(row.at_best_speed for row in rows if row.at_best_speed), *found.overall]
    for row in every:
        if (interval := row.differences[0].interval) is not None:
            percents[row.key] = max(*map(abs, interval), percents.get(row.key, 0.0))
    if not percents:
        raise UsageError(f"run {run.id} has too few repeats to show how noisy its host is")
    return Noise(
        of=run,
        repeats=max(row.differences[0].readings for row in rows),
        blocks=len({cell.block for cell in document.cells if not cell.warm_up}),
        percents=percents,
        alike=run.control or _alike(sides),
    )


def _alike(sides: Sequence[Side]) -> bool:
    """Whether the record says that both sides are configured alike at all places."""
    recorded = all(cell.settings for side in sides for cell in side.cells)
    configured = [{json.dumps([cell.axes, cell.settings], sort_keys=True) for cell in side.cells} for side in sides]
    return recorded and all(one == configured[0] for one in configured)


def named_recordings(references: Sequence[str]) -> list[tuple[str, RunDocument]]:
    """Label and document of each run where all are recordings of the host; [] where none is.

    Raises UsageError where some are.
    """
    runs = [run for side in named_sides(references, None) for run in side.runs]
    with_size = [(run.name, run.store, _is_recording(run.store)) for run in runs]
    if not any(recorded for *_, recorded in with_size):
        return []
    if not all(recorded for *_, recorded in with_size):
        raise UsageError("a recording of the host is compared with other recordings, and not with runs")
    if len({store.resolve() for _, store, _ in with_size}) < len(with_size):
        raise UsageError("a recording is named twice, and nothing is compared with itself")
    return [(name, visible_values(_document(store, whole=True))) for name, store, _ in with_size]


def _is_recording(store: Path) -> bool:
    with RunReader(store) as reader:
        first = next((event for _, event in reader.events(kinds=(RunStarted,))), None)
    return isinstance(first, RunStarted) and first.size == OF_HOST


def _document(store: Path, *, whole: bool = False) -> RunDocument:
    """What a comparison reads of a run, or its `whole` document, which has the resources at their limit, too."""
    with RunReader(store) as reader:
        return run_document(reader) if whole else compared_document(reader)
