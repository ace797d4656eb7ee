"""The JSON Schema of scenarios, made from the models, so that editors complete and check as `vmlab validate` does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES
from vmlab.model.scenarios.host_settings import HOST_SETTINGS
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.changes import CHANGEABLE_SIZES, PLAIN
from vmlab.plan.scenario_file.variables import MOST_CHARACTERS, NAME, SIGN
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import AnyWorkload

Schema = dict[str, Any]

_AXIS_VALUE: Schema = {"type": ["string", "integer", "number", "boolean"]}
_TILES: Schema = {"type": "integer", "minimum": 1}


def scenario_schema() -> Schema:
    """A schema of draft 2020-12; kinds of workload are distinguished by ``kind``."""
    schema = Scenario.model_json_schema(by_alias=True)
    definitions: dict[str, Schema] = schema["$defs"]
    entry = definitions.pop("WorkloadEntry")
    for name, kind in kinds().items():
        definitions[_definition(name)] = _workload(name, kind, entry, definitions)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "vmlab scenario"
    # Kept for aliases to name.
    schema["patternProperties"] = {"^x-": True}
    properties = schema["properties"]
    properties["workloads"] = {
        **_described(properties["workloads"]),
        "type": "object",
        "minProperties": 1,
        "propertyNames": properties["name"],
        "additionalProperties": _by_kind(),
    }
    # The names of points are an axis' values, so one of the two is enough.
    definitions["Axis"].pop("required")
    definitions["Axis"]["anyOf"] = [{"required": ["values"]}, {"required": ["points"]}]
    properties["until"] = {**_described(properties["until"]), **_until(definitions)}
    properties["axes"] = {**_described(properties["axes"]), **_axes(definitions)}
    properties["sizes"] = {**_described(properties["sizes"]), **_sizes(definitions, properties)}
    schema = _with_variables(schema)
    schema["$defs"]["variable"] = {"type": "string", "pattern": re.escape(SIGN)}
    schema["properties"]["vars"] = {
        "description": "Variables by their names, with their values; null for one that --var or the environment gives.",
        "type": "object",
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": {"type": ["string", "number", "boolean", "null"], "maxLength": MOST_CHARACTERS},
    }
    return schema


def _with_variables(schema: Schema) -> Schema:
    """The schema where a variable may stand in place of each number, truth value, and word of a list or a form."""
    if schema.get("type") in ("integer", "number", "boolean") or schema.keys() & {"enum", "pattern"}:
        about: Schema = {key: schema[key] for key in ("default", "description", "title") if key in schema}
        bare = {key: one for key, one in schema.items() if key not in about}
        return {**about, "anyOf": [bare, {"$ref": "#/$defs/variable"}]}
    return {key: one if key in ("if", "propertyNames") else _inside(one) for key, one in schema.items()}


def _inside(part: Any) -> Any:
    """A part of a schema: schemas by names, a list of them, one of them, or a plain value."""
    if isinstance(part, list):
        return [_inside(one) for one in part]
    return _with_variables(part) if isinstance(part, dict) else part


def _definition(kind: str) -> str:
    return f"workload-{kind}"


def _described(property_: Schema) -> Schema:
    return {key: property_[key] for key in ("description", "title") if key in property_}


def _by_kind() -> Schema:
    """One branch for each kind, chosen by ``kind`` alone, so that an editor reports errors for the right kind."""
    choices: list[Schema] = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{_definition(name)}"},
        }
        for name in kinds()
    ]
    return {"type": "object", "properties": {"kind": {"enum": list(kinds())}}, "required": ["kind"], "allOf": choices}


def _workload(name: str, kind: type[AnyWorkload], entry: Schema, definitions: dict[str, Schema]) -> Schema:
    params = kind.Params.model_json_schema(by_alias=True, ref_template=f"#/$defs/{_definition(name)}-{{model}}")
    definitions.update({f"{_definition(name)}-{inner}": one for inner, one in params.pop("$defs", {}).items()})
    places = ("from", "to") if kind.sides == 2 else ("on", "from", "to") if kind.takes_pair else ("on",)
    properties: Schema = {
        "kind": {"const": name, "description": kind.summary},
        **{place: {**_described(entry["properties"][place]), "type": "string"} for place in places},
        **params["properties"],
    }
    # An axis or a size may set any parameter, so only the kind is required here.
    return {
        "type": "object",
        "description": kind.summary,
        "properties": properties,
        "required": ["kind"],
        "additionalProperties": False,
    }


def _axes(definitions: dict[str, Schema]) -> Schema:
    """Built-in axes take the values that guests and host take; the values of others depend on their path."""
    known = {
        "tiles": _TILES,
        **_bare(definitions["Guest"], GUEST_ATTRIBUTES, ""),
        **_bare(definitions["Host"], HOST_SETTINGS, "host."),
    }
    return {
        "type": "object",
        "properties": {name: _axis(values) for name, values in known.items()},
        "additionalProperties": _axis(_AXIS_VALUE),
    }


def _until(definitions: dict[str, Schema]) -> Schema:
    """A spread alone, or with its bounds."""
    words = ("description", "title")
    spread = {key: word for key, word in definitions["Until"]["properties"]["spread"].items() if key not in words}
    return {"anyOf": [spread, {"$ref": "#/$defs/Until"}]}


def _bare(model: Schema, names: Iterable[str], before: str) -> dict[str, Schema]:
    """What a model takes under these names, without words on it, under the axes' names."""
    words = ("default", "description", "title")
    taken = model["properties"]
    return {before + name: {key: word for key, word in taken[name].items() if key not in words} for name in names}


def _axis(values: Schema) -> Schema:
    listed = {"type": "array", "items": values, "minItems": 1, "uniqueItems": True}
    return {"anyOf": [listed, {"$ref": "#/$defs/Axis"}]}


def _sizes(definitions: dict[str, Schema], scenario: dict[str, Schema]) -> Schema:
    """Changes: any parameter of any kind for a workload, any attribute for a guest, some of the scenario's own keys."""
    attributes = {"type": "object", "properties": definitions["Guest"]["properties"], "additionalProperties": False}
    changed: Schema = {
        "type": "object",
        "properties": {
            "guests": {"type": "object", "additionalProperties": attributes},
            "host": {"$ref": "#/$defs/Host"},
            "allow": {"$ref": "#/$defs/Allow"},
            "axes": {"type": "object", "additionalProperties": {"type": ["array", "object"]}},
            **{name: scenario[name] for name in PLAIN},
        },
        "additionalProperties": {"type": "object"},
    }
    return {"type": "object", "properties": dict.fromkeys(CHANGEABLE_SIZES, changed), "additionalProperties": False}
