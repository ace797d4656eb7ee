"""A run's tables and its publication's, read from its store, as texts for any width."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from vmlab.analysis.document import run_document
from vmlab.analysis.reference.published import beside_reference
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError, VmlabError
from vmlab.report.reference_text import reference_text
from vmlab.report.run.run_page import run_table
from vmlab.report.run.tiles_board import board_of, target_bars
from vmlab.store.kept_file import file_stamp
from vmlab.store.life import note_of
from vmlab.store.reader import RunReader
from vmlab.store.runs import tags_of
from vmlab.tui.state.views import Measured

OfWidth = Callable[[int], str]
"""A text for a width."""


class ResultText(NamedTuple):
    """The tables of a run, and what was published beside them; the same where that is why there is neither."""

    tables: OfWidth
    published: OfWidth


def document_of(store: Path) -> RunDocument:
    """The document of the run at `store`. Raises StoreError for a damaged store, UsageError for none."""
    with RunReader(store) as reader:
        return run_document(reader)


def measured_of(document: RunDocument, done: Collection[int], cell: int) -> Measured:
    """What the cells whose numbers are in `done` say, and the targets of `cell`, 0 for none."""
    targets = next((target_bars(one) for one in document.cells if one.cell == cell), ())
    return Measured(board_of(document, done), cell, targets)


def results_of(store: Path, *, over: bool = False) -> ResultText:
    """The texts of the run at `store`, or one line with the reason why there are none. May take a moment.

    Those of runs that are `over` are kept: a cursor that comes back finds them at once.
    """
    try:
        said = (note_of(store.parent), *tags_of(store.parent))
        return _kept(store, tuple(file_stamp(str(store)) or ()), said) if over else _read(store)
    except (VmlabError, OSError) as error:
        problem = _always(str(error))
        return ResultText(problem, problem)


@lru_cache(maxsize=32)
def _kept(store: Path, stamp: tuple[int, ...], said: tuple[str, ...]) -> ResultText:
    return _read(store)


def _read(store: Path) -> ResultText:
    with RunReader(store) as reader:
        document = run_document(reader)
        tables = partial(run_table, document, answered=True)
        try:
            return ResultText(tables, partial(reference_text, beside_reference(reader)))
        except UsageError as error:
            return ResultText(tables, _always(str(error)))


def _always(text: str) -> OfWidth:
    return lambda width: text
