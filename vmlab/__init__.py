"""vmlab: a test lab for Linux hypervisors, in a terminal; for programs, what docs/reference/api.md lists."""

__version__ = "0.1.0"

_OF_API = frozenset(
    {
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
    }
)


def __getattr__(name: str) -> object:
    """The names of `vmlab.api`, which is loaded when the first of them is used: the program itself needs none."""
    if name not in _OF_API:
        raise AttributeError(f"module 'vmlab' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("vmlab.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_API})
