"""What the kinds have in common whose client is one tool, of which kept texts tell all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, ValidationInfo

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.workloads.metrics import ToolTime
from vmlab.workloads.pace import PACE_METRICS
from vmlab.workloads.verification import demand_success
from vmlab.workloads.workload_steps import Client, Collected, Finished, P, Workload, WorkloadContext

_Names = TypeVar("_Names", bound="tuple[str, ...]")


def _each_once(names: _Names, validation: ValidationInfo) -> _Names:
    if len(set(names)) != len(names):
        raise ValueError(f"{validation.field_name} must not name one twice")
    return names


EACH_ONCE = AfterValidator(_each_once)
"""For a parameter with a tuple of names: none of them may stand in it twice."""


class ToolWorkload(Workload[P]):
    """Prepares, collects and accounts for its tool's time as most kinds do; a kind says what it does besides.

    `figures` must be there. Where the first of `texts` is not the client's output, `printed` finds the texts.
    """

    sides: ClassVar[Literal[1, 2]] = 1
    tool: ClassVar[str]
    """Its name in messages."""
    around: ClassVar[Mapping[str, float]]
    """Seconds of the client's run that are not the tool's time, by accelerator; see `ToolTime`."""
    chosen: ClassVar[tuple[str, Mapping[str, Sequence[str]]] | None] = None
    """A parameter that names what runs, all of it where it is left out, and the metrics of each; None without one."""
    first_run: ClassVar[Sequence[str]] = ()
    """A command that reads program and libraries, so that the first cell does not pay for it."""

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The share of a pace, where there is none, and the metrics of what does not run."""
        absent = set(PACE_METRICS if cls.paced and params.get("pace") is None else ())
        if cls.chosen is not None:
            key, metrics = cls.chosen
            ran = params.get(key, metrics)
            absent.update(*(own for name, own in metrics.items() if name not in ran))
        return frozenset(absent)

    @property
    def patience(self) -> float:
        """A deadline in seconds for all of its work, enough for the slowest machine that is useful."""
        return 300 + 60 * self.footprint("tcg").seconds

    async def prepare(self, context: WorkloadContext) -> None:
        """Run the tool once over nearly nothing."""
        if self.first_run:
            await context.source.run(self.first_run)

    def argv(self, context: WorkloadContext) -> tuple[str, ...]:
        """The tool with its options, for a kind whose client is that alone."""
        raise NotImplementedError

    def client(self, context: WorkloadContext) -> Client:
        """The tool itself, with nothing around it."""
        return Client(self.argv(context), self.patience)

    async def printed(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """The texts that are kept before the error output, those that `figures` reads among them."""
        return {self.texts[0]: finished.stdout}

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """Hold what the figures say against all that is no text; further texts to keep. Raises WorkloadError."""
        return {}

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """The tool ended well, its texts give figures, and what else there is agrees."""
        # Imported late: who reads records loads the kinds, and runs nothing.
        import asyncio

        demand_success(finished, self.tool)
        texts = await self.printed(context, finished)
        try:
            # A user's patterns may take their time, for which nothing else in the runner waits.
            values = await asyncio.to_thread(self.figures, texts, finished.seconds)
            more = await self.verified(context, finished)
        except WorkloadError as error:
            error.texts = texts
            raise
        return Collected(values, {**texts, "stderr": finished.stderr, **more})

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """The run time; the tool starts before."""
        return ToolTime(values[RUN_TIME], self.around[accelerator])
