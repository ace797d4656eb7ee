"""Runs of `vmlab tune` without guests: what is planned, with readings that a function gives, as a store has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.plan.test_planning import HOST
from tests.store.stories import Story
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.plan.terms import Overrides
from vmlab.plan.tuning.fio_options import FioOptions
from vmlab.plan.tuning.tuning_scenarios import (
    AXIS,
    ScreeningPlan,
    TuningNote,
    TuningRequest,
    note_of_text,
    plan_screening,
)
from vmlab.store.reader import RunReader

Reading = Callable[[tuple[str, ...], int], float | None]
"""The figure of a setting, by the levers that it changes, in a repeat; None for an invalid cell."""
SCREENING = "20261121-143000-tune-fio-randwrite-aaaa"
CONFIRMATION = "20261121-150000-tune-fio-randwrite-bbbb"

LEVERS = ("cache", "queues", "read_ahead", "allocation")
OWN = """\
name: trial
guests:
  vm: {vcpus: 4, memory: 512 MiB, data: 2 GiB}
workloads:
  blocks: {kind: fio, on: vm, rw: read, size: 64 MiB, time: 3 s, direct: false}
"""


def screening_of(text: str = OWN, request: TuningRequest | None = None, **overrides: object) -> ScreeningPlan:
    """The plan of a screening of a scenario's text."""
    asked = Overrides(**overrides)  # type: ignore[arg-type]
    request = request or TuningRequest(LEVERS)
    return plan_screening(read(Path("own.yaml"), text, {}), asked, 2, request)


def of_fio(rw: str = "randwrite", **options: object) -> ScreeningPlan:
    """The plan of a screening of what fio does."""
    file = FioOptions(rw, **options).scenario()  # type: ignore[arg-type]
    return plan_screening(file, Overrides(), 2, TuningRequest(("cache", "queues", "allocation")))


def note_of(file: ScenarioFile) -> TuningNote:
    """What a generated scenario says of itself."""
    note = note_of_text(file.text)
    assert note is not None
    return note


def told(folder: Path, run: str, file: ScenarioFile, reading: Reading, outcome: str = "passed") -> RunDocument:
    """The document of a run of a generated scenario, with its store below `folder`."""
    plan, note = make_plan(file, Overrides(), HOST), note_of(file)
    story = Story(folder / run / "run.sqlite", run=run).begin_plan(plan)
    story.writer.document("scenario.yaml", file.text)
    story.writer.document("request", json.dumps({"overrides": {"variables": {}, "files": file.files}}))
    for cell in plan.cells:
        story.start_plan_cell(cell)
        value = reading(note.settings[str(cell.axes[AXIS])], cell.repeat)
        story.measure(note.workload, 3.0)
        story.measure(note.workload, 1.0 if value is None else value, note.metric, "1/s")
        story.end_cell("invalid" if value is None else "passed", wall=4.0)
    path = story.end(outcome)
    with RunReader(path) as reader:
        return run_document(reader)
