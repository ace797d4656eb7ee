"""What a release says of a recorded run, and what a later one no longer says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vmlab
from vmlab.analysis.record.phases import run_time
from vmlab.model.jsonable import jsonable
from vmlab.store.reader import RunReader

KEPT = Path(__file__).parent / "releases"
PROSE = {"because", "notices", "reason", "reasons", "sentence", "warnings"}
"""Keys of words for people, which may be put better; they stay texts, or lists of texts."""
CORRECTED = {"guests_bytes", "host_bytes", "memory_percent", "guest_cpu_busy_percent"}
"""Keys of figures that releases took from the wrong ticks and that are computed anew from the samples (decision 45)."""

GROWING = {"delivered"}
"""Keys of lists to whose end later versions add: levers of which they can tell."""


def documents_of(run: str) -> dict[str, Any]:
    """The documents of a run, by the words after `vmlab`, and the columns of its frames with their types."""
    opened = vmlab.open_run(run)
    compared = vmlab.compare(opened)
    frames = {"cells": opened.cells(), "measurements": opened.measurements(), "samples": opened.samples(1)}
    with RunReader(opened.path) as reader:
        phases = run_time(reader)
    return {
        "show --json": opened.document(),
        "show --phases --json": jsonable(phases),
        "show --raw --json": opened.raw(1),
        "compare --json": compared.document(),
        "columns": {
            name: {column: str(kind) for column, kind in frame.schema.items()}
            for name, frame in {**frames, "comparison": compared.frame()}.items()
        },
    }


def lost(before: object, now: object, place: str = "") -> Iterator[str]:
    """The places at which `now` lacks what `before` has, or says something else; what is new is no loss."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in before.items():
            if key not in now:
                yield f"{place}/{key} is gone"
            elif key not in PROSE | CORRECTED:
                yield from lost(value, now[key], f"{place}/{key}")
            elif type(value) is not type(now[key]):
                yield f"{place}/{key} is no {type(value).__name__} any more"
    elif isinstance(before, list) and isinstance(now, list):
        longer = place.rpartition("/")[2] in GROWING
        if len(now) < len(before) or (len(now) > len(before) and not longer):
            yield f"{place} has {len(now)} in place of {len(before)}"
        for number, (one, other) in enumerate(zip(before, now, strict=False)):
            yield from lost(one, other, f"{place}/{number}")
    elif not _alike(before, now):
        yield f"{place} is {now!r} in place of {before!r}"


def _alike(before: object, now: object) -> bool:
    """Whether two values are the same, numbers to ten digits."""
    numbers = (int, float)
    if isinstance(before, bool) or isinstance(now, bool):
        return before is now
    if isinstance(before, numbers) and isinstance(now, numbers):
        return abs(before - now) <= 1e-10 * max(abs(before), abs(now))
    return before == now
