"""The span of a cell's figures, and means and amounts over it of sampled values that did not come in every tick."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from vmlab.model.sample import GUESTS_DISKS_READ, Sample, read_with, split_name
from vmlab.store.reader import RunReader
from vmlab.store.samples import read_samples
from vmlab.telemetry.sample_summary import seconds_within

SMALLEST_COVER = 0.5
"""A value that is known for less than half of a span is not said of the span."""
LATEST_ANSWER = 3.0
"""Seconds after a span within which the answers to what was asked in it have come, where nothing says when."""

_SAME = 1e-6
"""Seconds by which one moment may differ where it was written in two ways."""
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Window:
    """A span on the monotonic clock, as counters were read at its two ends: those of the host, and a few milliseconds
    later those of the guests and of their disks. `sampled` is the last sample that has any of them.
    """

    host: Span
    guests: Span
    guests_disks: Span
    sampled: float
    is_exact: bool = True
    """Whether counters were read out of turn at both ends, so that it is one of whole samples."""

    @classmethod
    def plain(cls, since: float, until: float) -> Self:
        """A span at whose ends nothing was read out of turn: ticks count with their part that lies in it."""
        return cls((since, until), (since, until), (since, until), until + LATEST_ANSWER, is_exact=False)

    def of(self, metric: str) -> Span:
        """The span of a metric, by where its values come from."""
        source = read_with(metric)
        if source is None:
            return self.host
        return self.guests_disks if source is GUESTS_DISKS_READ else self.guests

    def samples(self, reader: RunReader) -> list[Sample]:
        """All that have counters of it, in order. Raises StoreError for a damaged store."""
        return list(read_samples(reader, self.host[0] - _SAME, self.sampled))

    def ticks(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Those of `samples` that describe a part of it."""
        return (one for one in samples if seconds_within(one, *self.host) > _SAME)


@dataclass(frozen=True, slots=True)
class Covered:
    """One value over the part of a span in which it is known: its mean, and that part in seconds."""

    mean: float
    seconds: float

    def over(self, seconds: float) -> float | None:
        """The mean as that of a span of `seconds`; None where it is known for less than half of it."""
        return self.mean if self.seconds >= SMALLEST_COVER * seconds else None


def covered(samples: Iterable[Sample], names: Sequence[str], window: Window) -> dict[str, Covered]:
    """The values called `names` in a window; those that were never known are left out.

    Each value counts for the span that it describes (`Sample.span_of`), whichever tick it came in, and for the time
    before it in which there was none: a rate is over the time since the counter was last read.

    In records from before guests' values had times, those of `OF_GUESTS_DISKS` came one answer late: what QEMU was
    asked as one answer was given was in the next one, as a rate over the time between the answers.
    """
    areas: dict[str, float] = {}
    seconds: dict[str, float] = {}
    known: dict[str, float] = {}
    answered: dict[str, float] = {}
    asked = [(name, split_name(name)[0]) for name in names]
    spans = {metric: window.of(metric) for _, metric in asked}
    for sample in samples:
        for name, metric in asked:
            value = sample.get(name)
            if value != value:
                continue
            begin, end = sample.span_of(metric)
            if read_with(metric) == GUESTS_DISKS_READ and not sample.layout.read:
                end = answered.get(name, begin)
                begin = known.get(name, end - sample.length)
                value *= (sample.mono - end) / (end - begin)
                answered[name] = sample.mono
            begin = known.get(name, begin)
            known[name] = end
            since, until = spans[metric]
            part = min(end, until) - max(begin, since)
            if part > 0:
                areas[name] = areas.get(name, 0.0) + value * part
                seconds[name] = seconds.get(name, 0.0) + part
    return {name: Covered(area / seconds[name], seconds[name]) for name, area in areas.items()}


def instances_of(samples: Iterable[Sample], metric: str) -> list[str]:
    """The names ``metric[instance]`` that any of `samples` has, in order."""
    layouts = {id(sample.layout): sample.layout for sample in samples}
    names = (name for layout in layouts.values() for name in layout.names)
    return list(dict.fromkeys(name for name in names if name.startswith(f"{metric}[")))
