"""Conditions that a user sets on a comparison (`vmlab compare --fail-if`), and their answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vmlab.analysis.difference import NO_DIFFERENCE, Difference
from vmlab.model.errors import UsageError
from vmlab.model.run import AxisValue

_CONDITION = re.compile(
    r"\s*(?P<figure>[^<>]*[^<>\s.])\s*(?P<sign>[<>])\s*(?P<bound>[+-][0-9]{1,6}(?:\.[0-9]{1,6})?|0)\s*%\s*"
)
_LONGEST_SHOWN = 60


class State(StrEnum):
    """What is known of a condition at one row of a comparison."""

    MET = "met"
    POSSIBLE = "possible"
    CANNOT_TELL = "cannot tell"
    NOT_MET = "not met"


@dataclass(frozen=True, slots=True)
class Condition:
    """``web.latency_p95 > +20 %``: a figure, and beyond which difference from the baseline it must not lie.

    `figure` is a workload, or a workload and one of its metrics with a dot between them. `percent` is the bound, in
    percent of the baseline; more than that is beyond it if `above`, else less.
    """

    figure: str
    above: bool
    percent: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The inverse of `text`; blanks count for nothing. Raises UsageError, with one line, for anything else."""
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise UsageError(f"{_named(text)}: say WORKLOAD.METRIC > +20 %, with > or <, a sign, and %")
        figure, sign, bound = found.group("figure", "sign", "bound")
        return cls(figure, sign == ">", float(bound), f"{figure} {sign} {bound} %")

    @property
    def named(self) -> str:
        """The condition for a message about the option that has it."""
        return _named(self.text)

    def state(self, interval: tuple[float, float], noise: float) -> State:
        """What the interval of a difference says of it, all in percent.

        With noise the bound is that much farther away, so that what is met is beyond it by more than noise. It is
        percent of the figure itself, so it grows with a bound above 0.
        """
        low, high = interval if self.above else (-interval[1], -interval[0])
        bound = self.percent if self.above else -self.percent
        if low > bound + noise * max(1.0, 1 + self.percent / 100):
            return State.MET
        return State.POSSIBLE if high > bound else State.NOT_MET


def _named(text: str) -> str:
    return f"--fail-if {text if len(text) <= _LONGEST_SHOWN else f'{text[:_LONGEST_SHOWN]}…'!r}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a condition at one row of a comparison, for one candidate.

    `axes` are those of the row; `found` is the row's difference, with the interval that decides. `because` says why
    nothing can be told, where that is not a matter of numbers. `fails` tells whether the whole gate fails by it.
    """

    condition: Condition
    workload: str
    metric: str
    axes: dict[str, AxisValue]
    candidate: str
    state: State
    found: Difference = NO_DIFFERENCE
    because: str = ""
    fails: bool = False

    def to_json(self) -> dict[str, Any]:
        """The answer as it stands in ``vmlab.compare/2``."""
        return {
            "condition": self.condition.text,
            "workload": self.workload,
            "metric": self.metric,
            "axes": self.axes,
            "candidate": self.candidate,
            "state": str(self.state),
            "fails": self.fails,
            "because": self.because,
            "above": self.condition.above,
            "bound_percent": self.condition.percent,
            "percent": self.found.percent,
            "interval_percent": list(self.found.interval) if self.found.interval else None,
            "confidence_percent": self.found.confidence,
            "figures": self.found.family,
            "readings": self.found.readings,
            "readings_needed": self.found.needed,
            "noise_percent": self.found.noise,
        }
