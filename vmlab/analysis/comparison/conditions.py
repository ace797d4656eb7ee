"""In what the sides of a comparison differ besides their figures: the conditions under which they were measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.shape import RunPart
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.run import AxisValue
from vmlab.model.visible import cut

UNKNOWN = "unknown"
NOT_SET = "not set"
_LONGEST = 60
_OF_RUNS = ("scenario", "size", "accelerator", "seed", "image")
_OF_THE_MOMENT = {"host load_before", "host accelerator"}
"""The load is another in every run; the accelerator stands by itself."""
_OF_A_LOOP_DEVICE = {"host disk device"}
"""An emulated disk is on whichever one is free."""
_ALSO_SETTINGS = {"host transparent_hugepages", "host ksm run", "host disk read_ahead_kib"}
"""What these were before the run; what they were in each cell is in its settings."""
_DIGITS = 12

Sides = Sequence[Sequence[CellDocument]]
"""The cells of each side at one place."""
Places = Sequence[tuple[Mapping[str, AxisValue], Sides]]
"""The axis values of each place that is compared ({} for single cells), with its cells."""


@dataclass(frozen=True, slots=True)
class Differing:
    """One condition, with the value of each side as text.

    `at` are the axis values of the places where the sides differ so; () where they do at all of them.
    """

    what: str
    values: tuple[str, ...]
    at: tuple[Mapping[str, AxisValue], ...] = ()

    def line(self, labels: Sequence[str]) -> str:
        """One sentence, with the sides under their labels; of sides with one value the first is named."""
        where = f" ({'; '.join(map(axes_words, self.at))})" if self.at else ""
        having = grouped(zip(self.values, labels, strict=True))
        sides = ", ".join(f"{named_labels(alike)} {cut(value, _LONGEST)}" for value, alike in having.items())
        return f"{self.what} differs{where}: {sides}"


def differing(runs: Sequence[RunPart], places: Places) -> list[Differing]:
    """All in which sides differ that are not the axes asked about; `runs` are the runs of the sides, in their order.

    The settings of two cells of one run follow from their axes, and so are what was asked about.
    """
    found = [*_of_runs(runs, places), *_of_provision(places)]
    if any(run.id != runs[0].id for run in runs):
        found += _of_places(places)
    return found


def value_words(value: object) -> str:
    """A value of JSON in words: texts and numbers as they are, null as not set, the rest as JSON."""
    if value is None:
        return NOT_SET
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else str(value)


def named_labels(labels: Sequence[str]) -> str:
    """The sides that have something in common: the first one, and how many more."""
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"


def _of_runs(runs: Sequence[RunPart], places: Places) -> Iterator[Differing]:
    facts = [
        {key: getattr(run, key) for key in _OF_RUNS}
        | dict(_leaves(run.added_images, "added image", " "))
        | dict(_leaves(run.assets, "asset", " "))
        | dict(_leaves(run.host, "host", " "))
        for run in runs
    ]
    known = all(cell.settings.get("host") for _, sides in places for side in sides for cell in side)
    left_out = _OF_THE_MOMENT | _ALSO_SETTINGS if known else _OF_THE_MOMENT
    if any((run.host.get("disk") or {}).get("emulated") for run in runs):
        left_out = left_out | _OF_A_LOOP_DEVICE
    for what in dict.fromkeys(key for one in facts for key in one):
        if what not in left_out and _differ(values := [one.get(what) for one in facts]):
            yield Differing(what, tuple(UNKNOWN if value is None else value_words(value) for value in values))


def _leaves(value: Mapping[str, Any], name: str, between: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        path = f"{name}{between}{key}" if name else key
        if isinstance(inner, dict):
            yield from _leaves(inner, path, between)
        else:
            yield path, inner


def _of_provision(places: Places) -> Iterator[Differing]:
    sides = zip(*(sides for _, sides in places), strict=True)
    hows = [sorted({cell.provision.how or UNKNOWN for cells in side for cell in cells}) for side in sides]
    if _differ(hows):
        yield Differing("provision", tuple(map("+".join, hows)))


def _of_places(places: Places) -> Iterator[Differing]:
    """What differs in settings and snapshots, each difference once with all places that have it."""
    found: dict[tuple[str, tuple[str, ...]], list[Mapping[str, AxisValue]]] = {}
    for axes, sides in places:
        asked = _asked_about(sides)
        for what, values in (*_of_settings(sides, asked), *(() if asked else _of_snapshots(sides))):
            found.setdefault((what, values), []).append(axes)
    for (what, values), at in found.items():
        yield Differing(what, values, () if len(at) == len(places) else tuple(at))


def _asked_about(sides: Sides) -> set[str]:
    """The last words of the axes whose values are not the same on all sides, which happens to single cells alone."""
    cells = [cell for side in sides for cell in side]
    names = {name for cell in cells for name in cell.axes}
    return {name.rpartition(".")[2] for name in names if _differ([cell.axes.get(name) for cell in cells])}


def _of_settings(sides: Sides, asked: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    known = [all(cell.settings for cell in cells) for cells in sides]
    if not all(known):
        if any(known):
            yield "record of settings", tuple("recorded" if one else UNKNOWN for one in known)
        return
    given = [_settings(cells) for cells in sides]
    # What all guests of a tile share stands once; the shared value is null where they differ.
    shared = {name for name in given[0] if all(NOT_SET not in one.get(name, (NOT_SET,)) for one in given)}
    for path in given[0]:
        if not all(path in one for one in given) or not _differ(values := [one[path] for one in given]):
            continue
        top, _, attribute = path.rpartition(".")
        doubled = attribute in shared if top.startswith("guests.") else not top and path not in shared
        if not doubled and attribute.removesuffix("_bytes") not in asked:
            yield f"setting {path}", tuple(map("+".join, values))


def _settings(cells: Sequence[CellDocument]) -> dict[str, list[str]]:
    """Each setting by its path, with its values in all repeats; and which guests and workloads there are."""
    found: dict[str, set[str]] = {}
    for cell in cells:
        settings = cell.settings
        names = {part: ", ".join(settings.get(part, {})) or "none" for part in ("guests", "workloads")}
        for path, value in (*names.items(), *_leaves(settings, "", ".")):
            found.setdefault(path, set()).add(value_words(value))
    return {path: sorted(values) for path, values in found.items()}


def _of_snapshots(sides: Sides) -> Iterator[tuple[str, tuple[str, ...]]]:
    """By the first digits of their digests; guests that booted have none."""
    taken = [sorted({one[:_DIGITS] for cell in side for one in cell.provision.snapshots.values()}) for side in sides]
    if all(taken) and _differ(taken):
        yield "snapshot", tuple(map("+".join, taken))


def _differ(values: Sequence[object]) -> bool:
    return any(value != values[0] for value in values)
