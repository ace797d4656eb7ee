"""The tables of ``docs/reference/scenario-keys.md``, made from the models so that page and program say the same.

``python -m tests.plan.language_page`` writes them into the page again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.model.scenarios.axis import Axis, AxisPoint
from vmlab.model.scenarios.host_settings import Host
from vmlab.model.scenarios.lever import levers_of
from vmlab.model.scenarios.recorded import Recorded, RecordedPhase, RecordedWay
from vmlab.model.scenarios.reference import Claim, Needs, PublishedFigure, Reference, Restated, Unasked
from vmlab.model.scenarios.repetition import Until
from vmlab.model.scenarios.scenario import Allow, Guest, Limits, Scenario
from vmlab.model.scenarios.table import Table
from vmlab.workloads.registry import kinds

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scenario-keys.md"
_PLACE = re.compile(r"(<!-- table: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MODELS: dict[str, type[BaseModel]] = {
    "scenario": Scenario,
    "guests": Guest,
    "host": Host,
    "axes": Axis,
    "points": AxisPoint,
    "limits": Limits,
    "table": Table,
    "reference": Reference,
    "figures": PublishedFigure,
    "claims": Claim,
    "needs": Needs,
    "restates": Restated,
    "unasked": Unasked,
    "allow": Allow,
    "until": Until,
    "recorded": Recorded,
    "phases": RecordedPhase,
    "ways": RecordedWay,
}


def current(page: str) -> str:
    """The page with every table as the models have it now."""
    return _PLACE.sub(lambda place: f"{place[1]}{_made(place['name'])}\n{place[3]}", page)


def _made(name: str) -> str:
    if name == "kinds":
        return "\n\n".join(_kind(kind) for kind in kinds())
    return _table(_MODELS[name])


def _kind(name: str) -> str:
    kind = kinds()[name]
    keys = ("on",) if kind.sides == 1 else ("from", "to")
    places = [f"`{key}`{f' (role {role})' if role else ''}" for key, role in zip(keys, kind.roles, strict=False)]
    pair = ", or `from` and `to`" if kind.takes_pair else ""
    return f"### {name}\n\n{kind.summary} Takes {' and '.join(places)}{pair}.\n\n{_table(kind.Params)}"


def _table(model: type[BaseModel]) -> str:
    schema = model.model_json_schema(by_alias=True)
    bounds = {one.key: f" Delivered: {one.lever.words}." for one in levers_of(model).values()}
    required = schema.get("required", [])
    lines = ["| key | what | default |", "| --- | --- | --- |"]
    for key, field in schema["properties"].items():
        default = "needed" if key in required else _default(field)
        what = " ".join(str(field.get("description", "")).split()) + bounds.get(key, "")
        lines.append(f"| `{key}` | {what} | {default} |")
    return "\n".join(lines).replace("``", "`")


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if isinstance(default, bool):
        return str(default).lower()
    if default is None or isinstance(default, dict | list):
        return ""
    if str(field.get("pattern", "")).endswith("%$"):
        return f"{default:g} %"
    if field.get("type") == "string" and not isinstance(default, str):
        return format_seconds(default) if isinstance(default, float) else format_bytes(default)
    return str(default)


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text()))
