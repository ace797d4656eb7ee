"""The table of a run: what was measured, laid out as its scenario asks, with what is doubtful told below."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.analysis.figure import workloads_of
from vmlab.analysis.intent import WORKLOADS
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.run import Outcome
from vmlab.report.blocks import block_lines
from vmlab.report.grid import WIDTH, paragraph
from vmlab.report.heading import heading, place_text
from vmlab.report.host_rows import host_lines
from vmlab.report.layout import Layout, baseline_of, layout_of
from vmlab.report.words import MARK, axis_word


def run_table(document: RunDocument, width: int = WIDTH) -> str:
    """The plain text of a run's results; no line is wider than `width`, which should be 60 or more.

    A run that has no cell yet is its heading alone.
    """
    layout = layout_of(document)
    lines = heading(document, width)
    for block in layout.blocks:
        lines += ["", *block_lines(document, layout, block, width)]
        lines += _section(host_lines(document, layout, block, width))
    lines += _section([line for note in _notes(document, layout) for line in paragraph(note, width, "  ")])
    return "\n".join(lines) + "\n"


def _section(lines: list[str]) -> list[str]:
    return ["", *lines] if lines else []


def _notes(document: RunDocument, layout: Layout) -> Iterator[str]:
    names = [axis_word(value) for value in layout.column_values] or workloads_of(document["cells"])
    if layout.rows != WORKLOADS and len(names) > 1:
        baseline = baseline_of(layout, names)
        yield f"ratio: time of {baseline} over the time in the column before; 1 is as fast, less is slower"
    if any(cell["repeat"] > 1 for cell in document["cells"]):
        yield "±: half width of the 95 % confidence interval of the mean over the repeats"
    for cell in document["cells"]:
        if cell["outcome"] != Outcome.PASSED:
            yield _doubt(cell)
    yield from document["run"]["notices"]


def _doubt(cell: CellDocument) -> str:
    where = ", ".join(filter(None, [place_text(cell["axes"]), f"repeat {cell['repeat']}"]))
    reasons = "; ".join(cell["reasons"]) or "it has no end in the store"
    return f"{MARK} cell {cell['cell']} ({where}) is {cell['outcome']}: {reasons}"
