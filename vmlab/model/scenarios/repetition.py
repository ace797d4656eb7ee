"""How often a scenario's cells are run, and in which order."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.units import Percent

MOST_REPEATS = 1000
Order = Literal["random", "as written"]
Warm = Literal[False, True, "host"]


class Until(ScenarioPart):
    """Repeats go on until the figures are known well enough, or there are enough of them."""

    spread: Annotated[Percent, Field(gt=0, le=100)]
    """Half the width of the 95 % interval of the mean, as a share of it, that every figure of the tables must reach."""
    at_least: Annotated[int, Field(ge=2, le=MOST_REPEATS)] = 5
    """How many repeats there are in any case: the spread of fewer is a matter of chance."""
    at_most: Annotated[int, Field(ge=2, le=MOST_REPEATS)] = 20
    """After how many repeats it ends, whatever the spread."""

    @model_validator(mode="after")
    def _in_order(self) -> Until:
        if self.at_least > self.at_most:
            raise ValueError("needs `at_least` no greater than `at_most`")
        return self


def as_until(value: object) -> object:
    """A bare ``2 %`` stands for that spread with the usual bounds."""
    return value if value is None or isinstance(value, bool | dict | list) else {"spread": value}
