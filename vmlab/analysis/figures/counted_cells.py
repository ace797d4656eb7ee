"""Which cells are readings of their point, and as what: in a cell that failed, each workload ended in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vmlab.analysis.cell_shape import CellDocument
from vmlab.model.run import WARM_UP, Outcome, worst


def is_final(cell: CellDocument) -> bool:
    """Whether a cell is the last attempt at a planned one; a warm-up is none."""
    return cell.repeat != WARM_UP and cell.replaced_by is None


def counts(cell: CellDocument) -> bool:
    """Whether a cell's figures count: not those of a warm-up, of a cell that was measured again, of a loop, or of a
    cell that was changed while it ran.
    """
    return is_final(cell) and not cell.looped and not was_switched(cell)


def was_switched(cell: CellDocument) -> bool:
    """Whether a cell's cache mode, KSM or tiles changed while its workloads ran, which invalidates it."""
    return bool(cell.switches or cell.tile_changes)


def as_of(workload: str, cells: Sequence[CellDocument]) -> list[CellDocument]:
    """`cells` with the outcome that `workload` had in those that failed, over its tiles, and without the levers of
    other workloads.

    Where all of its tiles passed, the outcome is ``invalid``: it was measured, but beside a workload that did not do
    its work. A workload that did not begin failed with its cell.
    """
    return [
        _with_own_levers(workload, _own(workload, cell) if cell.outcome == Outcome.FAILED else cell) for cell in cells
    ]


def _with_own_levers(workload: str, cell: CellDocument) -> CellDocument:
    """What was set of guests is also that of all their workloads."""
    own = [one for one in cell.delivered if one.workload in ("", workload)]
    return cell if len(own) == len(cell.delivered) else replace(cell, delivered=own)


def _own(workload: str, cell: CellDocument) -> CellDocument:
    ended = [one.outcome for one in cell.workloads if one.workload == workload]
    if not ended:
        return cell
    own = Outcome.FAILED if Outcome.FAILED in ended else worst(ended)
    return replace(cell, outcome=str(Outcome.INVALID if own == Outcome.PASSED else own))
