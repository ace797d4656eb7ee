"""Cells as one of their workloads sees them: in a cell that failed, each workload ended in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vmlab.analysis.cell_shape import CellDocument
from vmlab.model.run import Outcome, worst


def as_of(workload: str, cells: Sequence[CellDocument]) -> list[CellDocument]:
    """`cells` with the outcome that `workload` had in those that failed, over its tiles.

    Where all of its tiles passed, the outcome is ``invalid``: it was measured, but beside a workload that did not do
    its work. A workload that did not begin failed with its cell.
    """
    return [_own(workload, cell) if cell.outcome == Outcome.FAILED else cell for cell in cells]


def _own(workload: str, cell: CellDocument) -> CellDocument:
    ended = [one.outcome for one in cell.workloads if one.workload == workload]
    if not ended:
        return cell
    own = Outcome.FAILED if Outcome.FAILED in ended else worst(ended)
    return replace(cell, outcome=str(Outcome.INVALID if own == Outcome.PASSED else own))
