"""What a disk of the host's own guests did in a recording, as phases in which its load did not change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate

from vmlab.model.sample import Sample
from vmlab.model.scenarios.recorded import LOAD, MOST_PHASES, RecordedPhase, RecordedWay

SHORTEST = 10.0
"""Seconds that a phase lasts at least."""
CHANGED = 1.5
"""The factor by which some rate is another one in another phase."""
CERTAIN = 6.0
"""How many standard errors two means must be apart, as the place of a change is looked for and not given."""
LEAST_RATE = 1.0
"""Requests in a second: what is below that everywhere makes no phase."""
_LEAST_SHARE = 0.02
"""The part of all requests, below which reads or writes are left out."""
_MOST_PIECES, _MOST_PARTS = 600, 8
_WAYS = ("reads", "writes")


@dataclass(frozen=True, slots=True)
class LoadTick:
    """Some seconds of a disk's load: means in a second, and of each way the mean number under way."""

    seconds: float
    reads: float
    writes: float
    read_bytes: float
    write_bytes: float
    flushes: float
    read_depth: float
    write_depth: float

    @property
    def rates(self) -> tuple[float, ...]:
        """What changes from one phase to another: requests by way, their bytes and flushes."""
        return (self.reads, self.writes, self.read_bytes, self.write_bytes, self.flushes)


_AMOUNTS = [one.name for one in fields(LoadTick) if one.name != "seconds"]


def load_ticks(samples: Iterable[Sample], domain: str, disk: str) -> list[LoadTick]:
    """A disk's load, tick by tick; ticks in which anything of it is not known are left out.

    Recordings of older versions have no flushes, and so no tick.
    """
    place = f"[{domain}/{disk}]"
    found = []
    for one in samples:

        def get(name: str, one: Sample = one) -> float:
            return one.get(f"domain_disk_{name}{place}")

        reads, flushes = get("read_depth"), get("flush_depth")
        tick = LoadTick(
            seconds=one.length,
            reads=get("reads_per_second"),
            writes=get("writes_per_second"),
            read_bytes=get("read_bytes_per_second"),
            write_bytes=get("write_bytes_per_second"),
            flushes=get("flushes_per_second"),
            read_depth=reads,
            write_depth=max(0.0, get("queue_depth") - reads - flushes),
        )
        if tick.seconds > 0 and all(math.isfinite(getattr(tick, name)) for name in _AMOUNTS):
            found.append(tick)
    return found


def phases_of(ticks: Sequence[LoadTick]) -> dict[str, RecordedPhase]:
    """The phases of a load by name, in the order in which they first came; {} where it did next to nothing.

    A load that goes back and forth has each phase once, with the time of all its parts. Of more phases than a scenario
    may have, those with the fewest requests are left out.
    """
    kinds: list[list[LoadTick]] = []
    for part in _parts(_pieces(ticks)):
        like = next((kind for kind in kinds if not _is_other(_mean(kind), _mean(part))), None)
        if like is None:
            kinds.append(list(part))
        else:
            like += part
    means = [_mean(kind) for kind in kinds]
    busy = [one for one in means if one.reads + one.writes >= LEAST_RATE]
    most = sorted((one.seconds * (one.reads + one.writes) for one in busy), reverse=True)[:MOST_PHASES]
    busy = [one for one in busy if one.seconds * (one.reads + one.writes) >= most[-1]]
    names = [LOAD] if len(busy) == 1 else [f"phase-{number}" for number in range(1, len(busy) + 1)]
    return {name: _phase(one) for name, one in zip(names, busy, strict=True)}


def _phase(mean: LoadTick) -> RecordedPhase:
    """Latencies follow from rate and depth (Little's law)."""
    ways = {"reads": _way(mean.reads, mean.read_bytes, mean.read_depth)}
    ways["writes"] = _way(mean.writes, mean.write_bytes, mean.write_depth)
    least = _LEAST_SHARE * (mean.reads + mean.writes)
    kept = {name: way for name, way in ways.items() if way.rate >= least}
    # A flush in twenty seconds is none of a load.
    flushes = mean.flushes if mean.flushes >= 0.05 and "writes" in kept else None
    return RecordedPhase.model_construct(
        time=mean.seconds, reads=kept.get("reads"), writes=kept.get("writes"), flushes=flushes
    )


def _way(rate: float, moved: float, depth: float) -> RecordedWay:
    size = max(1, round(moved / rate)) if rate > 0 else 1
    return RecordedWay.model_construct(rate=rate, size=size, latency=depth / rate if rate > 0 else 0.0)


def _mean(ticks: Sequence[LoadTick]) -> LoadTick:
    """The mean over time; `seconds` are those of all."""
    seconds = sum(one.seconds for one in ticks)
    means = {name: sum(getattr(one, name) * one.seconds for one in ticks) / seconds for name in _AMOUNTS}
    return LoadTick(seconds=seconds, **means)


def _pieces(ticks: Sequence[LoadTick]) -> list[LoadTick]:
    """At most some hundred, each the mean of ticks that follow each other."""
    each = max(1, math.ceil(len(ticks) / _MOST_PIECES))
    return [_mean(ticks[place : place + each]) for place in range(0, len(ticks), each)]


def _parts(pieces: list[LoadTick]) -> list[list[LoadTick]]:
    """The pieces, parted where a rate changes for good: at the largest change first, into a few parts at most."""
    parts = [pieces] if pieces else []
    while 0 < len(parts) < _MOST_PARTS:
        cuts = [(*_cut(part), place) for place, part in enumerate(parts)]
        gain, cut, place = max(cuts, default=(0.0, 0, 0))
        if gain <= 0:
            break
        part = parts[place]
        parts[place : place + 1] = [part[:cut], part[cut:]]
    return parts


def _cut(part: Sequence[LoadTick]) -> tuple[float, int]:
    """How much is explained by the best place at which this part falls into two, and the place; 0 for none.

    It is the one with the least sum of squares within both, each rate relative to its mean (binary segmentation).
    """
    every = _mean(part)
    columns = [
        [value / mean for value in column]
        for column, mean in zip(zip(*(one.rates for one in part), strict=True), every.rates, strict=True)
        if mean > 0
    ]
    count, least = len(part), math.ceil(SHORTEST * len(part) / every.seconds)
    sums = [list(accumulate(column)) for column in columns]
    best, at = 0.0, 0
    for cut in range(least, count - least + 1):
        weight = cut * (count - cut) / count
        apart = (one[cut - 1] / cut - (one[-1] - one[cut - 1]) / (count - cut) for one in sums)
        if (gain := weight * sum(each * each for each in apart)) > best:
            best, at = gain, cut
    return (best, at) if at and _is_change(part[:at], part[at:]) else (0.0, 0)


def _is_change(first: Sequence[LoadTick], second: Sequence[LoadTick]) -> bool:
    """Whether a rate differs enough between two parts, and for certain."""
    pairs = zip(*(zip(*(one.rates for one in part), strict=True) for part in (first, second)), strict=True)
    certain = [_is_certain(before, after) for before, after in pairs]
    return any(sure and other for sure, other in zip(certain, _differing(_mean(first), _mean(second)), strict=True))


def _is_certain(before: Sequence[float], after: Sequence[float]) -> bool:
    means, errors = [], 0.0
    for values in (before, after):
        mean = sum(values) / len(values)
        errors += sum((one - mean) ** 2 for one in values) / max(1, len(values) - 1) / len(values)
        means.append(mean)
    return abs(means[0] - means[1]) > CERTAIN * math.sqrt(errors)


def _is_other(one: LoadTick, other: LoadTick) -> bool:
    return any(_differing(one, other))


def _differing(one: LoadTick, other: LoadTick) -> Iterator[bool]:
    """For each of the rates, whether it is another one. What is a small part of the load decides nothing."""
    requests = max(one.reads + one.writes, other.reads + other.writes)
    moved = max(one.read_bytes + one.write_bytes, other.read_bytes + other.write_bytes)
    least = max(LEAST_RATE, requests * 0.1)
    for low, high, floor in zip(
        map(min, one.rates, other.rates),
        map(max, one.rates, other.rates),
        (least, least, moved * 0.1, moved * 0.1, least),
        strict=True,
    ):
        yield high >= floor and high > CHANGED * low
