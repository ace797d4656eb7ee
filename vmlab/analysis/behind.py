"""What stands behind the figures of a run: emulated guests, and parts of a host that were not its own."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.analysis.shape import CellDocument, RunDocument, RunPart
from vmlab.model.ordered import behind, ordered_words


def accelerator_of(run: RunPart, cells: Iterable[CellDocument]) -> str | None:
    """The accelerator behind the figures of these cells of `run`; None where only the host worked."""
    return run["accelerator"] if any(cell["provision"]["guests"] for cell in cells) else None


def words_behind(document: RunDocument) -> tuple[str, ...]:
    """The words behind all figures of a run, for titles."""
    run = document["run"]
    return behind(accelerator_of(run, document["cells"]), ordered_words(run["host"]))
