"""Who uses the host's CPUs: the guests, the rest of the lab, and all that is no part of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from vmlab.model.sample import Sample

MUCH_PERCENT = 20.0
"""From this share of the CPUs on, other work on the host is shown: it makes figures of the lab doubtful."""


class CpuUse(NamedTuple):
    """Shares of all CPUs together, in percent; NaN where unknown. `guests` is NaN while there are none."""

    guests: float
    lab: float
    outside: float


def cpu_use(sample: Sample) -> CpuUse:
    """The shares in one sample; what the lab uses besides its guests is the runner and the programs it starts."""
    places = _guests(sample.layout.names)
    shares = [sample.values[place] for place in places]
    known = [share for share in shares if not math.isnan(share)]
    guests = sum(known) / sample.get("cpu_count") if known else math.nan
    whole, outside = sample.get("cpu_lab_percent"), sample.get("cpu_outside_lab_percent")
    if not known or math.isnan(whole):
        return CpuUse(guests, whole, outside)
    # libvirt is asked at other moments than the kernel, so guests may seem to use more than the lab that holds them.
    guests = min(guests, whole)
    return CpuUse(guests, whole - guests, outside)


def outside_share(samples: Iterable[Sample]) -> float:
    """The mean share of other work over `samples`, in percent; NaN where none of them has it."""
    known = [share for share in (one.get("cpu_outside_lab_percent") for one in samples) if not math.isnan(share)]
    return sum(known) / len(known) if known else math.nan


@lru_cache(maxsize=16)
def _guests(names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(names) if name.startswith("guest_cpu_percent["))
