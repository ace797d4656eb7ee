"""Conditions that a user sets on a comparison (`vmlab compare --fail-if`), and their answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from vmlab.analysis.comparison.difference import NO_DIFFERENCE, Difference
from vmlab.analysis.statistics.descriptive import compared
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import fields_of, picked
from vmlab.model.run import AxisValue
from vmlab.model.visible import quoted
from vmlab.workloads.metrics import Better, Metric, Unit
from vmlab.workloads.target_limits import limit_of

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_CONDITION = re.compile(
    r"\s*(?P<figure>[^<>]*[^<>\s.])\s*(?P<sign>[<>])\s*"
    r"(?:(?P<percent>[+-][0-9]{1,6}(?:\.[0-9]{1,6})?|0)\s*%"
    rf"|(?P<level>{_NUMBER})\s*(?P<unit>[A-Za-zµ]{{0,8}}(?:/[a-z]{{1,8}})?))\s*"
)

_LONGEST = 400
"""Characters of a condition."""


class State(StrEnum):
    """What is known of a condition at one row of a comparison."""

    MET = "met"
    POSSIBLE = "possible"
    CANNOT_TELL = "cannot tell"
    NOT_MET = "not met"


@dataclass(frozen=True, slots=True)
class Condition:
    """``web.latency_p95 > +20 %``, a bound on its difference from the baseline, or ``> 20 ms``, one on its level.

    `figure` is a workload, or a workload and one of its metrics with a dot between them. `percent` is the bound, in
    percent of the baseline; more than that is beyond it if `above`, else less. `level` is a bound on the candidate
    alone, as it was typed; the unit of the metric says what it is. It is empty for a bound in percent.
    """

    figure: str
    above: bool
    percent: float
    text: str
    level: str = ""

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The inverse of `text`; blanks count for nothing. Raises UsageError, with one line, for anything else."""
        # Blanks are tried as part of the figure and beside it, so that a long row of them takes its length squared.
        found = _CONDITION.fullmatch(text) if len(text) <= _LONGEST else None
        if found is None:
            raise UsageError(
                f"{_named(text)}: say WORKLOAD.METRIC > +20 %, with > or <, a sign, and %, "
                "or WORKLOAD.METRIC > 20 ms for the value itself"
            )
        figure, sign, percent, level, unit = found.group("figure", "sign", "percent", "level", "unit")
        if percent is not None:
            return cls(figure, sign == ">", float(percent), f"{figure} {sign} {percent} %")
        said = f"{level}{unit}" if unit.startswith("/") else f"{level} {unit}".rstrip()
        return cls(figure, sign == ">", 0.0, f"{figure} {sign} {said}", said)

    @property
    def sign(self) -> str:
        """``>`` or ``<``."""
        return ">" if self.above else "<"

    @property
    def named(self) -> str:
        """The condition for a message about the option that has it."""
        return _named(self.text)

    def bound_in(self, unit: str, more_is_better: bool | None) -> float:
        """The bound on a level in the unit of the metric. Raises UsageError for another unit."""
        better: Better | None = None if more_is_better is None else "more" if more_is_better else "less"
        plain = unit == "1" and re.fullmatch(_NUMBER, self.level)
        try:
            return limit_of(Metric(cast(Unit, unit), better, ""), float(self.level) if plain else self.level)
        except ValueError as error:
            raise UsageError(f"{self.named}: {error}") from None

    def state(self, interval: tuple[float, float], noise: float) -> State:
        """What the interval of a difference says of it, all in percent.

        With noise the bound is that much farther away, so that what is met is beyond it by more than noise. It is
        percent of the figure itself, so it grows with a bound above 0.
        """
        return self.state_of_level(interval, self.percent, noise * max(1.0, 1 + self.percent / 100), 100)

    def state_of_level(
        self, interval: tuple[float, float], bound: float, farther: float = 0.0, size: float = 0.0
    ) -> State:
        """What the interval of the candidate's level says of a bound in the same unit.

        Met where all of it is beyond the bound by more than `farther`; `size` is as of `compared`.
        """
        low, high = interval if self.above else (-interval[1], -interval[0])
        bound = bound if self.above else -bound
        if compared(low, bound + farther, size) > 0:
            return State.MET
        return State.POSSIBLE if compared(high, bound, size) > 0 else State.NOT_MET


def _named(text: str) -> str:
    return f"--fail-if {quoted(text)}"


@dataclass(frozen=True, slots=True)
class Level:
    """How large a candidate's figure is by itself, in `unit`, against a `bound`.

    `estimate` is the median of the means of all pairs of readings (Hodges and Lehmann), `interval` that of Wilcoxon's
    signed-rank test at `confidence` percent, None for too few `readings`; these are repeats, or runs in a group of
    `runs`. It takes `needed` of them at least where `figures` are asked about.
    """

    bound: float
    unit: str
    estimate: float
    interval: tuple[float, float] | None
    confidence: float | None
    readings: int
    figures: int
    needed: int
    runs: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a condition at one row of a comparison, for one candidate.

    `axes` are those of the row; `found` is the row's difference, with the interval that decides, and `level` the same
    of a bound on the figure itself. `because` says why nothing is known, where that is not a matter of numbers.
    `fails` tells whether the whole gate fails by it. `to_decide` is how many repeats, or runs a side, decide in four of
    five cases what is possible, if the figures go on as seen; None for more than are counted.
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
    level: Level | None = None
    to_decide: int | None = None

    @property
    def undecided(self) -> bool:
        """Whether the condition is neither met nor not met here, and the gate does not fail by it."""
        return self.state in (State.POSSIBLE, State.CANNOT_TELL) and not self.fails

    def json_fields(self) -> dict[str, Any]:
        """The answer as it stands in ``vmlab.compare/2``."""
        found = fields_of(self.found)
        return {
            "condition": self.condition.text,
            **picked(self, "workload", "metric", "axes", "candidate", "state", "fails", "because"),
            "above": self.condition.above,
            "bound_percent": None if self.condition.level else self.condition.percent,
            "level": self.level,
            **{name: found[name] for name in ("percent", "interval_percent", "confidence_percent")},
            "figures": self.found.family,
            "readings": self.found.readings,
            "readings_needed": self.found.needed,
            "readings_to_decide": self.to_decide,
            "noise_percent": self.found.noise,
        }
