"""When hosts really started together, by the controller's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vmlab.fleet.clock import ClockOffset


@dataclass(frozen=True, slots=True)
class Start:
    """When something started by the controller's monotonic clock, in seconds, and the bound of the error."""

    moment: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class Beginning:
    """How long after its host's moment a workload really started, in seconds, and the bound of the error."""

    late: float
    uncertainty: float

    def on(self, moment: float, offset: ClockOffset) -> Start:
        """By the controller's clock; `moment` is the host's own, by its monotonic clock."""
        return Start(moment + self.late + offset.mono, self.uncertainty + offset.uncertainty)


@dataclass(frozen=True, slots=True)
class Skew:
    """From the first workload that started on any host to the last, in seconds, and the bound of the error.

    `starts` has for each host how long after the first of all its own first one started.
    """

    seconds: float
    uncertainty: float
    starts: Mapping[str, float]


def skew_of(starts: Mapping[str, Sequence[Start]]) -> Skew:
    """The skew of hosts, of each of which at least one start is known."""
    every = sorted((one for those in starts.values() for one in those), key=lambda one: one.moment)
    first, last = every[0], every[-1]
    return Skew(
        last.moment - first.moment,
        0.0 if first is last else first.uncertainty + last.uncertainty,
        {host: min(one.moment for one in those) - first.moment for host, those in starts.items()},
    )
