"""Marks of a scenario's keys. Above all levers: keys of which a cell can be seen to have got what was set, and how far
that may be off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Lever:
    """Marks a key whose effect is measured: it was delivered where that is within `within` percent of what is set.

    A `limit` is delivered where no more than that is got. Where `each` is given, `within` is for the mean over the
    repeats of a point, and each cell may be off by `each` percent. People know it by `name`.
    """

    name: str
    within: float = 0.0
    unit: str = ""
    limit: bool = False
    each: float | None = None

    @property
    def of_cell(self) -> float:
        """The percent that a cell may be off."""
        return self.within if self.each is None else self.each

    @property
    def words(self) -> str:
        """The bound in words: ``within 5 %``."""
        if not self.within:
            return "exactly"
        if self.each is not None:
            return f"within {self.within:g} % on average over repeats, and within {self.each:g} % in each cell"
        return f"at most {self.within:g} % more" if self.limit else f"within {self.within:g} %"

    def above(self, configured: float, got: float) -> bool:
        """Whether so much more was got in a cell than was set that it was not delivered."""
        return is_above(configured, got, self.of_cell)

    def below(self, configured: float, got: float) -> bool:
        """Whether so much less was got: of a limit this says that it did not bind."""
        return is_below(configured, got, self.of_cell)


def is_above(configured: float, got: float, percent: float) -> bool:
    """Whether `got` is more than `percent` above what was configured."""
    return got > configured * (1 + percent / 100) + _ROUNDING * abs(configured)


def is_below(configured: float, got: float, percent: float) -> bool:
    """Whether `got` is more than `percent` below what was configured."""
    return got < configured * (1 - percent / 100) - _ROUNDING * abs(configured)


@dataclass(frozen=True, slots=True)
class NotSeen:
    """Marks an attribute that the guest cannot see, so that a snapshot fits with any value of it."""


@dataclass(frozen=True, slots=True)
class SeenAs:
    """Marks an attribute of which the guest sees only the result of `made_by`; that result is called `name`."""

    name: str
    made_by: Callable[[Any], Any]


NOT_SEEN = NotSeen()


def unless(name: str, usual: Any) -> SeenAs:
    """Marks an attribute of which nothing is kept where it is as `usual`, so that snapshots of before fit."""
    return SeenAs(name, lambda value: None if value == usual else value)


@dataclass(frozen=True, slots=True)
class OfDataDisk:
    """Marks an attribute of the data disk; a guest without a data disk cannot have it."""


OF_DATA_DISK = OfDataDisk()


@dataclass(frozen=True, slots=True)
class NotWith:
    """Marks a key that other keys can forbid: `why` takes the model and gives one line, None where nothing does."""

    why: Callable[[Any], str | None]


_ROUNDING = 1e-9
TILES = Lever("tiles together", within=50.0, unit="%")
"""Of the axis ``tiles``: the span in which a workload ran in all tiles, as a share of that in which it ran in any."""


Threads = Annotated[int, Lever("threads")]
"""How many threads a tool has, which its kind reads back from the tool's own report: another number fails the cell."""


class MarkedKey(NamedTuple):
    """A key of a scenario with its mark, and what it is where the scenario leaves it out."""

    key: str
    lever: Lever
    default: Any


def levers_of(model: Any) -> dict[str, MarkedKey]:
    """The levers among the fields of a pydantic model, by the names of the fields."""
    found = {}
    for name, field in model.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, Lever):
                found[name] = MarkedKey(field.alias or name, mark, field.default)
    return found
