"""Everything about one cell in plain text: all of its figures, not only those of the table."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.run import RawOutput
from vmlab.report.grid import WIDTH, Column, grid, paragraph, shorten
from vmlab.report.heading import heading, place_text
from vmlab.report.words import NOT_MEASURED, number


def cell_text(document: RunDocument, cell: CellDocument, width: int = WIDTH) -> str:
    """The heading of the run, then one cell: outcome, phases, every measurement, the host, the proofs."""
    lines = [*heading(document, width), ""]
    for text in _facts(cell):
        lines += paragraph(text, width, "  ")
    for section in (_measurements(cell, width), _host(cell, width), list(_proofs(cell, width))):
        lines += ["", *section] if section else []
    return "\n".join(lines) + "\n"


def _facts(cell: CellDocument) -> Iterator[str]:
    yield f"cell {cell['cell']} ({place_text(cell['axes'])}), repeat {cell['repeat']}: {cell['outcome']}"
    yield from (f"  {reason}" for reason in cell["reasons"])
    provision = cell["provision"]
    if provision["seconds"] is not None:
        yield f"{provision['guests']} guests ready after {number(provision['seconds'])} s ({provision['how']})"
    if cell["start_skew_ms"] is not None:
        known = cell["skew_uncertainty_ms"]
        uncertain = "" if known is None else f" ± {number(known)}"
        yield f"workloads started {number(cell['start_skew_ms'])}{uncertain} ms apart"
    if cell["wall_seconds"] is not None:
        yield f"total wall clock {number(cell['wall_seconds'])} s"
    if cell["phases"]:
        yield "phases: " + ", ".join(f"{name} {number(seconds)} s" for name, seconds in cell["phases"].items())


def _measurements(cell: CellDocument, width: int) -> list[str]:
    taken = cell["measurements"]
    if not taken:
        return []
    columns = [
        Column("tile", [str(one["tile"]) for one in taken]),
        Column("metric", [one["metric"] for one in taken], beside=True),
        Column("value", [NOT_MEASURED if one["value"] is None else number(one["value"]) for one in taken], beside=True),
        Column("unit", [one["unit"] for one in taken], beside=True),
    ]
    return grid("workload", [one["workload"] for one in taken], columns, width)


def _host(cell: CellDocument, width: int) -> list[str]:
    host = cell["host"]
    if not host:
        return []
    columns = [
        Column("mean", [number(figure["mean"]) for figure in host.values()]),
        Column("max", [number(figure["max"]) for figure in host.values()]),
        Column("p95", [number(figure["p95"]) for figure in host.values()]),
    ]
    return grid("host", list(host), columns, width)


def _proofs(cell: CellDocument, width: int) -> Iterator[str]:
    for proof in cell["cache_proof"]:
        flag = "on" if proof["o_direct"] else "off"
        verdict = "as asked" if proof["agrees"] else "NOT as asked"
        yield shorten(f"{proof['guest']}: cache {proof['expected']} {verdict}, O_DIRECT {flag}, {proof['file']}", width)


def raw_text(outputs: list[tuple[int, RawOutput]]) -> str:
    """What tools printed, as it was, each under a line that tells where it comes from."""
    parts = []
    for cell, output in outputs:
        where = f"cell {cell}, tile {output.tile}, {output.workload} on {output.guest}: {output.name}"
        parts.append(f"==> {where} <==\n{output.text.rstrip()}\n")
    return "\n".join(parts) or "no tool printed anything\n"
