"""How far a host's clocks are from those here, by the shortest of several round trips (as in NTP, RFC 5905).

By that, when hosts really started together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ROUNDS = 8


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The clocks here before and after, and those of the host in between, in seconds: `wall` and `mono` each."""

    sent: tuple[float, float]
    there: tuple[float, float]
    received: tuple[float, float]

    @property
    def seconds(self) -> float:
        """How long it took, by the monotonic clock."""
        return self.received[1] - self.sent[1]


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """What is added to a host's clocks to give those here, in seconds, and the bound of the error.

    The host's answer came at some moment of the round trip; its middle is off by half of it at most.
    """

    wall: float
    mono: float
    uncertainty: float

    @property
    def ahead_ms(self) -> float:
        """How far the host's clock is ahead."""
        return -1e3 * self.wall

    @property
    def uncertainty_ms(self) -> float:
        """The bound in milliseconds."""
        return 1e3 * self.uncertainty


def offset_of(rounds: Iterable[RoundTrip]) -> ClockOffset:
    """The offset by the shortest of `rounds`, of which there is at least one."""
    best = min(rounds, key=lambda one: one.seconds)
    wall, mono = (
        (one + other) / 2 - there for one, other, there in zip(best.sent, best.received, best.there, strict=True)
    )
    return ClockOffset(wall, mono, best.seconds / 2)


@dataclass(frozen=True, slots=True)
class Start:
    """How long after a moment a workload really started, in seconds, and the bound of the error."""

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
    every = sorted((one for those in starts.values() for one in those), key=lambda one: one.late)
    first, last = every[0], every[-1]
    return Skew(
        last.late - first.late,
        0.0 if first is last else first.uncertainty + last.uncertainty,
        {host: min(one.late for one in those) - first.late for host, those in starts.items()},
    )
