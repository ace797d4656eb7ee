"""A workload that does harm where it runs; only the matrix of faults has it, by a mount over the folder of packages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vmlab.model.run import RUN_TIME
from vmlab.model.units import Seconds
from vmlab.workloads.metrics import with_run_time
from vmlab.workloads.verification import demand_success
from vmlab.workloads.workload_steps import (
    Client,
    Collected,
    Finished,
    Footprint,
    Workload,
    WorkloadContext,
    WorkloadParams,
)


class MisdeedParams(WorkloadParams):
    """What is done, and when."""

    do: str = Field(min_length=1)
    """A command for the shell of the place."""
    when: Literal["prepare", "execute"] = "execute"
    """In which phase; a client waits for its end in execute."""
    from_cell: int = 1
    """The first cell in which it is done."""
    deadline: Seconds = 60.0
    """Of the client."""


class Misdeed(Workload[MisdeedParams]):
    """A command of the test's own."""

    kind = "misdeed"
    sides = 1
    Params = MisdeedParams
    summary = "a command that does harm, for tests of faults."
    metrics = with_run_time()

    def footprint(self, accelerator: str) -> Footprint:
        """Next to nothing."""
        return Footprint(disk_bytes=0, seconds=2.0)

    async def prepare(self, context: WorkloadContext) -> None:
        """Do it now, where this is the phase."""
        if self.params.when == "prepare" and context.cell >= self.params.from_cell:
            await context.source.run(["sh", "-c", self.params.do], deadline=self.params.deadline)

    def client(self, context: WorkloadContext) -> Client:
        """The command itself, or one that does nothing."""
        does = self.params.when == "execute" and context.cell >= self.params.from_cell
        return Client(argv=("sh", "-c", self.params.do if does else "true"), deadline=self.params.deadline)

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Its output and how long it took; it must have succeeded."""
        demand_success(finished, "the misdeed")
        return Collected({RUN_TIME: finished.seconds}, {"said": finished.stdout})
