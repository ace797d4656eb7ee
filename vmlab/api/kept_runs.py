"""What programs do with recorded runs: write them to files, take in those of other machines, name and remove them, and
have several as one answer, which `compare --pooled`, `gate --run` and `tune --of` print as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from vmlab.analysis.compared_runs import judged_night, pooled_runs
from vmlab.analysis.comparison.nights import USUAL_NIGHTS
from vmlab.analysis.document import stored_document
from vmlab.analysis.statistics.random_effects import FEWEST_RUNS
from vmlab.api.opened_run import Run, named, open_run
from vmlab.lab.process.dead_runs import clean, clean_document, demand_sight
from vmlab.lab.process.measuring_runs import host_queue
from vmlab.lab.process.removed_runs import (
    demand_free,
    give_name,
    give_note,
    keep_night,
    older_runs,
    removable,
    remove_for_good,
)
from vmlab.lab.process.reparse import reparse
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import jsonable
from vmlab.report.exports.exporting import export_runs as write_export
from vmlab.report.page.report_file import write_chart, write_report
from vmlab.store import runs as stored
from vmlab.store.archive import unpack
from vmlab.store.run_list import runs_document, runs_with_sizes
from vmlab.store.runs import MOST_RUNS, resolve_run

AnyPath = str | os.PathLike[str]


def listing() -> dict[str, Any]:
    """What ``vmlab ls --json`` prints: the document ``vmlab.runs`` of docs/reference/json.md."""
    found, sizes = runs_with_sizes()
    return runs_document(found, sizes, host_queue().document())


def export_runs(
    *runs: str | Run,
    output: AnyPath,
    format: str | None = None,
    samples: bool = False,
    plain: bool = False,
    run_label: bool | None = None,
) -> None:
    """Write runs to a file as ``vmlab export`` does, the newest for none; without `format` by the file's ending.

    Raises VmlabError, with one line, for what names no run and for what does not go with the format; OSError.
    """
    names = [named(run) for run in runs] or ["last"]
    write_export(names, Path(output), format, samples=samples, plain=plain, run_label=run_label)


def report_runs(*runs: str | Run, output: AnyPath, format: str | None = None) -> None:
    """Write a report of runs to a file as ``vmlab report`` does: ``html`` or ``md``, by its ending for None.

    Raises VmlabError, with one line, for what names no run, and without matplotlib, which HTML needs; OSError.
    """
    if not runs:
        raise UsageError("a report needs a run")
    write_report([named(run) for run in runs], Path(output), format)


def chart_runs(*runs: str | Run, output: AnyPath, figure: str | None = None) -> None:
    """Write one chart of a comparison to a file, SVG or PNG by its ending, as ``vmlab report --chart`` does.

    `figure` is a workload, a metric, or ``WORKLOAD.METRIC``; for None what the scenario asks for. Raises VmlabError,
    with one line, for what names no run, no figure or several, and without matplotlib; OSError.
    """
    if not runs:
        raise UsageError("a chart needs a run")
    write_chart([named(run) for run in runs], Path(output), figure)


def import_run(file: AnyPath) -> Run:
    """Add the run in an archive that ``vmlab export`` wrote to the runs here.

    Raises VmlabError, with one line, for what is no such archive or is damaged, and where the run is here already.
    """
    return open_run(unpack(Path(file)))


def tags() -> dict[str, tuple[str, ...]]:
    """The ids of the runs of each name that a user gave, by name; () where its file is damaged."""
    return stored.all_tags()


def tag_run(run: str | Run, name: str) -> None:
    """Give a run a name, as ``vmlab tag`` does; one that others have moves. ``A,B`` have it together.

    Raises VmlabError, with one line, for a name that it cannot have, and for what names no run in the folder of runs.
    """
    demand_free(name)
    give_name(named(run), name)


def remove_tag(name: str) -> None:
    """Remove a name; its runs stay. Raises VmlabError where there is none."""
    if not stored.remove_tag(name):
        raise UsageError(f"there is no name {name[:64]!r}")


def note_run(run: str | Run, note: str) -> None:
    """Note what a run was, in the place of an earlier note; an empty one removes it.

    Raises VmlabError, with one line, for more than 500 characters, and for what names no run in the folder of runs.
    """
    give_note(named(run), note)


def remove_runs(*runs: str | Run, older: timedelta | None = None, tagged: bool = False) -> list[str]:
    """Remove runs that are over, with their records and names, for good and without a question; their ids.

    In place of `runs` it may be those that began longer ago than `older`, with a name only if `tagged`.
    Raises VmlabError, and removes none, for what names no run in the folder of runs, and unless `tagged` for a run
    that has a name; also for one that is under way or left something on the host, where those before it have gone.
    """
    if older is not None and runs:
        raise UsageError("runs are removed by their names or by their age")
    if older is None:
        ids = removable([named(run) for run in runs], named_too=tagged)
    else:
        ids = older_runs(older.total_seconds(), named_too=tagged)
    for run in ids:
        remove_for_good(run)
    return ids


def clean_runs() -> dict[str, Any]:
    """Clean up after runs that crashed or were killed, as ``vmlab clean --json``: the document ``vmlab.clean``.

    What could not be removed is `left` in it, and no error. Raises VmlabError where this user may not see all runs.
    """
    demand_sight()
    return clean_document(clean())


def reparse_run(run: str | Run, *, dry_run: bool = False) -> dict[str, Any]:
    """Make a run's figures again from the raw output, as ``vmlab reparse --json``: the document ``vmlab.reparse``.

    Raises VmlabError, with one line, for a run that is under way, and for a store that is damaged or not writable.
    """
    return reparse(resolve_run(named(run)), dry_run=dry_run).to_json(dry_run=dry_run)


def pool(*runs: str | Run, baseline: str | None = None, metric: Sequence[str] = ()) -> dict[str, Any]:
    """One answer of three or more runs of a scenario: what ``vmlab compare --pooled --json`` prints.

    Each is a `Run`, or a name as the command line takes it, also a tag of several runs. `baseline` is a value of the
    axis that the runs vary, `metric` the figures to compare, METRIC or WORKLOAD.METRIC, instead of the scenario's.

    Raises VmlabError, with one line, for fewer than three runs, and for runs that do not measure the same.
    """
    if isinstance(metric, str):
        raise UsageError("metric is a list of names of metrics")
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

    runs = [run for run in (screening, confirmation) if run is not None]
    return tune_document(tuned(*(stored_document(resolve_run(named(run))) for run in runs)))
