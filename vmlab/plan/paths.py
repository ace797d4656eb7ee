"""Paths such as ``workloads.*.threads``: where an axis or an assignment puts its value."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vmlab.model.scenario import Guest, Scenario, WorkloadEntry
from vmlab.plan.document import Document
from vmlab.plan.keys import keys_of, params_of
from vmlab.plan.problems import Place, meant, shorten

_PART = re.compile(r"\*|[a-z][a-z0-9_-]*", re.ASCII)
_FIXED = ("image", "repeats", "seed", "hypervisor", "summary")
AXIS_ROOTS = ("guests", "workloads")
ASSIGNMENT_ROOTS = (*AXIS_ROOTS, "axes", "limits", *_FIXED)


def expand(document: Document, path: str, roots: Iterable[str]) -> list[Place]:
    """All places that a path means; ``*`` means every guest or workload that has such a key.

    Raises ValueError, with what would be right, for a path that means nothing.
    """
    parts = path.split(".") if len(path) <= 200 else []
    if not parts or not all(_PART.fullmatch(part) for part in parts):
        raise ValueError(f"{shorten(path)!r} is not a path such as workloads.web.requests or guests.*.memory")
    if parts[0] not in roots:
        raise ValueError(f"{shorten(path)!r} begins with nothing that can be set; {meant(parts[0], roots)}")
    if parts[0] in AXIS_ROOTS:
        return _members(document, parts, path)
    if parts[0] in _FIXED and len(parts) == 1:
        return [(parts[0],)]
    if parts[0] in ("limits", "axes") and len(parts) == 2 and parts[1] != "*":
        if parts[0] == "limits" and parts[1] not in _limits():
            raise ValueError(f"there is no limit {shorten(parts[1])!r}; {meant(parts[1], _limits())}")
        return [(parts[0], parts[1])]
    raise ValueError(f"{shorten(path)!r} means nothing; {parts[0]} is set as {_example(parts[0])}")


def _limits() -> list[str]:
    return keys_of(type(Scenario.model_fields["limits"].default))


def _example(root: str) -> str:
    return {"limits": "limits.start_skew", "axes": "axes.tiles"}.get(root, root)


def _members(document: Document, parts: list[str], path: str) -> list[Place]:
    root, *rest = parts
    found = document.at((root,))
    names = [str(name) for name in found] if isinstance(found, dict) else []
    if len(rest) != 2 or rest[1] == "*":
        raise ValueError(f"{shorten(path)!r} needs three parts, such as {root}.{names[0] if names else 'NAME'}.KEY")
    name, key = rest
    if name == "*":
        places: list[Place] = [(root, each, key) for each in names if key in _keys(document, root, each)]
        if not places:
            raise ValueError(f"{shorten(path)!r} hits nothing: no {root[:-1]} here has a {key!r}")
        return places
    if name not in names:
        raise ValueError(f"there is no {root[:-1]} {shorten(name)!r}; {meant(name, names)}")
    keys = _keys(document, root, name)
    if key not in keys:
        raise ValueError(f"{root}.{name} has no {shorten(key)!r}; {meant(key, keys)}")
    return [(root, name, key)]


def _keys(document: Document, root: str, name: str) -> list[str]:
    if root == "guests":
        return keys_of(Guest)
    return keys_of(WorkloadEntry) + params_of(document.at((root, name, "kind")))
