"""Up to how many percent figures of a host differ where nothing does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, str]
"""A workload (or the total wall clock) and a metric."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Up to how many percent figures differ where nothing does, and which run showed it over how many repeats.

    `without_yardstick` are those of the figures with the yardstick taken out, as far as the run has it.
    """

    run: str
    repeats: int
    percents: Mapping[Key, float]
    without_yardstick: Mapping[Key, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Where the noise of a comparison comes from, as it stands in ``vmlab.compare/2``."""
        return {"run": self.run, "readings": self.repeats}
