"""The JSON Schema of scenarios, made from the models, so that editors complete and check as `vmlab validate` does."""

from __future__ import annotations

from typing import Any

from vmlab.model.scenario import Scenario
from vmlab.plan.changes import CHANGEABLE_SIZES
from vmlab.workloads.contract import AnyWorkload
from vmlab.workloads.registry import kinds

Schema = dict[str, Any]

_AXIS_VALUE: Schema = {"type": ["string", "integer", "number", "boolean"]}
_BUILT_IN: dict[str, Schema] = {
    "tiles": {"type": "integer", "minimum": 1},
    "cache": {"enum": ["none", "writeback", "writethrough", "directsync", "unsafe"]},
}


def scenario_schema() -> Schema:
    """A schema of draft 2020-12; kinds of workload are told apart by ``kind``."""
    schema = Scenario.model_json_schema(by_alias=True)
    definitions: dict[str, Schema] = schema["$defs"]
    entry = definitions.pop("WorkloadEntry")
    for name, kind in kinds().items():
        definitions[_definition(name)] = _workload(name, kind, entry, definitions)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "vmlab scenario"
    properties = schema["properties"]
    properties["workloads"] = {
        **_described(properties["workloads"]),
        "type": "object",
        "minProperties": 1,
        "propertyNames": properties["name"],
        "additionalProperties": _by_kind(),
    }
    properties["axes"] = {**_described(properties["axes"]), **_axes()}
    properties["sizes"] = {**_described(properties["sizes"]), **_sizes(definitions)}
    return schema


def _definition(kind: str) -> str:
    return f"workload-{kind}"


def _described(property_: Schema) -> Schema:
    return {key: property_[key] for key in ("description", "title") if key in property_}


def _by_kind() -> Schema:
    """One branch for each kind, chosen by ``kind`` alone, so that an editor tells what is wrong in the right branch."""
    choices: list[Schema] = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{_definition(name)}"},
        }
        for name in kinds()
    ]
    return {"type": "object", "properties": {"kind": {"enum": list(kinds())}}, "required": ["kind"], "allOf": choices}


def _workload(name: str, kind: type[AnyWorkload], entry: Schema, definitions: dict[str, Schema]) -> Schema:
    params = kind.Params.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
    definitions.update(params.pop("$defs", {}))
    places = ("on",) if kind.sides == 1 else ("from", "to")
    properties: Schema = {
        "kind": {"const": name, "description": kind.summary},
        **{place: {**_described(entry["properties"][place]), "type": "string"} for place in places},
        **params["properties"],
    }
    # What an axis or a size puts in its place need not be written, so nothing but the kind is required here.
    return {
        "type": "object",
        "description": kind.summary,
        "properties": properties,
        "required": ["kind"],
        "additionalProperties": False,
    }


def _axes() -> Schema:
    return {
        "type": "object",
        "properties": {name: _axis(values) for name, values in _BUILT_IN.items()},
        "additionalProperties": _axis(_AXIS_VALUE),
    }


def _axis(values: Schema) -> Schema:
    listed = {"type": "array", "items": values, "minItems": 1, "uniqueItems": True}
    return {"anyOf": [listed, {"$ref": "#/$defs/Axis"}]}


def _sizes(definitions: dict[str, Schema]) -> Schema:
    """Changes: any parameter of any kind for a workload, any attribute for a guest."""
    attributes = {"type": "object", "properties": definitions["Guest"]["properties"], "additionalProperties": False}
    changed: Schema = {
        "type": "object",
        "properties": {
            "guests": {"type": "object", "additionalProperties": attributes},
            "axes": {"type": "object", "additionalProperties": {"type": ["array", "object"]}},
            "repeats": {"type": "integer", "minimum": 1},
        },
        "additionalProperties": {"type": "object"},
    }
    return {"type": "object", "properties": dict.fromkeys(CHANGEABLE_SIZES, changed), "additionalProperties": False}
