"""Which cells are readings of their point."""

from __future__ import annotations

from vmlab.analysis.cell_shape import CellDocument
from vmlab.model.run import WARM_UP


def counts(cell: CellDocument) -> bool:
    """Whether a cell's figures count: not those of a warm-up, of a loop, or of a cell that was changed while it ran."""
    return cell.repeat != WARM_UP and not cell.looped and not was_switched(cell)


def was_switched(cell: CellDocument) -> bool:
    """Whether a cell's cache mode, KSM or tiles changed while its workloads ran, which invalidates it."""
    return bool(cell.switches or cell.tile_changes)
