"""What it would take to answer a claim that a run left open, if estimates and spreads stay what they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from vmlab.analysis.figures.pairing import ONE_SNAPSHOT
from vmlab.analysis.reference.claims import bounds_of
from vmlab.model.scenarios.reference import Claim

_MOST = 1000
"""More repeats than this are as good as none: the estimate lies at the bound."""


def would_take(claim: Claim, body: Mapping[str, Any]) -> str:
    """The words behind the reason for no answer; "" where repeats do not help, as for figures that are missing.

    The width of an interval falls with the square root of the repeats. On the logarithm, in which ratios are compared,
    it is as wide to either side as it is now, and has to end before the bound that lies in it.
    """
    open_ones = [one for one in body["comparisons"] if one["answer"] == "cannot tell"]
    if any(one["difference"]["because"] == ONE_SNAPSHOT for one in open_ones if one["level"] is None):
        return "guests booted for each repeat (`--cold`) would be needed"
    found = [repeats for one in open_ones if (repeats := _repeats(claim, one, body["readings_needed"])) is not None]
    if len(found) < len(open_ones) or not found:
        return ""
    most = max(found)
    if most == body["readings_needed"]:
        return f"{most:.0f} repeats at least would be needed"
    if most > _MOST:
        return f"more than {_MOST} repeats would be needed, as the estimate lies at the bound"
    return f"some {math.ceil(most)} repeats would be needed, if estimate and spread stay"


def _repeats(claim: Claim, comparison: Mapping[str, Any], least: int) -> float | None:
    """How many repeats decide a comparison; None where its figures are missing."""
    level, difference, lowest = comparison["level"], comparison["difference"], comparison.get("least")
    if lowest is not None:
        each = [
            _repeats(claim, {**comparison, "difference": one, "least": None}, least) for one in (lowest, difference)
        ]
        return max((one for one in each if one is not None), default=None)
    if level is not None:
        estimate, interval = level["estimate"], level["interval"]
        bounds: tuple[float, ...] = (level["bound"],)
    else:
        if difference["percent"] is None:
            return None
        ends = difference["interval_percent"]
        estimate, interval = _ratio(difference["percent"]), ends and [_ratio(end) for end in ends]
        bounds = tuple(_ratio(bound) for bound in bounds_of(claim))
    if interval is None:
        return float(least)
    readings = (level or difference)["readings"]
    return max((readings * part for part in _widths(estimate, interval, bounds)), default=None)


def _ratio(percent: float) -> float:
    return 1 + percent / 100


def _widths(estimate: float, interval: Any, bounds: tuple[float, ...]) -> Iterator[float]:
    """For each bound in the interval, by how much the repeats have to grow until it lies outside."""
    if min(estimate, *interval) <= 0:
        return
    for bound in bounds:
        if interval[0] <= bound <= interval[1]:
            end = interval[0] if bound < estimate else interval[1]
            off = abs(math.log(bound / estimate))
            yield (math.log(end / estimate) / off) ** 2 if off else math.inf
