"""A host's noise, from a control run: one configuration measured as both sides of a comparison."""

from __future__ import annotations

from vmlab.analysis.compare import compare, sides_by_axis
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
    percents: dict[Key, float] = {}
    repeats = 0
    for row in compare(sides).rows:
        (found,) = row.differences
        if found.interval is not None:
            key, far = (row.workload, row.metric), max(map(abs, found.interval))
            percents[key] = max(far, percents.get(key, 0.0))
            repeats = max(repeats, found.readings)
    if not percents:
        raise UsageError(f"run {run} has too few repeats to show how noisy its host is")
    return Noise(run, repeats, percents)
