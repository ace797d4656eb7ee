"""A row of the matrix of faults: what is done to a lab, what should happen, and a function that does it for real."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults import rows
from tests.faults.world import World

Act = Callable[[World], str]
"""Does what the row says in a world of its own. Returns what happened, in words; raises AssertionError or TimeoutError
where that is not what should happen."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fault. `deadline` is in seconds, from the fault to the moment at which all is over."""

    name: str
    done: str
    should: str
    deadline: float
    act: Act
    guests: bool
    """Whether a real guest runs."""
    alone: bool = False
    """Whether no other row is tried meanwhile, as the row has a limit in milliseconds."""


def all_rows() -> dict[str, Row]:
    """Every row by its name, module after module of the folder `rows`. Raises ValueError for a name that two have."""
    found: dict[str, Row] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(rows.__path__)):
        for one in importlib.import_module(f"tests.faults.rows.{module}").ROWS:
            if one.name in found:
                raise ValueError(f"two rows are called {one.name}")
            found[one.name] = one
    return found


class Rows(list[Row]):
    """The rows of one module."""

    def add(
        self, name: str, done: str, should: str, deadline: float = 60.0, *, guests: bool = True, alone: bool = False
    ) -> Callable[[Act], Act]:
        """Add a row, whose function is decorated."""

        def kept(act: Act) -> Act:
            self.append(Row(name, done, should, deadline, act, guests, alone))
            return act

        return kept
