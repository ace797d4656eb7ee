"""What a report says of its cells: in which order they ran, and what is known of each besides its figures."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.run import WARM_UP
from vmlab.report.bound_text import bound_lines
from vmlab.report.run.switch_text import switch_lines
from vmlab.report.words import order_words


def order_sentence(document: RunDocument) -> str:
    """In how many blocks, in which order and by which seed the cells ran; they are listed in that order."""
    run, cells = document["run"], document["cells"]
    blocks = sorted({cell["block"] for cell in cells} - {WARM_UP})
    how = order_words(run["order"], run["seed"])
    after = ", after a warm-up" if any(cell["warm_up"] for cell in cells) else ""
    what = "one block" if len(blocks) <= 1 else f"{len(blocks)} blocks, each of which is one repeat of all cells"
    return f"The cells ran in {what}, {how}{after}; they are listed in the order in which they ran."


def cell_lines(cell: CellDocument) -> Iterator[str]:
    """The place of a cell in the order, what bound it, and where its bytes went."""
    if not cell["warm_up"]:
        yield f"Block {cell['block']}, place {cell['position']}."
    for line in switch_lines(cell):
        yield f"{line[0].upper()}{line[1:]}."
    yield from bound_lines(cell)
