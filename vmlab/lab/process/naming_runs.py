"""Names that users give to runs, none of which may be that of a scenario."""

from __future__ import annotations

from vmlab.model.errors import UsageError
from vmlab.plan.scenario_file.loading import shipped_names
from vmlab.store.named_runs import named_sides
from vmlab.store.runs import demand_unlike_ids, name_runs


def demand_free(name: str) -> None:
    """Raises UsageError, with one line, for a name that no run can have."""
    if name in shipped_names():
        raise UsageError(f"{name!r} is the name of a scenario")
    demand_unlike_ids(name)


def give_name(run: str, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give `name` to the run or the runs of a reference; their ids, and those of the runs that had the name before.

    Raises UsageError for what names no whole run, and for a name that it cannot have.
    """
    (side,) = named_sides([run])
    if any(one.cell is not None for one in side.runs):
        raise UsageError(f"{run[:64]!r} is a cell; a name is of whole runs")
    return name_runs([one.store for one in side.runs], name)
