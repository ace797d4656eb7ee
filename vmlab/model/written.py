"""The units in which figures are written for people, where these are not the units in which they are kept."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Written(NamedTuple):
    """How figures of a unit are written: each is multiplied by `factor`, and has `unit` behind it or in its heading."""

    unit: str
    factor: float = 1.0


_WRITTEN = {"B": Written("MiB", 2**-20), "B/s": Written("MB/s", 1e-6), "1": Written("")}
_TIMES = ((1.0, Written("s")), (1e-3, Written("ms", 1e3)), (0.0, Written("µs", 1e6)))
"""Times, each from so many seconds on."""


def written(unit: str, sizes: Iterable[float | None] = ()) -> Written:
    """How figures in `unit` are written together, which have these `sizes`; without any, whatever their size.

    Times in seconds are written in s, ms or µs, by the geometric middle of the smallest and the largest.
    """
    if unit != "s":
        return _WRITTEN.get(unit, Written(unit))
    known = [abs(size) for size in sizes if size and math.isfinite(size)]
    middle = math.sqrt(min(known)) * math.sqrt(max(known)) if known else 1.0
    return next(form for least, form in _TIMES if middle >= least)
