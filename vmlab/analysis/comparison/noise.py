"""A host's noise, from a control run: one configuration measured as both sides of a comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence

from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Key, Noise
from vmlab.analysis.comparison.meetings import Side, sides_by_axis
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError


def noise_of(document: RunDocument) -> Noise:
    """The noise that a control run shows: by figure the far end of the difference's interval, at all its places.

    Raises UsageError where the run has not two sides, or too few repeats for an interval.
    """
    run, sides = document.run, sides_by_axis(document)
    if len(sides) != 2:
        raise UsageError(f"run {run.id} is no control run: it has not two sides")
    rows = compare(sides).rows
    percents: dict[Key, float] = {}
    for row in (*rows, *(row.at_best_speed for row in rows if row.at_best_speed)):
        if (interval := row.differences[0].interval) is not None:
            percents[row.key] = max(*map(abs, interval), percents.get(row.key, 0.0))
    if not percents:
        raise UsageError(f"run {run.id} has too few repeats to show how noisy its host is")
    return Noise(
        of=run,
        repeats=max(row.differences[0].readings for row in rows),
        blocks=len({cell.block for cell in document.cells if not cell.warm_up}),
        percents=percents,
        alike=run.control or _alike(sides),
    )


def _alike(sides: Sequence[Side]) -> bool:
    """Whether the record says that both sides are configured alike at all places."""
    recorded = all(cell.settings for side in sides for cell in side.cells)
    configured = [{json.dumps([cell.axes, cell.settings], sort_keys=True) for cell in side.cells} for side in sides]
    return recorded and all(one == configured[0] for one in configured)
