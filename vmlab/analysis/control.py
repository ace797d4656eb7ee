"""A host's noise, from a control run: one configuration measured as both sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.analysis.compare import Row, compare, sides_by_axis
from vmlab.analysis.difference import Difference
from vmlab.analysis.noise import Key, Noise
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError


def noise_of(document: RunDocument) -> Noise:
    """The noise that a control run shows: by figure the far end of the difference's interval, at all its places.

    Raises UsageError where the run has not two sides, or too few repeats for an interval.
    """
    run, sides = document["run"]["id"], sides_by_axis(document)
    if len(sides) != 2:
        raise UsageError(f"run {run} is no control run: it has not two sides")
    rows = compare(sides).rows
    percents = _percents((row, row.differences[0]) for row in rows)
    if not percents:
        raise UsageError(f"run {run} has too few repeats to show how noisy its host is")
    repeats = max(row.differences[0].readings for row in rows)
    without = ((row, found) for row in rows for found in row.without_yardstick if found is not None)
    return Noise(run, repeats, percents, _percents(without))


def _percents(differences: Iterable[tuple[Row, Difference]]) -> dict[Key, float]:
    """The far end of the interval of each figure, at the place where it is farthest."""
    percents: dict[Key, float] = {}
    for row, found in differences:
        if found.interval is not None:
            key, far = (row.workload, row.metric), max(map(abs, found.interval))
            percents[key] = max(far, percents.get(key, 0.0))
    return percents
