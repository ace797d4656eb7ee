"""Exports runs that are named into a file, in a format of vmlab's own or of another package."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vmlab.model.errors import CommandFailed, RefusedError, UsageError, VmlabError
from vmlab.report.exports.export_format import ExportFormat, export_formats, format_names, of_ending
from vmlab.report.exports.tidy import Exported
from vmlab.store.reader import RunReader
from vmlab.store.runs import NamedRun, NamedSide, named_sides
from vmlab.system.entry_points import EXPORTS, broken, entries, said
from vmlab.system.given_file import new_file
from vmlab.system.packages import extra_command

_EXTRAS = {"pyarrow": "parquet"}
"""Packages that come with an extra of this one."""


def export_runs(
    runs: Sequence[str],
    output: Path,
    name: str | None = None,
    *,
    samples: bool = False,
    plain: bool = False,
    run_label: bool | None = None,
) -> tuple[str, int | None]:
    """Write runs to the file `output`, as `vmlab export` does; `name` is a format, that of the ending for None.

    Returns the format, and the number of files where it writes a folder. Raises UsageError for what names no run and
    for what does not go with the format, RefusedError where a package is missing, CommandFailed where a format of
    another package fails, StoreError for a damaged store, and OSError.
    """
    name = name or _by_ending(output)
    one = _format(name)
    write = one.write_samples if samples else one.write
    if samples and write is None:
        raise UsageError(f"--samples does not go with the format {name}")
    if plain and "guarded" not in one.options:
        raise UsageError("--plain is for CSV; no other format guards formulas")
    sides = named_sides(runs)
    named = [(side, run) for side in sides for run in side.runs]
    _demand_sense(named, name, run_label)
    with ExitStack() as stack:
        opened = [
            Exported(stack.enter_context(RunReader(run.store)), side.label if len(named) > 1 else "", run.cell)
            for side, run in named
        ]
        for exported, (_, run) in zip(opened, named, strict=True):
            if run.cell is not None and not exported.document().cells:
                raise UsageError(f"{run.name}: has no cell {run.cell}")
        if one.write_folder is not None:
            with _naming_what_lacks(name):
                return name, one.write_folder(opened[0], output)
        options = {"guarded": False} if plain else {}
        if "run_label" in one.options:
            options["run_label"] = run_label if run_label is not None else samples or len(named) > 1
        with new_file(output) as file, _naming_what_lacks(name):
            assert write is not None
            write(opened, file, **options)
    return name, None


def _format(name: str) -> ExportFormat:
    """Raises UsageError for no format, and for one of another package that is left out."""
    if (found := export_formats().get(name)) is not None:
        return found
    for one in broken():
        if (one.entry.group, one.entry.name) == (EXPORTS, name):
            raise UsageError(f"the {one.entry.words} is left out, as it cannot be used")
    raise UsageError(f"there is no format {name[:64]!r}; use {', '.join(format_names())}")


@contextmanager
def _naming_what_lacks(name: str) -> Iterator[None]:
    """Raises RefusedError where a package of an extra is missing, CommandFailed where one of another package fails."""
    try:
        yield
    except (VmlabError, OSError):
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get(error.name or "")) is not None:
            raise RefusedError(f"this format needs {error.name}", remedy=shlex.join(extra_command(extra))) from error
        entry = next(one for one in entries(EXPORTS) if one.name == name)
        if entry.is_own:
            raise
        raise CommandFailed(f"{entry.words} failed: {said(error)}") from error


def _demand_sense(named: Sequence[tuple[NamedSide, NamedRun]], name: str, run_label: bool | None) -> None:
    """Raises UsageError for runs or options that do not go with the format, and for a run that is named twice."""
    one = export_formats()[name]
    if one.one_run and (len(named) > 1 or named[0][1].cell is not None):
        raise UsageError(f"the format {name} holds one whole run")
    if run_label is not None and "run_label" not in one.options:
        raise UsageError("--run-label is for the format openmetrics")
    if run_label is False and len(named) > 1:
        raise UsageError("several runs need their label: two of them would be one series")
    seen = Counter((run.store.resolve(), run.cell) for _, run in named)
    for _, run in named:
        if seen[run.store.resolve(), run.cell] > 1 or (run.cell is not None and seen[run.store.resolve(), None]):
            raise UsageError(f"{run.name} is named twice: its values would count twice")


def _by_ending(output: Path) -> str:
    if (name := of_ending(output.suffix)) is None:
        raise UsageError(f"cannot infer the format from {output}; use --format {', '.join(format_names())}")
    return name
