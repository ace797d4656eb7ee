"""CPU shares as configured, and as the guests got them while all of them wanted the CPU."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.figures.figure import Figure, figure_of, over_tiles
from vmlab.analysis.figures.workload_outcome import as_of
from vmlab.analysis.shape import CellDocument
from vmlab.report.blocks import Column
from vmlab.report.words import MARK, NOT_MEASURED

CONFIGURED = "cpu_share_configured"
GOT = "cpu_share_got"


def share_columns(workloads: Sequence[str], groups: Sequence[Sequence[CellDocument]]) -> list[Column]:
    """Shares configured and got in percent, workload by workload, for each group; none where nothing was measured."""
    found: list[Column] = []
    for heading, metric in (("share set", CONFIGURED), ("share got", GOT)):
        figures = [[figure_of(as_of(name, cells), over_tiles(name, metric)) for name in workloads] for cells in groups]
        if any(figure.spread for row in figures for figure in row):
            found.append(Column(heading, [_shares(row) for row in figures], beside=bool(found)))
    return found


def _shares(figures: Sequence[Figure]) -> str:
    text = " / ".join(f"{100 * f.spread.mean:.0f}" if f.spread else NOT_MEASURED for f in figures)
    if all(figure.spread is None for figure in figures):
        return NOT_MEASURED
    return f"{text} %" if all(figure.comparable for figure in figures) else f"{text} % {MARK}"
