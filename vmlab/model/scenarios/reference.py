"""What a publication printed: its figures, each with its place, and its claims as sentences that a run answers."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from vmlab.model.printed import printed_number
from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.axis import Scalar
from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.scenarios.table import Relative, Statistic
from vmlab.model.units import Percent

_TITLE = re.compile(r'"(?P<title>[^"]+)"')
_POINT_WORDS = ("metric", "statistic")
_COMPARISONS = ("less", "greater", "equal_within", "ratio")


def _quoted(value: object) -> object:
    """YAML makes 85.344 of 85.3440, so what is printed must be a text."""
    if isinstance(value, bool | int | float):
        raise ValueError("needs quotation marks, such as '85.3440': a YAML number loses zeros that were printed")
    if isinstance(value, str):
        printed_number(value)
    return value


Printed = Annotated[
    str,
    BeforeValidator(_quoted),
    WithJsonSchema({"type": "string", "description": "A figure as it is printed, in quotation marks."}),
]
Place = dict[str, Scalar]


class PublishedFigure(ScenarioPart):
    """One figure as it is printed, and the place in a run's tables that it stands for."""

    metric: str = RUN_TIME
    """What it is a figure of: a metric of a workload, `wall_seconds`, or `host.NAME`."""
    rows: Place = Field(default_factory=dict)
    """Where it stands, by the parts of the table's rows: `{threads: 4}`; `workloads: NAME` names a workload."""
    columns: Place = Field(default_factory=dict)
    """Where it stands, by the parts of the table's columns."""
    value: Printed
    """The figure as it is printed, in quotation marks."""
    unit: str = "1"
    """The unit as it is printed."""
    where: str = ""
    """Where it is printed: table, row and column in the words of the publication, with bars between them."""
    relative: Relative | None = None
    """How a figure that was derived from others stands to its baseline."""
    to: Place = Field(default_factory=dict)
    """The baseline of a relative figure, where it is another one than the table's."""
    statistic: Statistic = "mean"
    """What it is of several tiles or repeats; `statistics` in `rows` or `columns` says the same."""
    kind: Literal["measured", "relative", "text"] = "measured"
    """Whether it was measured, derived from measured figures, or stands in a sentence."""
    corrected: str | None = None
    """What it should be, where the publication's own figures show that it is wrong."""
    why: str = ""
    """What shows that it is wrong."""

    @model_validator(mode="before")
    @classmethod
    def _derived(cls, value: object) -> object:
        if isinstance(value, dict) and value.get("relative") is not None and "kind" not in value:
            return {**value, "kind": "relative"}
        return value

    @model_validator(mode="after")
    def _reasoned(self) -> PublishedFigure:
        if self.kind == "relative" and self.relative is None:
            raise ValueError("a relative figure needs `relative`, such as percent or ratio")
        if self.corrected is not None and not self.why:
            raise ValueError("`corrected` needs `why`: what shows that the printed figure is wrong")
        return self

    @property
    def place(self) -> Place:
        """Rows and columns together."""
        return {**self.rows, **self.columns}


class Claim(ScenarioPart):
    """A sentence of a publication in a form that a run answers: exactly one of the four comparisons."""

    say: Annotated[str, Field(min_length=1)]
    """The sentence."""
    metric: str = RUN_TIME
    """What is compared: a metric of a workload, `wall_seconds`, or `host.NAME`."""
    statistic: Statistic = "mean"
    """The statistic over the tiles of a cell that is compared."""
    less: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=16)
    """Places of which each has less than the one after it; a place may also name `metric` and `statistic`."""
    greater: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=16)
    """Places of which each has more than the one after it."""
    equal_within: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=16)
    """Places that have the same, but for `tolerance`."""
    ratio: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=2)
    """Two places; the first one's figure over the second one's is `value`, but for `tolerance`."""
    value: Printed | None = None
    """The ratio, in quotation marks."""
    tolerance: Percent = 5.0
    """By how much figures that should be equal may differ, such as 5 %, which is the default."""
    by: Percent = 0.0
    """How much less or greater it must be at least, in percent of the figure after it, such as 10 %."""
    each: dict[str, Annotated[tuple[Scalar, ...], Field(strict=False, min_length=1, max_length=100)]] = Field(
        default_factory=dict
    )
    """Values of axes, for every combination of which the sentence must hold."""
    where: str = ""
    """Where it is printed."""

    @model_validator(mode="after")
    def _one_comparison(self) -> Claim:
        given = [name for name in _COMPARISONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"needs one of {', '.join(_COMPARISONS)}, not {len(given)}")
        if (self.ratio is None) != (self.value is None):
            raise ValueError("`ratio` and `value` go together, such as ratio: [{…}, {…}], value: '0.75'")
        return self

    @property
    def places(self) -> tuple[Place, ...]:
        """The places that are compared, in order."""
        return self.less or self.greater or self.equal_within or self.ratio or ()

    @property
    def comparisons(self) -> int:
        """How many comparisons of two places it takes: a chain of places has one less, for each combination."""
        return (len(self.places) - 1) * math.prod(map(len, self.each.values()))


def place_axes(place: Place) -> Place:
    """A claim's place without the keys that are not parts of a table."""
    return {name: value for name, value in place.items() if name not in _POINT_WORDS}


class Reference(ScenarioPart):
    """The figures and claims of a publication that the scenario reproduces; other keys are free."""

    model_config = ConfigDict(extra="allow")

    source: str
    """Title, author and place of what was published."""
    host: str = ""
    """What it was measured on."""
    here: str = ""
    """What is different here from what was published, and why."""
    figures: Annotated[tuple[PublishedFigure, ...], Field(strict=False, max_length=1000)] = ()
    """The figures as they are printed."""
    claims: Annotated[tuple[Claim, ...], Field(strict=False, max_length=100)] = ()
    """Its claims, as sentences that are checked against a run."""

    @property
    def title(self) -> str:
        """The title of the publication: what stands in quotation marks at the beginning of `source`, or all of it."""
        match = _TITLE.match(self.source)
        return match["title"] if match else self.source

    @property
    def notes(self) -> dict[str, Any]:
        """The keys that are free."""
        return dict(self.model_extra or {})
