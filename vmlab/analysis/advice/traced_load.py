"""What the trace of the block device below a disk tells of its load: the order of its requests, and without libvirt the
requests themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from vmlab.analysis.advice.recorded_load import RATES, LoadTick
from vmlab.model.sample import Sample
from vmlab.plan.copied_guest.copied_load import RANDOM, SEQUENTIAL, WORDS, TracedOrder
from vmlab.telemetry.domains.traced_disks import OF_TRACE

LEAST_SEQUENTIAL, MOST_RANDOM = 0.8, 0.2
"""The share of requests that begin where an earlier one ended, from which a load is one or the other."""
LEAST_REQUESTS = 100
_AS_MANY = 1.5
"""The factor by which the device may have had more or fewer requests than the guest: else they were split or merged."""


def traced_ticks(samples: Iterable[Sample], domain: str, disk: str) -> list[LoadTick]:
    """The load of a disk as its block device had it, tick by tick; flushes carry no name of a file, and count 0."""
    found = []
    for one in samples:
        values = _values(one, domain, disk)
        if values is not None:
            rates = {rate: values.get(f"{rate}_per_second", 0.0) for rate in RATES}
            depths = {name: values[name] for name in ("read_depth", "write_depth")}
            found.append(LoadTick(seconds=_seconds(one, domain, disk), **rates, **depths))
    return found


def traced_orders(samples: Iterable[Sample], domain: str, disk: str) -> dict[str, TracedOrder]:
    """The order of its ``reads`` and ``writes`` over all of the recording; {} where nothing was traced."""
    traced, sequential, asked = (dict.fromkeys(WORDS, 0.0) for _ in range(3))
    for one in samples:
        if (values := _values(one, domain, disk)) is None:
            continue
        for way in WORDS:
            traced[way] += _seconds(one, domain, disk) * values[f"{way}_per_second"]
            sequential[way] += _seconds(one, domain, disk) * values[f"sequential_{way}_per_second"]
            name = f"domain_disk_{way}_per_second[{domain}/{disk}]"
            own = one.get(name)
            # Without libvirt only the device tells them.
            asked[way] += one.seconds_of(name) * (own if math.isfinite(own) else values[f"{way}_per_second"])
    return {
        way: _order(round(traced[way]), sequential[way] / traced[way], asked[way])
        for way in WORDS
        if round(traced[way])
    }


def _order(requests: int, share: float, asked: float) -> TracedOrder:
    if requests < LEAST_REQUESTS:
        return TracedOrder(requests, share, None, "too few to tell")
    low, high = sorted((requests, asked))
    if high > _AS_MANY * low:
        return TracedOrder(
            requests, share, None, f"the guest asked for {round(asked)}, so that they were split or merged"
        )
    if MOST_RANDOM < share < LEAST_SEQUENTIAL:
        return TracedOrder(requests, share, None, "neither the one nor the other")
    return TracedOrder(requests, share, SEQUENTIAL if share >= LEAST_SEQUENTIAL else RANDOM)


def _values(one: Sample, domain: str, disk: str) -> dict[str, float] | None:
    """By their names without ``domain_disk_traced_``; None where they are not known."""
    names = {metric.removeprefix("domain_disk_traced_"): f"{metric}[{domain}/{disk}]" for metric in OF_TRACE}
    values = {short: one.get(name) for short, name in names.items()}
    return values if all(map(math.isfinite, values.values())) and _seconds(one, domain, disk) > 0 else None


def _seconds(one: Sample, domain: str, disk: str) -> float:
    return one.seconds_of(f"{OF_TRACE[0]}[{domain}/{disk}]")
