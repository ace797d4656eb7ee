"""Where a run differs from its scenario as it is written, so that published figures cannot be compared with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vmlab.analysis.comparison.conditions import value_words
from vmlab.model.errors import StoreError, UsageError
from vmlab.plan.scenario_file.loading import read

AS_PUBLISHED = ("full", "published")
"""Sizes with the amounts of the scenario as it is written."""
_PARTS = ("workloads", "guests")


def departures_of(texts: Mapping[str, str], size: str) -> list[str]:
    """A line for each amount of workloads and guests that a size or an option changed.

    `texts` are a run's stored documents, `size` the one that it ran at. Axes and repeats do not count as amounts.
    """
    asked = _mapping(texts.get("scenario", "{}"))
    try:
        written = read(Path("scenario.yaml"), texts["scenario.yaml"]).scenario.model_dump(mode="json", by_alias=True)
    except (KeyError, UsageError):
        # Without the text, or with one that this version does not read, the size is all that is known.
        return [] if size in AS_PUBLISHED else [f"the run has the size {size}, and what was published is full"]
    return list(_lines(written, asked))


def _lines(written: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    for part in _PARTS:
        for name, keys in (asked.get(part) or {}).items():
            before = (written.get(part) or {}).get(name, {})
            for key, value in keys.items():
                if key in before and before[key] != value:
                    yield f"{part}.{name}.{key} is {value_words(value)}, and {value_words(before[key])} at size full"


def _mapping(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the stored scenario is not JSON: {error}") from error
    return body if isinstance(body, dict) else {}
