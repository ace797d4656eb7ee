"""Up to how many percent figures of a host differ where nothing does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vmlab.analysis.comparison.conditions import differing
from vmlab.analysis.shape import RunPart

Key = tuple[str, str]
"""A workload (or the total wall clock) and a metric."""
_WITHOUT_MEANING = ("seed",)
"""Conditions that may differ between a control run and those that its noise is used for."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Up to how many percent figures differ where nothing does, and the run that showed it.

    `repeats` are the readings of each side, of so many `blocks` of the run. `at_best_speed` are the percentages of
    the figures at the CPUs' best speed, as far as the run has them. `alike` is whether both sides are known to be
    configured alike.
    """

    of: RunPart
    repeats: int
    blocks: int
    percents: Mapping[Key, float]
    at_best_speed: Mapping[Key, float] = field(default_factory=dict)
    alike: bool = True

    @property
    def run(self) -> str:
        """The id of the run."""
        return self.of.id

    @property
    def what(self) -> str:
        """What the run is in words."""
        return "control run" if self.of.control else "run"

    def doubts(self, label: str, run: RunPart) -> Iterator[str]:
        """Why this may not be the noise of `run`, which is called `label`: a line for each reason."""
        if not self.alike:
            yield (
                f"run {self.run} is not known to have one configuration on both sides, as a control run has: "
                "what is taken for noise may be a difference"
            )
        for one in differing([run, self.of], []):
            if one.what not in _WITHOUT_MEANING:
                yield f"the noise was measured under other conditions: {one.line([label, self.run])}"

    def to_json(self) -> dict[str, Any]:
        """Where the noise of a comparison comes from, as it stands in ``vmlab.compare/2``."""
        return {
            "run": self.run,
            "control": self.of.control,
            "started": self.of.started,
            "readings": self.repeats,
            "blocks": self.blocks,
            "figures": [
                {
                    "workload": workload,
                    "metric": metric,
                    "percent": percent,
                    "percent_without_yardstick": None,
                    "percent_at_best_speed": self.at_best_speed.get((workload, metric)),
                }
                for (workload, metric), percent in self.percents.items()
            ],
        }
