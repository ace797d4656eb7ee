"""Which keys the scenario language knows at each place."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel

from vmlab.model.scenarios.axis import Axis
from vmlab.model.scenarios.host_settings import Host
from vmlab.model.scenarios.reference import Claim, PublishedFigure, Reference, Unasked
from vmlab.model.scenarios.repetition import Until
from vmlab.model.scenarios.scenario import Allow, Guest, Limits, Scenario, WorkloadEntry
from vmlab.model.scenarios.table import Table
from vmlab.plan.scenario_file.problems import Place
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.workloads.registry import kinds

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


def known_keys(document: Document, place: Place) -> Iterable[str]:
    """The keys that the mapping at a place may have; for names that are free, those that are there."""
    if place in _PARTS:
        return keys_of(_PARTS[place])
    if len(place) == 3 and place[:2] in _LISTED:
        return keys_of(_LISTED[place[:2]])
    if len(place) == 2 and place[0] in _MEMBERS:
        keys = keys_of(_MEMBERS[str(place[0])])
        return keys + params_of(document.at((*place, "kind"))) if place[0] == "workloads" else keys
    if len(place) > 2 and place[0] == "workloads":
        return params_of(document.at((*place[:2], "kind")))
    value = document.at(place)
    return [str(name) for name in value] if isinstance(value, dict) else []
