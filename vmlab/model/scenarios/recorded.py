"""The load of a disk of the host's own guests, as a recording has it: what a scenario that copies it must show."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vmlab.model.scenarios.axis import PointName
from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.units import Bytes, Pace, Seconds

MOST_PHASES = 4
MOST_DEPTH = 256
LOAD = "load"
"""The name of a load that does not change."""
RATE_WITHIN = 10.0
"""Percent by which the rates of a copy may be off."""
LATENCY_WITHIN = 1.5
"""The factor by which its mean latencies may be off."""


class RecordedWay(ScenarioPart):
    """The reads, or the writes, of a disk: by Little's law `rate` times `latency` of them were under way."""

    rate: Pace
    """Requests per second."""
    size: Annotated[Bytes, Field(ge=1)]
    """Their mean size."""
    latency: Annotated[Seconds, Field(ge=0)]
    """Their mean latency, as QEMU sees it."""
    in_flight: Annotated[int | None, Field(ge=1, le=MOST_DEPTH)] = None
    """How many were in flight nearly all the time, so that the disk limited the rate."""

    @property
    def depth(self) -> float:
        """How many were under way on average."""
        return self.rate * self.latency


class RecordedPhase(ScenarioPart):
    """A part of a recording in which the load did not change; None for what it did not do."""

    time: Annotated[Seconds, Field(gt=0)]
    """How long it lasted."""
    reads: RecordedWay | None = None
    """Its reads."""
    writes: RecordedWay | None = None
    """Its writes."""
    flushes: Pace | None = None
    """Flushes per second."""

    @property
    def ways(self) -> dict[str, RecordedWay]:
        """Reads and writes, as far as there are any."""
        both = {"reads": self.reads, "writes": self.writes}
        return {name: way for name, way in both.items() if way is not None}

    @model_validator(mode="after")
    def _does_something(self) -> RecordedPhase:
        if not self.ways:
            raise ValueError("needs reads or writes")
        return self


class Recorded(ScenarioPart):
    """What the workloads copy, so that `vmlab advise RUN` can say whether the copy is like it."""

    run: str
    """The recording."""
    domain: str
    """The domain, as the recording names it."""
    disk: str
    """The domain's disk, by its target."""
    seen_by: Literal["", "libvirt", "process"] = ""
    """What told of the domain: libvirt, or its QEMU process alone."""
    flushes_known: bool = True
    """Whether its flushes were counted."""
    advice: str = ""
    """What the recording advised for the disk."""
    phases: Annotated[dict[PointName, RecordedPhase], Field(min_length=1, max_length=MOST_PHASES)]
    """The disk's load, by values of the axis `phase`; one phase needs no axis."""
