"""What fio printed, byte for byte, in folders that fio-plot reads: ``MODE-DEPTH-JOBS.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vmlab.analysis.cell_shape import CellDocument
from vmlab.model.axes import axis_word
from vmlab.model.errors import RefusedError, UsageError
from vmlab.report.exports.tidy import Exported
from vmlab.system.removal import named

_NUMBER = "cell number"
"""Takes part in a folder's name only where the axes alone are not enough."""
_OUTPUT = "fio"
"""The name under which the workload of kind ``fio`` keeps fio's report."""


@dataclass(frozen=True, slots=True)
class _Report:
    """One report: the name of its file, what its folder is called by, and the axes that may be part of that."""

    file: str
    parts: tuple[str, ...]
    axes: dict[str, str]
    text: str

    def place(self, axes: Sequence[str]) -> tuple[str, str]:
        """Folder and file, where the folder is called by `axes` too."""
        shown = [f"{name}-{self.axes[name]}" for name in axes if name in self.axes]
        return "_".join(map(_safe, (*self.parts, *shown))), self.file


def write_fio(run: Exported, folder: Path) -> int:
    """Write all reports of a run into the new `folder`; how many.

    fio-plot draws a folder as one chart over depth and jobs, so reports share one as far as their names differ. Raises
    UsageError where the run has none, RefusedError where the folder is not empty.
    """
    reports = list(_reports(run))
    if not reports:
        raise UsageError("the run has no report of fio: no workload of kind fio passed")
    with named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RefusedError(f"{folder} is not empty")
    axes = _needed(reports)
    for report in reports:
        inner, file = report.place(axes)
        path = folder / inner / file
        with named(path):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(report.text.encode("utf-8", "surrogateescape"))
    return len(reports)


def _reports(run: Exported) -> Iterator[_Report]:
    cells = {cell.cell: cell for cell in run.document().cells}
    for number, output in run.reader.raw_outputs():
        cell = cells.get(number)
        params = _params(cell, output.workload) if cell is not None else None
        if cell is None or output.name != _OUTPUT or params is None:
            continue
        yield _Report(
            file=f"{params['rw']}-{params['depth']}-{params['jobs']}.json",
            parts=(output.workload, f"tile-{output.tile}", _repeat(cell), f"block-{params['block']}"),
            axes={_NUMBER: str(number), **{name: axis_word(value) for name, value in cell.axes.items()}},
            text=output.text,
        )


def _repeat(cell: CellDocument) -> str:
    return f"repeat-{cell.repeat}" + (f"-attempt-{cell.attempt}" if cell.attempt > 1 else "")


def _params(cell: CellDocument, workload: str) -> dict[str, str] | None:
    """The parameters that the names need; None for another kind."""
    settings = cell.settings.get("workloads", {}).get(workload, {})
    params = settings.get("params") or {}
    if settings.get("kind") != "fio" or not {"rw", "depth", "jobs", "block"} <= params.keys():
        return None
    return {name: _safe(str(params[name])) for name in ("rw", "depth", "jobs", "block")}


def _needed(reports: Sequence[_Report]) -> list[str]:
    """The axes without which two reports would have one place; an axis that only varies depth or mode is none."""
    axes = list(dict.fromkeys(name for report in reports for name in report.axes))
    for name in list(axes):
        without = [other for other in axes if other != name]
        if len({report.place(without) for report in reports}) == len(reports):
            axes = without
    return axes


def _safe(text: str) -> str:
    """A part of a file's name: no slash, no leading dot, nothing that a shell would read."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip(".")[:60] or "-"
