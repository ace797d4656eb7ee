"""The accelerator behind figures: a run may have cells of guests and cells of the host alone."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.shape import RunDocument, RunPart


def accelerator_of(run: RunPart, cells: Iterable[CellDocument]) -> str | None:
    """The accelerator behind the figures of these cells of `run`; None where only the host worked."""
    return run.accelerator if any(cell.provision.guests for cell in cells) else None


def accelerators_of(document: RunDocument) -> list[str | None]:
    """That behind the figures of each cell of a run."""
    return [accelerator_of(document.run, [cell]) for cell in document.cells]
