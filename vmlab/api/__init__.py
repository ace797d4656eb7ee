"""What notebooks and programs may use of vmlab, under the name `vmlab` itself: docs/reference/api.md promises it."""

from vmlab.api.compared_sides import Comparison, Difference, compare
from vmlab.api.kept_runs import (
    export_runs,
    import_run,
    listing,
    remove_runs,
    remove_tag,
    reparse_run,
    report_runs,
    tag_run,
    tags,
)
from vmlab.api.opened_run import Run, open_run, runs
from vmlab.model.errors import VmlabError

API_VERSION = 1
"""It grows with each change that breaks a program which keeps to docs/reference/api.md."""

__all__ = [
    "API_VERSION",
    "Comparison",
    "Difference",
    "Run",
    "VmlabError",
    "compare",
    "export_runs",
    "import_run",
    "listing",
    "open_run",
    "remove_runs",
    "remove_tag",
    "reparse_run",
    "report_runs",
    "runs",
    "tag_run",
    "tags",
]
