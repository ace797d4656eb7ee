"""Means and amounts of sampled values that did not come in every tick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vmlab.model.sample import Sample

SMALLEST_COVER = 0.5
"""A value that is known for less than half of a span is not said of the span."""


@dataclass(frozen=True, slots=True)
class Covered:
    """One value over the part of a span in which it is known: its mean, and that part in seconds."""

    mean: float
    seconds: float

    def over(self, seconds: float) -> float | None:
        """The mean as that of a span of `seconds`; None where it is known for less than half of it."""
        return self.mean if self.seconds >= SMALLEST_COVER * seconds else None


def covered(samples: Iterable[Sample], names: Sequence[str], since: float, until: float) -> dict[str, Covered]:
    """The values called `names` from `since` to `until`; those that were never known are left out.

    A rate of a guest is over the time since the hypervisor last gave an answer (`guest_readings.GuestRates`), which
    under load may be several ticks; so a value counts for the ticks without one before it.
    """
    areas: dict[str, float] = {}
    seconds: dict[str, float] = {}
    known: dict[str, float] = {}
    for sample in samples:
        for name in names:
            value = sample.get(name)
            if value != value:
                continue
            begin = known.get(name, sample.mono - sample.length)
            known[name] = sample.mono
            part = min(sample.mono, until) - max(begin, since)
            if part > 0:
                areas[name] = areas.get(name, 0.0) + value * part
                seconds[name] = seconds.get(name, 0.0) + part
    return {name: Covered(area / seconds[name], seconds[name]) for name, area in areas.items()}


def instances_of(samples: Iterable[Sample], metric: str) -> list[str]:
    """The names ``metric[instance]`` that any of `samples` has, in order."""
    layouts = {id(sample.layout): sample.layout for sample in samples}
    names = (name for layout in layouts.values() for name in layout.names)
    return list(dict.fromkeys(name for name in names if name.startswith(f"{metric}[")))
