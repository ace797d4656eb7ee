"""The order of a run's cells: repeats outermost, and random within each of them unless the scenario needs another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vmlab.model.names import HOST_PLACE
from vmlab.model.run import AS_WRITTEN, WARM_UP
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.terms import CellPlan


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
