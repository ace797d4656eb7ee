"""How often a scenario's cells are run, and in which order."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vmlab.model.run import MOST_LOOKS, MOST_REPEATS
from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.units import Percent, Seconds

Order = Literal["random", "as written"]
Warm = Literal[False, True, "host"]
LooksAt = Literal["claims", "table"]


class Until(ScenarioPart):
    """Repeats go on until figures are known well enough, or claims answered, or differences proven, or the time is up,
    or there are enough.
    """

    spread: Annotated[Percent, Field(gt=0, le=100)] | None = None
    """Half the width of the mean's 95 % interval, as a share of the mean, that all metrics of the tables must reach."""
    looks: tuple[Annotated[int, Field(ge=2, le=MOST_REPEATS)], ...] | None = Field(
        default=None, strict=False, min_length=1, max_length=MOST_LOOKS
    )
    """Instead of `spread`: after how many repeats there is an interim analysis; the run ends once all is answered.
    """
    looks_at: LooksAt | None = None
    """What is analysed: claims of the `reference`, or differences of the `table`; by default claims, if there are any.
    """
    time: Annotated[Seconds, Field(gt=0, le=7 * 86400)] | None = None
    """How long the run may take, such as 1 h, alone or beside `spread` or `looks`: in any case it ends before a repeat
    that would not fit."""
    at_least: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 5
    """How many repeats there are in any case: the spread of fewer is a matter of chance."""
    at_most: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 20
    """After how many repeats it ends, whatever the spread."""

    @model_validator(mode="before")
    @classmethod
    def _bounded(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("looks"), list) and value["looks"]:
            return {"at_least": value["looks"][0], "at_most": value["looks"][-1], **value}
        if value.get("time") is not None and value.get("spread") is None:
            return {"at_least": 1, "at_most": MOST_REPEATS, **value}
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Until:
        if self.spread is not None and self.looks is not None:
            raise ValueError("needs `spread` or `looks`, and not both")
        if self.spread is None and self.looks is None and self.time is None:
            raise ValueError("needs `spread`, `looks` or `time`")
        if self.looks_at is not None and self.looks is None:
            raise ValueError("has `looks_at` beside `looks` alone")
        if self.looks is not None and list(self.looks) != sorted(set(self.looks)):
            raise ValueError("needs numbers of `looks` that rise")
        if self.looks is not None and (self.at_least, self.at_most) != (self.looks[0], self.looks[-1]):
            raise ValueError("has `at_least` and `at_most` by its `looks`: leave them out")
        if self.time is None and min(self.at_least, self.at_most) < 2:
            raise ValueError("needs `at_least` and `at_most` of 2 or more")
        if self.at_least > self.at_most:
            raise ValueError("needs `at_least` no greater than `at_most`")
        return self


def as_until(value: object) -> object:
    """A bare ``2 %`` stands for that spread with the usual bounds."""
    return value if value is None or isinstance(value, bool | dict | list) else {"spread": value}
