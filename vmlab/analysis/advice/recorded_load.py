"""What a disk of the host's own guests did in a recording, as phases in which its load did not change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from vmlab.model.sample import Sample
from vmlab.model.scenarios.recorded import LOAD, MOST_PHASES, RATE_WITHIN, RecordedPhase, RecordedWay
from vmlab.plan.copied_guest.copied_load import DEPTH_NOISE, places_of

SHORTEST = 10.0
"""Seconds that a phase lasts at least."""
CHANGED = 1.5
"""The factor by which some rate is another one in another phase."""
CERTAIN = 6.0
"""How many standard errors two means must be apart, as the place of a change is looked for and not given."""
LEAST_RATE, LEAST_BYTES = 1.0, 2.0**20
"""Requests, and bytes, in a second: what is below both everywhere makes no phase."""
_LEAST_SHARE = 0.02
"""The part of all requests and of all bytes, below both of which reads or writes are left out."""
_SLOWEST = 0.1
"""Requests in a second: of slower reads or writes a cell of a minute has too few for a rate and a mean latency."""
_MOST_PIECES, _MOST_PARTS = 600, 8
_FEW = 8
"""Pieces: of fewer nobody knows the spread by them alone."""
_LONG = 50.0
"""Latencies that a part of the time lasts at least, over which a depth is a mean."""
_NEARLY_ALL = 0.9
"""The part of the time in which a number of requests was under way that a guest keeps."""
_MOST_FREE, _MOST_FREE_PLACES = 1 - 1 / (1 + RATE_WITHIN / 100), 0.5
"""The part of its places, and how many of them, that may be free on average: so much faster a copy may be."""
_LEAST_PARTS = 5
_Depths = Sequence[tuple[float, float]]
"""Seconds and the mean number under way."""


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


RATES = ("reads", "writes", "read_bytes", "write_bytes", "flushes")
"""Those in a second."""
_AMOUNTS = [one.name for one in fields(LoadTick) if one.name != "seconds"]


def load_ticks(samples: Iterable[Sample], domain: str, disk: str) -> list[LoadTick]:
    """A disk's load, tick by tick; ticks in which anything of it is not known, or stands from before, are left out.

    Recordings of older versions have no flushes, and so no tick.
    """
    place = f"[{domain}/{disk}]"
    found = []
    for one in samples:

        def get(name: str, one: Sample = one) -> float:
            return one.get(f"domain_disk_{name}{place}")

        reads, flushes = get("read_depth"), get("flush_depth")
        tick = LoadTick(
            seconds=one.seconds_of(f"domain_disk_queue_depth{place}"),
            **{rate: get(f"{rate}_per_second") for rate in RATES},
            read_depth=reads,
            write_depth=max(0.0, get("queue_depth") - reads - flushes),
        )
        if tick.seconds > 0 and all(math.isfinite(getattr(tick, name)) for name in _AMOUNTS):
            found.append(tick)
    return found


def phases_of(ticks: Sequence[LoadTick]) -> dict[str, RecordedPhase]:
    """The phases of a load by name, in the order in which they first came; {} where it did next to nothing.

    A load that goes back and forth has each phase once, with the time of all its parts. Of more phases than a scenario
    may have, those with the smallest part of all requests and bytes are left out.
    """
    kinds: list[list[LoadTick]] = []
    for part in _parts(_pieces(ticks)):
        like = next((kind for kind in kinds if not any(_differing(_mean(kind), _mean(part)))), None)
        if like is None:
            kinds.append(list(part))
        else:
            like += part
    means = [(_mean(kind), kind) for kind in kinds]
    found = [(one, phase) for one, kind in means if _is_busy(one) and (phase := _phase(one, kind)).ways]
    weights = _weights([one for one, _ in found])
    least = min(sorted(weights, reverse=True)[:MOST_PHASES], default=0.0)
    busy = [phase for (_, phase), weight in zip(found, weights, strict=True) if weight >= least]
    names = [LOAD] if len(busy) == 1 else [f"phase-{number}" for number in range(1, len(busy) + 1)]
    return dict(zip(names, busy, strict=True))


def _is_busy(one: LoadTick) -> bool:
    return one.reads + one.writes >= LEAST_RATE or one.read_bytes + one.write_bytes >= LEAST_BYTES


def _weights(means: Sequence[LoadTick]) -> list[float]:
    """What each does of all requests and of all bytes."""
    requests = [one.seconds * (one.reads + one.writes) for one in means]
    moved = [one.seconds * (one.read_bytes + one.write_bytes) for one in means]
    every = sum(requests), max(1.0, sum(moved))
    return [one / every[0] + own / every[1] for one, own in zip(requests, moved, strict=True)]


def _phase(mean: LoadTick, pieces: Sequence[LoadTick]) -> RecordedPhase:
    """Latencies follow from rate and depth (Little's law)."""
    ways = {"reads": (mean.reads, mean.read_bytes, [(one.seconds, one.read_depth) for one in pieces])}
    ways["writes"] = (mean.writes, mean.write_bytes, [(one.seconds, one.write_depth) for one in pieces])
    requests = _LEAST_SHARE * (mean.reads + mean.writes)
    moved = _LEAST_SHARE * (mean.read_bytes + mean.write_bytes)
    kept = {
        name: _way(rate, own, depths)
        for name, (rate, own, depths) in ways.items()
        if rate >= _SLOWEST and (rate >= requests or own >= moved)
    }
    # A flush in twenty seconds is none of a load.
    flushes = mean.flushes if mean.flushes >= 0.05 and "writes" in kept else None
    return RecordedPhase.model_construct(
        time=mean.seconds, reads=kept.get("reads"), writes=kept.get("writes"), flushes=flushes
    )


def _way(rate: float, moved: float, depths: _Depths) -> RecordedWay:
    """Of a rate above 0."""
    depth = sum(length * one for length, one in depths) / sum(length for length, _ in depths)
    latency = depth / rate
    in_flight = _in_flight(depths, depth, latency)
    return RecordedWay.model_construct(
        rate=rate, size=max(1, round(moved / rate)), latency=latency, in_flight=in_flight
    )


def _in_flight(depths: _Depths, mean: float, latency: float) -> int | None:
    """How many requests were under way nearly all the time; None where their number varied.

    Little's law, L = λW (J. D. C. Little, Operations Research 9, 1961, pp. 383 to 387), gives the mean number alone,
    which of any load may be near a whole number, and of a large one always is. A guest that keeps N under way has N in
    each part of the time; of requests that come by themselves there are now more and now fewer. Those that begin in one
    part and end in the next move N times their latency from one to the other.
    """
    number = places_of(mean)
    parts = _parts_of_time(depths, max(1.0, _LONG * latency))
    slack = [number * latency / length for length, _ in parts]
    low, high = number - min(number * _MOST_FREE, _MOST_FREE_PLACES), number + DEPTH_NOISE
    within = sum(length for (length, depth), own in zip(parts, slack, strict=True) if low - own <= depth <= high + own)
    every = sum(length for length, _ in parts)
    return number if len(parts) >= _LEAST_PARTS and within >= _NEARLY_ALL * every else None


def _parts_of_time(depths: _Depths, least: float) -> list[tuple[float, float]]:
    """Seconds and mean depth of ticks that follow each other, so many together that they last `least` seconds."""
    found: list[tuple[float, float]] = []
    seconds = area = 0.0
    for length, depth in depths:
        seconds, area = seconds + length, area + length * depth
        if seconds >= least:
            found.append((seconds, area / seconds))
            seconds = area = 0.0
    return found


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

    It is the one with the least sum of squares within both, each rate relative to its mean (binary segmentation). Ticks
    count by their seconds: one that catches up describes as long a time as those that were missed.
    """
    every = _mean(part)
    columns = [
        [value / mean for value in column]
        for column, mean in zip(zip(*(one.rates for one in part), strict=True), every.rates, strict=True)
        if mean > 0
    ]
    lengths = [one.seconds for one in part]
    until = list(accumulate(lengths))
    sums = [list(accumulate(map(mul, column, lengths))) for column in columns]
    best, at = 0.0, 0
    for cut in range(1, len(part)):
        before, after = until[cut - 1], until[-1] - until[cut - 1]
        if min(before, after) < SHORTEST:
            continue
        weight = before * after / until[-1]
        apart = (one[cut - 1] / before - (one[-1] - one[cut - 1]) / after for one in sums)
        if (gain := weight * sum(each * each for each in apart)) > best:
            best, at = gain, cut
    return (best, at) if at and _is_change(part[:at], part[at:]) else (0.0, 0)


def _is_change(first: Sequence[LoadTick], second: Sequence[LoadTick]) -> bool:
    """Whether a rate differs enough between two parts, and for certain."""
    lengths = [[one.seconds for one in part] for part in (first, second)]
    pairs = zip(*(zip(*(one.rates for one in part), strict=True) for part in (first, second)), strict=True)
    certain = [_is_certain(_Spread.of(before, lengths[0]), _Spread.of(after, lengths[1])) for before, after in pairs]
    return any(sure and other for sure, other in zip(certain, _differing(_mean(first), _mean(second)), strict=True))


class _Spread(NamedTuple):
    """A mean over time of a `number` of pieces, their variance relative to the square of the mean, None for one piece,
    and as how many pieces of equal length they count.
    """

    mean: float
    relative: float | None
    number: int
    pieces: float

    @classmethod
    def of(cls, values: Sequence[float], lengths: Sequence[float]) -> _Spread:
        """That of rates over so many seconds each."""
        seconds, count = sum(lengths), len(values)
        mean = sum(map(mul, values, lengths)) / seconds
        squares = sum(length * (one - mean) ** 2 for one, length in zip(values, lengths, strict=True)) / seconds
        relative = None if count < 2 else squares * count / (count - 1) / mean**2 if mean > 0 else 0.0
        return cls(mean, relative, count, seconds**2 / sum(one**2 for one in lengths))


def _is_certain(before: _Spread, after: _Spread) -> bool:
    """A few pieces tell little of their spread: it is taken to be as large, relative to its mean, as on the other side
    at least.
    """
    known = max((one.relative for one in (before, after) if one.relative is not None), default=None)
    if known is None:
        return False
    errors = 0.0
    for one in (before, after):
        relative = known if one.relative is None or one.number < _FEW else one.relative
        errors += relative * one.mean**2 / one.pieces
    return abs(before.mean - after.mean) > CERTAIN * math.sqrt(errors)


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
