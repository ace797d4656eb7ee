"""A looped cell: each workload starts again as soon as it has ended and verified itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.model.errors import UsageError
from vmlab.plan.terms import CellPlan

MOST_ROUNDS = 10_000
"""Of one workload: what a loop writes into the record stays bounded however short a round is."""

Again = Callable[[WorkloadInstance], WorkloadInstance]
"""Makes the instance of the next round, which takes the place of the one that has ended."""


class Loop:
    """Keeps the workloads of a cell going for `seconds` from `begin`, or until `end`; None for a cell without a loop.

    What is under way then ends as it would, and is verified. A round that fails ends the loop for all.
    """

    def __init__(self, plan: CellPlan, events: CellEvents, seconds: float | None, again: Again) -> None:
        self.on = seconds is not None
        self._plan = plan
        self._events = events
        self._seconds = seconds or 0.0
        self._again = again
        self._until = -math.inf
        self._leaving: set[int] = set()

    def leave(self, tile: int) -> None:
        """No workload of this tile starts again."""
        self._leaving.add(tile)

    def join(self, tile: int) -> None:
        """The workloads of this tile start again."""
        self._leaving.discard(tile)

    def begin(self) -> None:
        """The workloads are about to start."""
        self._until = time.monotonic() + self._seconds

    @property
    def goes_on(self) -> bool:
        """Whether a workload that ends now starts again."""
        return self.on and time.monotonic() < self._until

    def end(self, origin: str) -> Mapping[str, Any]:
        """No workload starts again; what came of it. Raises UsageError where no loop goes on."""
        cell = f"cell {self._plan.index}"
        if not self.on:
            raise UsageError(f"{cell} is no loop, and ends when its workloads have ended")
        if not self.goes_on:
            raise UsageError(f"the loop of {cell} does not go on now")
        self._events.asked("end the loop", origin)
        self._until = -math.inf
        return {"cell": self._plan.index, "ended": True}

    async def follow(self, instance: WorkloadInstance, lead: float) -> None:
        """Follow a client that starts in `lead` seconds, and its rounds until the loop ends; errors are kept in them.

        Without a loop it is one round, which is verified later.
        """
        await instance.execute(lead)
        while self.on:
            await instance.collect()
            instance.say_round_ended()
            if instance.error is not None:
                self._until = -math.inf
            over = not self.goes_on or instance.plan.tile in self._leaving
            if over or instance.context.round >= MOST_ROUNDS:
                return
            await instance.close()
            for note in instance.notes:
                self._events.warn(note)
            instance = self._again(instance)
            await instance.run_again()
