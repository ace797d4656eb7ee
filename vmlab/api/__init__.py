"""What notebooks and programs may use of vmlab, under the name `vmlab` itself: docs/reference/api.md promises it."""

from vmlab.api.changed_run import (
    AttachedRun,
    Change,
    RunEvent,
    attach_run,
    coming_cells,
    record_host,
    resume_run,
    set_coming_cells,
    set_running_cell,
    stop_run,
)
from vmlab.api.compared_sides import Comparison, Difference, compare
from vmlab.api.kept_runs import (
    chart_runs,
    clean_runs,
    export_runs,
    gate_run,
    import_run,
    listing,
    note_run,
    pool,
    remove_runs,
    remove_tag,
    reparse_run,
    report_runs,
    tag_run,
    tags,
    tune_runs,
)
from vmlab.api.opened_run import Run, open_run, runs
from vmlab.model.errors import VmlabError

API_VERSION = 1
"""It grows with each change that breaks a program which keeps to docs/reference/api.md."""

__all__ = [
    "API_VERSION",
    "AttachedRun",
    "Change",
    "Comparison",
    "Difference",
    "Run",
    "RunEvent",
    "VmlabError",
    "attach_run",
    "chart_runs",
    "clean_runs",
    "coming_cells",
    "compare",
    "export_runs",
    "gate_run",
    "import_run",
    "listing",
    "note_run",
    "open_run",
    "pool",
    "record_host",
    "remove_runs",
    "remove_tag",
    "reparse_run",
    "report_runs",
    "resume_run",
    "runs",
    "set_coming_cells",
    "set_running_cell",
    "stop_run",
    "tag_run",
    "tags",
    "tune_runs",
]
