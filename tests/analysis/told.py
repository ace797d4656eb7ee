"""Runs of several repeats, told to a store block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.store.stories import Story


def told(
    path: Path, times: Mapping[str, Mapping[str, Sequence[float]]], table: Mapping[str, Any] | None = None
) -> Path:
    """The store of a run with a cell for each cache mode in each repeat, whose workloads took `times`."""
    (repeats,) = {len(values) for side in times.values() for values in side.values()}
    story = Story(path, run=path.parent.name).begin({"cache": list(times), "tiles": [1]}, table, cells=2 * repeats)
    for repeat in range(repeats):
        for cache, side in times.items():
            seconds = {workload: values[repeat] for workload, values in side.items()}
            story.cell({"cache": cache, "tiles": 1}, seconds, max(seconds.values()), repeat + 1)
    return story.end()
