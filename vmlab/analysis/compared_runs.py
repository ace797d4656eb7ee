"""The runs of a comparison as a user names them: their stores are read, and become its sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vmlab.analysis.comparison.comparison import Noise
from vmlab.analysis.comparison.meetings import Side, sides_by_axis
from vmlab.analysis.comparison.noise import noise_of
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError
from vmlab.model.event import RunStarted
from vmlab.model.run import OF_HOST
from vmlab.model.visible import visible_values
from vmlab.store.reader import RunReader
from vmlab.store.runs import named_sides, resolve_run

if TYPE_CHECKING:
    from vmlab.analysis.reference.published import BesideReference


def sides_to_compare(references: Sequence[str], cell: int | None = None, *, whole: bool = False) -> list[Side]:
    """A side for each reference; a single run falls into the values of the axis that it varies.

    With `whole` they have the resources at their limit, too. Raises UsageError for what names no run, StoreError for a
    damaged store.
    """
    return list(_sides(references, cell, whole=whole))


def _sides(references: Sequence[str], cell: int | None, *, whole: bool) -> Iterator[Side]:
    sides = named_sides(references, cell)
    if len(sides) == len(sides[0].runs) == 1 and sides[0].runs[0].cell is None:
        yield from sides_by_axis(_document(sides[0].runs[0].store, whole=whole))
        return
    for side in sides:
        parts = [Side.of(run.name, _document(run.store, whole=whole), run.cell) for run in side.runs]
        yield Side.of_runs(side.label, parts)


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
    return [(name, visible_values(_document(store, whole=True))) for name, store, _ in with_size]


def _is_recording(store: Path) -> bool:
    with RunReader(store) as reader:
        first = next((event for _, event in reader.events(kinds=(RunStarted,))), None)
    return isinstance(first, RunStarted) and first.size == OF_HOST


def _document(store: Path, *, whole: bool = False) -> RunDocument:
    """What a comparison reads of a run, or its `whole` document, which has the resources at their limit, too."""
    with RunReader(store) as reader:
        return run_document(reader) if whole else compared_document(reader)
