"""How results are laid out: one record for scenario, plan and all readers of a run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.axis import Scalar
from vmlab.model.scenarios.scenario_part import ScenarioPart, as_tuple
from vmlab.model.scenarios.table_words import WORKLOADS, Relative, Statistic

_WORDS_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}]}
)
Metrics = Annotated[tuple[str, ...], Field(strict=False, max_length=16), BeforeValidator(as_tuple), _WORDS_SCHEMA]
Side = Annotated[
    tuple[str, ...], Field(strict=False, min_length=1, max_length=8), BeforeValidator(as_tuple), _WORDS_SCHEMA
]
Statistics = Annotated[tuple[Statistic, ...], Field(strict=False, max_length=7), BeforeValidator(as_tuple)]


class Table(ScenarioPart):
    """How results are laid out: axes, ``workloads``, ``metrics`` or ``statistics`` on either side."""

    columns: Side
    """What varies across the top: an axis, `workloads`, `metrics` or `statistics`, or a list, the outermost first."""
    rows: Side = (WORKLOADS,)
    """What varies down the side, as for `columns`."""
    metrics: Metrics = ()
    """Metrics of the workloads; also `wall_seconds`, and `host.NAME` for means of the host; `run_time` if left out."""
    statistics: Statistics = ()
    """Statistics over several measurements: mean, sd (n - 1), cv (sd in % of the mean), sum, jain, best, worst."""
    over: Literal["tiles", "repeats"] = "tiles"
    """What `statistics` cover: the tiles of a cell, or its repeats."""
    relative: Relative | None = None
    """How values are related to the baseline: difference, percent, ratio, overhead (100 % minus percent) or slowdown.
    """
    baseline: Scalar | dict[str, Scalar] | None = None
    """What values are compared with: a value of a side, or values by axis: `{setup: host}`; not an absent one."""
    best_of: Annotated[int, Field(ge=1, le=1000)] | None = None
    """The number of repeats of which only the best counts, as in some publications."""

    @property
    def figures(self) -> tuple[str, ...]:
        """The metrics that the table has."""
        return self.metrics or (RUN_TIME,)

    @property
    def is_simple(self) -> bool:
        """Whether it is one word on each side and nothing else: such tables have differences by default."""
        return len(self.columns) == len(self.rows) == 1 and not (self.metrics or self.statistics or self.relative)
