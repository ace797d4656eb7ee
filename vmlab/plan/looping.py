"""Plans of loops (``--loop``): which workloads can start again, and how long their cells take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vmlab.model.errors import UsageError
from vmlab.plan.terms import CellPlan, Overrides
from vmlab.workloads.registry import kinds

USUAL_LOOP = 30 * 60.0
"""Seconds of a loop for which no time is said."""
LONGEST_LOOP = 4 * 3600.0
"""Seconds. A loop is a show for people who watch; what it writes to guests' disks and into its record is bounded."""


def looped(cells: Sequence[CellPlan], overrides: Overrides) -> tuple[CellPlan, ...]:
    """The cells with the time of their loop. Raises UsageError where they cannot be looped."""
    seconds = overrides.loop or 0.0
    if overrides.control:
        raise UsageError("--loop and --control exclude each other: figures of a loop do not count, and show no noise")
    if overrides.repeats is not None:
        raise UsageError("--loop and --repeats exclude each other: each cell of a loop runs once")
    known = kinds()
    for workload in (one for cell in cells for one in cell.workloads):
        if not known[workload.kind].loops:
            can = ", ".join(sorted(name for name, kind in known.items() if kind.loops))
            raise UsageError(
                f"workload {workload.name} is of kind {workload.kind}, which cannot start again in the same guests; "
                f"--loop is for {can}"
            )
    return tuple(replace(cell, seconds=cell.seconds + seconds) for cell in cells)
