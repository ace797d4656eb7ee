"""Several runs as one answer, for programs: what `compare --pooled`, `gate --run` and `tune --of` print as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vmlab.analysis.compared_runs import judged_night, pooled_runs
from vmlab.analysis.comparison.nights import USUAL_NIGHTS
from vmlab.analysis.document import run_document
from vmlab.analysis.statistics.random_effects import FEWEST_RUNS
from vmlab.api.opened_run import Run, named
from vmlab.lab.process.removed_runs import demand_free, keep_night
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import jsonable
from vmlab.store.reader import RunReader
from vmlab.store.runs import MOST_RUNS, resolve_run


def pool(*runs: str | Run, baseline: str | None = None, metric: Sequence[str] = ()) -> dict[str, Any]:
    """One answer of three or more runs of a scenario: what ``vmlab compare --pooled --json`` prints.

    Each is a `Run`, or a name as the command line takes it, also a tag of several runs. `baseline` is a value of the
    axis that the runs vary, `metric` the figures to compare, METRIC or WORKLOAD.METRIC, instead of the scenario's.

    Raises VmlabError, with one line, for fewer than three runs, and for runs that do not measure the same.
    """
    if isinstance(metric, str):
        raise UsageError("metric is a list of figures")
    found: dict[str, Any] = jsonable(pooled_runs([named(run) for run in runs], baseline=baseline, chosen=metric))
    return found


def gate_run(
    run: str | Run,
    *,
    baseline: str,
    nights: int = USUAL_NIGHTS,
    metric: Sequence[str] = (),
    allow_change: Sequence[str] = (),
    accept: bool = False,
) -> dict[str, Any]:
    """Whether a run is worse than the last `nights` with the tag `baseline` are: ``vmlab gate --run RUN --json``.

    It gets the tag unless it fails, or in any case with `accept`. `allow_change` are conditions in which nights may
    differ, such as ``host qemu``.

    Raises VmlabError, with one line, for what names no run, and for a run that was broken off.
    """
    if isinstance(metric, str) or isinstance(allow_change, str):
        raise UsageError("metric and allow_change are lists")
    if not FEWEST_RUNS <= nights <= MOST_RUNS:
        raise UsageError(f"nights is a number from {FEWEST_RUNS} to {MOST_RUNS}")
    demand_free(baseline)
    store = resolve_run(named(run))
    found = judged_night(store, baseline, nights, chosen=metric, allowed=allow_change)
    document: dict[str, Any] = jsonable(keep_night(found, store, accept=accept))
    return document


def tune_runs(screening: str | Run, confirmation: str | Run | None = None) -> dict[str, Any]:
    """What the levers of a disk are worth, and which setting won: ``vmlab tune --of SCREENING CONFIRMATION --json``.

    Without a confirmation there is no verdict. Raises VmlabError, with one line, for runs that are none of
    ``vmlab tune``, and for a confirmation of another screening.
    """
    # Imported late: they load the planner, which nothing else here needs.
    from vmlab.analysis.comparison.tuned import tuned
    from vmlab.report.tune_text import tune_document

    documents = []
    for run in (screening, confirmation):
        if run is not None:
            with RunReader(resolve_run(named(run))) as reader:
                documents.append(run_document(reader))
    return tune_document(tuned(*documents))
