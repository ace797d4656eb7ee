"""What the user marked on the Runs screen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pick:
    """A run, or one cell of it, that the user marked."""

    store: Path
    cell: int | None = None
