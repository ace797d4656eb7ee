"""The runs that a command is given: `RUN`, `RUN:CELL`, and `A,B,C` for several on one side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.store.runs import resolve_run, runs_named

_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run as the user named it, with its store, and its one cell or None for all."""

    name: str
    store: Path
    cell: int | None


@dataclass(frozen=True, slots=True)
class NamedSide:
    """One side: the reference that the user gave, and its runs."""

    label: str
    runs: tuple[NamedRun, ...]


def named_sides(references: Sequence[str], cell: int | None = None) -> list[NamedSide]:
    """A side for each reference, of its one `cell` unless it names another. Raises UsageError for what names no run."""
    return [NamedSide(reference, tuple(_run(name, cell) for name in _runs_of(reference))) for reference in references]


def _run(reference: str, cell: int | None) -> NamedRun:
    run, named = split_cell(reference)
    return NamedRun(reference, resolve_run(run), cell if named is None else named)


def _runs_of(reference: str) -> list[str]:
    """The runs of a reference to several, by commas or by their common name; a path may have commas, too."""
    try:
        resolve_run(split_cell(reference)[0])
    except UsageError:
        return [run for part in reference.split(",") for run in runs_named(part)]
    return [reference]


def split_cell(reference: str) -> tuple[str, int | None]:
    """``last:2`` to ``("last", 2)``."""
    run, colon, cell = reference.rpartition(":")
    numbered = colon and cell.isascii() and cell.isdigit() and len(cell) <= _MOST_DIGITS
    return (run, int(cell)) if numbered else (reference, None)
