"""A run's tables and its publication's, read from its store, as texts for any width."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from vmlab.analysis.document import run_document
from vmlab.analysis.reference.published import beside_reference
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError
from vmlab.report.reference_text import reference_text
from vmlab.report.run.tables import run_table
from vmlab.report.run.tiles_board import QUESTION, board_of, target_bars
from vmlab.store.reader import RunReader
from vmlab.tui.state.views import Measured

OfWidth = Callable[[int], str]
"""A text for a width."""


@dataclass(frozen=True, slots=True)
class ResultText:
    """The tables of a run, and what was published beside them."""

    tables: OfWidth
    published: OfWidth

    @classmethod
    def of_problem(cls, problem: str) -> ResultText:
        """One line with the reason why there is nothing to show."""

        def text(width: int) -> str:
            return problem

        return cls(text, text)


def document_of(store: Path) -> RunDocument:
    """The document of the run at `store`. Raises StoreError for a damaged store, UsageError for none."""
    with RunReader(store) as reader:
        return run_document(reader)


def measured_of(document: RunDocument, done: Collection[int], cell: int) -> Measured:
    """What the cells whose numbers are in `done` say, and the targets of `cell`, 0 for none."""
    board = board_of(document, done)
    targets = next((target_bars(one) for one in document["cells"] if one["cell"] == cell), ())
    return Measured(QUESTION if board is not None else "", board, cell, targets)


def results_of(store: Path) -> ResultText:
    """The texts of the run at `store`. Raises StoreError for a damaged store, UsageError for none."""
    with RunReader(store) as reader:
        document = run_document(reader)
        try:
            beside = beside_reference(reader)
        except UsageError as error:
            problem = str(error)
            return ResultText(lambda width: run_table(document, width), lambda width: problem)
    return ResultText(lambda width: run_table(document, width), lambda width: reference_text(beside, width))
