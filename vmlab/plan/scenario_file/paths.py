"""Paths such as ``workloads.*.threads``: where an axis or an assignment sets its value; and which keys the
scenario language knows at each place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vmlab.model.scenarios.axis import HOST_AXES, Axis
from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES
from vmlab.model.scenarios.host_settings import Host, why_not_varied
from vmlab.model.scenarios.reference import Claim, PublishedFigure, Reference, Unasked
from vmlab.model.scenarios.repetition import Until
from vmlab.model.scenarios.scenario import Allow, Guest, Limits, Scenario, WorkloadEntry
from vmlab.model.scenarios.table import Table
from vmlab.plan.scenario_file.problems import Place, meant, shorten
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.workloads.registry import kinds

_PART = re.compile(r"\*|[a-z][a-z0-9_-]*", re.ASCII)
_OF_EACH_CELL = ("warm",)
_FIXED = ("repeats", "until", "order", "warm_up", "seed", "hypervisor", "provision", "helper", "summary")
_PLAIN = (*_OF_EACH_CELL, *_FIXED)
_MEMBER_ROOTS = ("guests", "workloads")
_SETTINGS = {"limits": "limit", "host": "setting of the host"}
"""Roots with keys of their own, and what one of these is."""
AXIS_ROOTS = (*_MEMBER_ROOTS, "host", *_OF_EACH_CELL)
ASSIGNMENT_ROOTS = (*AXIS_ROOTS, "axes", "limits", "targets", *_FIXED)
TILES: Place = ("tiles",)
"""The place for a number of tiles, which is not in the document: the planner reads it."""


def path_length(root: str) -> int:
    """How many parts a path has that begins so, as ``host.thp`` has two; what is longer is refused by `expand`."""
    return 1 if root in _PLAIN else 3 if root in (*_MEMBER_ROOTS, "targets") else 2


def expand(document: Document, path: str, roots: Iterable[str]) -> list[Place]:
    """All places that a path means; ``*`` means every guest or workload that has such a key.

    Raises ValueError, with what would be right, for a path that means nothing.
    """
    parts = path.split(".") if len(path) <= 200 else []
    if not parts or not all(_PART.fullmatch(part) for part in parts):
        raise ValueError(f"{shorten(path)!r} is not a path such as workloads.web.requests or guests.*.memory")
    if parts[0] not in roots:
        words = f"{shorten(path)!r} begins with nothing that can be set"
        raise ValueError(f"{words}; {_fuller(document, parts) or meant(parts[0], roots)}")
    if tuple(roots) == AXIS_ROOTS and (why := why_not_varied(path)):
        raise ValueError(f"{path} {why}")
    if parts[0] in _MEMBER_ROOTS:
        return _members(document, parts, path)
    if parts[0] in _PLAIN and len(parts) == 1:
        return [(parts[0],)]
    if parts[0] == "targets" and len(parts) == 3 and "*" not in parts:
        return [tuple(parts)]
    if parts[0] == "axes" and path.removeprefix("axes.") in HOST_AXES:
        return [("axes", path.removeprefix("axes."))]
    if parts[0] in ("limits", "host", "axes") and len(parts) == 2 and parts[1] != "*":
        known = known_keys(document, (parts[0],)) if parts[0] in _SETTINGS else [parts[1]]
        if parts[1] not in known:
            raise ValueError(f"there is no {_SETTINGS[parts[0]]} {shorten(parts[1])!r}; {meant(parts[1], known)}")
        return [(parts[0], parts[1])]
    listed = f"; known are {', '.join(known_keys(document, (parts[0],)))}" if parts[0] in _SETTINGS else ""
    raise ValueError(f"{shorten(path)!r} means nothing; {parts[0]} is set as {_example(parts[0])}{listed}")


def _fuller(document: Document, parts: list[str]) -> str:
    """The whole path where the last part of one was given, such as ``memory``; empty where no path ends so."""
    if parts == ["tiles"]:
        return "tiles are an axis: axes.tiles=[1, 2], or --tiles 1,2"
    found = []
    for root in _MEMBER_ROOTS:
        members = document.at((root,))
        names = [str(name) for name in members] if isinstance(members, dict) else []
        if len(parts) == 2 and parts[0] in names:
            found.append(f"{root}.{'.'.join(parts)}")
        elif len(parts) == 1 and (having := [name for name in names if parts[0] in known_keys(document, (root, name))]):
            found.append(f"{root}.{having[0] if len(having) == 1 else '*'}.{parts[0]}")
    return f"did you mean {' or '.join(found)}?" if found else ""


def point_places(document: Document, path: str) -> list[Place]:
    """All places that a key of a named point means: a path of an axis, ``tiles``, ``warm``, or an attribute of all
    guests.

    Raises ValueError, with what would be right, for a path that means nothing.
    """
    if path == "tiles":
        return [TILES]
    if path not in (*GUEST_ATTRIBUTES, *_OF_EACH_CELL) and "." not in path:
        words = ["tiles", *_OF_EACH_CELL, *GUEST_ATTRIBUTES, "absent", "without"]
        raise ValueError(f"there is no {shorten(path)!r} to set; {meant(path, words)}")
    return expand(document, f"guests.*.{path}" if path in GUEST_ATTRIBUTES else path, AXIS_ROOTS)


def _example(root: str) -> str:
    examples = {
        "limits": "limits.start_skew",
        "axes": "axes.tiles",
        "host": "host.thp",
        "targets": "targets.web.latency_p95",
    }
    return examples.get(root, root)


def _members(document: Document, parts: list[str], path: str) -> list[Place]:
    root, *rest = parts
    found = document.at((root,))
    names = [str(name) for name in found] if isinstance(found, dict) else []
    if len(rest) != 2 or rest[1] == "*":
        name = rest[0] if rest and rest[0] in names else names[0] if names else "NAME"
        known = f"; keys are {', '.join(known_keys(document, (root, name)))}" if names else ""
        raise ValueError(f"{shorten(path)!r} needs three parts, such as {root}.{name}.KEY{known}")
    name, key = rest
    if name == "*":
        places: list[Place] = [(root, each, key) for each in names if key in known_keys(document, (root, each))]
        if not places:
            all_keys = dict.fromkeys(one for each in names for one in known_keys(document, (root, each)))
            words = f"{shorten(path)!r} hits nothing: no {root[:-1]} here has a {key!r}"
            raise ValueError(f"{words}; {meant(key, all_keys)}")
        return places
    if name not in names:
        raise ValueError(f"there is no {root[:-1]} {shorten(name)!r}; {meant(name, names)}")
    keys = known_keys(document, (root, name))
    if key not in keys:
        raise ValueError(f"{root}.{name} has no {shorten(key)!r}; {meant(key, keys)}")
    return [(root, name, key)]


_PARTS: dict[Place, type[BaseModel]] = {
    (): Scenario,
    ("host",): Host,
    ("limits",): Limits,
    ("table",): Table,
    ("allow",): Allow,
    ("until",): Until,
    ("reference",): Reference,
}
_LISTED: dict[Place, type[BaseModel]] = {
    ("reference", "figures"): PublishedFigure,
    ("reference", "claims"): Claim,
    ("reference", "unasked"): Unasked,
}
_MEMBERS: dict[str, type[BaseModel]] = {"guests": Guest, "workloads": WorkloadEntry, "axes": Axis}


def keys_of(model: type[BaseModel]) -> list[str]:
    """A model's keys as a scenario writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def params_of(kind: object) -> list[str]:
    """The parameters of a kind of workload; none for a kind that does not exist."""
    found = kinds().get(kind) if isinstance(kind, str) else None
    return keys_of(found.Params) if found else []


def _keys_within(kind: object, key: str) -> list[str]:
    """The keys of what is written below a parameter; those of the kind itself where that has none."""
    found = kinds().get(kind) if isinstance(kind, str) else None
    fields = found.Params.model_fields if found else {}
    inner = [model for name, field in fields.items() if (field.alias or name) == key for model in _models(field)]
    return keys_of(inner[0]) if inner else params_of(kind)


def _models(field: FieldInfo) -> Iterator[type[BaseModel]]:
    found: list[Any] = [field.annotation]
    for one in found:
        found += get_args(one)
    return (one for one in found if isinstance(one, type) and issubclass(one, BaseModel))


def known_keys(document: Document, place: Place) -> list[str]:
    """The keys that the mapping at a place may have; for names that are free, those that are there."""
    if place in _PARTS:
        return keys_of(_PARTS[place])
    if len(place) == 3 and place[:2] in _LISTED:
        return keys_of(_LISTED[place[:2]])
    if len(place) == 2 and place[0] in _MEMBERS:
        keys = keys_of(_MEMBERS[str(place[0])])
        return keys + params_of(document.at((*place, "kind"))) if place[0] == "workloads" else keys
    if len(place) > 2 and place[0] == "workloads":
        return _keys_within(document.at((*place[:2], "kind")), str(place[2]))
    value = document.at(place)
    return [str(name) for name in value] if isinstance(value, dict) else []
