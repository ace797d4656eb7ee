"""An axis as a scenario writes it: values with one place each, or named points that set several places at once."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from vmlab.model.names import HOST_PLACE
from vmlab.model.run import MOST_VALUES
from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES
from vmlab.model.scenarios.host_settings import HOST_SETTINGS, why_not_varied
from vmlab.model.scenarios.scenario_part import ScenarioPart, as_tuple, matched

HOST_AXES = tuple(f"host.{name}" for name in HOST_SETTINGS)
BUILT_IN_AXES = ("tiles", HOST_PLACE, *GUEST_ATTRIBUTES, *HOST_AXES)
"""Axes whose values need no `path`: the program knows what they set."""
RESERVED_NAMES = (
    "allow",
    "axes",
    "guests",
    HOST_PLACE,
    "metrics",
    "order",
    "repeats",
    "statistics",
    "until",
    "warm",
    "workloads",
)
"""Words with a meaning in the language; guests, workloads and axes may not have them as names."""

_AXIS_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}", re.ASCII)
_POINT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9][a-z0-9._-]{0,30}", re.ASCII)
_LONGEST_REASON = 200


def check_axis_name(name: object) -> object:
    """The name of an axis: as a guest's, but with underscores allowed, a host setting, such as ``host.thp``, or
    ``host`` for the hosts of a fleet.
    """
    if name in (HOST_PLACE, *HOST_AXES):
        return name
    if isinstance(name, str) and (why := why_not_varied(name)):
        raise ValueError(why)
    if name in RESERVED_NAMES:
        raise ValueError("has a meaning in the language; an axis needs another name")
    if isinstance(name, str) and name.startswith("host."):
        raise ValueError(f"is no setting of the host that can be varied; known are {', '.join(HOST_AXES)}")
    if isinstance(name, str) and "." in name:
        short = name[:80]
        path = short if short.startswith(("guests.", "workloads.")) else f"workloads.{short} or guests.{short}"
        raise ValueError(f"is a path, not a name; write {short.rpartition('.')[2]}: {{values: […], sets: {path}}}")
    return matched(name, _AXIS_NAME, "needs small letters, digits, dashes and underscores, the first a letter")


def check_point_name(name: object) -> object:
    """The name of a point: it may begin with a digit, as ``4k-randread`` does, but must contain a letter."""
    wanted = "needs small letters, digits, dots, dashes and underscores, at most 31, one of them a letter"
    return matched(name, _POINT_NAME, wanted)


def _reason(text: object) -> object:
    if text is not None and (not isinstance(text, str) or not text.strip() or len(text) > _LONGEST_REASON):
        raise ValueError(f"needs the reason in words, at most {_LONGEST_REASON} characters")
    return text


Words = Annotated[
    tuple[str, ...],
    Field(strict=False),
    BeforeValidator(as_tuple),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
AxisName = Annotated[str, BeforeValidator(check_axis_name), WithJsonSchema({"type": "string"})]
PointName = Annotated[
    str, BeforeValidator(check_point_name), WithJsonSchema({"type": "string", "pattern": f"^{_POINT_NAME.pattern}$"})
]
Scalar = bool | int | float | str


class AxisPoint(ScenarioPart):
    """What a named value of an axis sets; all keys besides these are paths with the values that are set there."""

    model_config = ConfigDict(extra="allow")

    absent: Annotated[str | None, BeforeValidator(_reason)] = None
    """Why there is no cell for this point; plan and results show this line instead. Allowed only without other keys."""
    without: Words = ()
    """An axis, or a list of axes, that does not apply: this point's cells do not vary over it."""

    @property
    def sets(self) -> dict[str, Any]:
        """Paths and the values that are set there, as they are written."""
        return dict(self.model_extra or {})


class Axis(ScenarioPart):
    """What is varied: its values, and what each of them sets."""

    values: Annotated[tuple[Scalar, ...], Field(min_length=1, max_length=MOST_VALUES, strict=False)]
    """The values, in order; each makes a cell of its own. With `points`: names of points; all of them by default."""
    sets: Words = ()
    """The path that a value sets: ``workloads.primes.threads``, ``guests.*.memory``, or a list of such paths."""
    points: Annotated[dict[PointName, AxisPoint], Field(max_length=MOST_VALUES)] = Field(default_factory=dict)
    """Named values, each with all that it sets: ``{none-4q: {cache: none, guests.vm.queues: 4}}``."""
    label: str = ""
    """The name of the axis in the headings of tables."""

    @model_validator(mode="before")
    @classmethod
    def _all_points(cls, value: object) -> object:
        if isinstance(value, dict) and "values" not in value and isinstance(value.get("points"), dict):
            return {**value, "values": list(value["points"])}
        if not isinstance(value, dict):
            raise ValueError("needs a list of values, or a mapping with `values` and `sets`")
        return value
