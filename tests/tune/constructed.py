"""Disks whose best setting is known by construction, and whether `vmlab tune` found it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.plan.scenario_file.yaml_text import parse

CASES = Path(__file__).parent / "cases"
BEST = "x-best"
"""The key of a case with the levers that the best setting changes; none where the default is best."""
MOST_SECONDS = 12 * 60.0


def cases() -> dict[str, Path]:
    """The scenarios by name."""
    return {path.stem: path for path in sorted(CASES.glob("*.yaml"))}


def best_of(path: Path) -> frozenset[str]:
    """The levers that the best setting of a case changes."""
    return frozenset(parse(path.read_text(encoding="utf-8"), path).value[BEST])


@dataclass(frozen=True, slots=True)
class Attempt:
    """One tuning of a case: the document that it printed, None for none, its exit code, and how long it took."""

    case: str
    document: dict[str, Any] | None
    code: int
    seconds: float

    @property
    def won(self) -> frozenset[str] | None:
        """The levers that the winner changes; none for the default, and None without a verdict."""
        if self.document is None or self.document["undecided"]:
            return None
        winner = self.document["winner"]
        levers: list[str] = next((one["levers"] for one in self.document["settings"] if one["setting"] == winner), [])
        return frozenset(levers)

    def found(self, best: frozenset[str]) -> bool:
        """Whether the verdict has the best setting: where the default is best, no other, else all levers that matter.

        Levers without an effect may stand beside them, as no test tells these from the same without them.
        """
        won = self.won
        return won is not None and (won >= best if best else not won)
