"""The order of a run's cells: repeats outermost, and random within each of them unless the scenario needs another;
and plans of loops (``--loop``): which workloads can start again, and how long their cells take.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vmlab.model.errors import UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import AS_WRITTEN, WARM_UP
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.terms import CellPlan, Overrides
from vmlab.workloads.registry import kinds


def ordered(once: Sequence[CellPlan], repeats: int, scenario: Scenario) -> Iterator[CellPlan]:
    """The cells of `once`, which are those of one repeat as they are written, `repeats` times in their order.

    A block is one repeat of all cells: what changes on the host from block to block falls on all of them, and the
    random order within a block keeps a drift from falling on the same ones each time.
    """
    blocks = [_block(once, repeat, scenario) for repeat in range(1, repeats + 1)]
    if scenario.warm_up and once:
        # One for each host of a fleet, in the order in which they come first.
        first = {cell.axes.get(HOST_PLACE): cell for cell in reversed(blocks[0])}
        yield from (replace(first[host], repeat=WARM_UP) for host in reversed(first))
    for block in blocks:
        yield from block


def _block(once: Sequence[CellPlan], repeat: int, scenario: Scenario) -> list[CellPlan]:
    cells = [replace(cell, repeat=repeat) for cell in once]
    if scenario.order == AS_WRITTEN:
        return cells
    return sorted(cells, key=lambda cell: _lot(scenario.seed, cell))


def _lot(seed: int, cell: CellPlan) -> bytes:
    """A draw for the cell's place in its block: the same on every host and with every version of Python, and cells
    keep their order to each other when others are added or left out.
    """
    drawn = json.dumps([seed, cell.repeat, sorted(cell.axes.items())])
    return hashlib.sha256(drawn.encode()).digest()


USUAL_LOOP = 30 * 60.0
"""Seconds of a loop for which no time is said."""
LONGEST_LOOP = 4 * 3600.0
"""Seconds. A loop is a show for people who watch; what it writes to guests' disks and into its record is bounded."""


def looped(cells: Sequence[CellPlan], overrides: Overrides) -> tuple[CellPlan, ...]:
    """The cells with the time of their loop. Raises UsageError where they cannot be looped."""
    seconds = overrides.loop or 0.0
    if overrides.control:
        raise UsageError("--loop and --control exclude each other: values of a loop do not count, and show no noise")
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
