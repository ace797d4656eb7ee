"""What all parts of a scenario have in common."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler


class Described(BaseModel):
    """Base of models whose fields are described, in the JSON Schema, by the docstrings below them.

    They are read when a schema is made, and not when a class is, as ``use_attribute_docstrings`` would: that reads the
    source of every model, which took a seventh of the time of a short command. Validators are built when they are used:
    who reads records needs the marks of keys and none of these.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of the model. A description that a field has otherwise goes before its docstring."""
        made = handler(core_schema)
        properties: dict[str, dict[str, Any]] = handler.resolve_ref_schema(made).get("properties", {})
        for base in reversed(cls.__mro__):
            if not (issubclass(base, Described) and base is not Described):
                continue
            for name, text in _docstrings(base).items():
                field = cls.model_fields.get(name)
                if field is not None and field.description is None:
                    properties[field.alias or name]["description"] = text
        return made


def _docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """The docstring below each attribute of the class that has one; nothing where its source is not there."""
    try:
        (found,) = ast.parse(dedent(inspect.getsource(model))).body
    except (OSError, TypeError, SyntaxError):
        return {}
    assert isinstance(found, ast.ClassDef)
    texts = {}
    for one, below in zip(found.body, found.body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(below, ast.Expr):
            match below.value:
                case ast.Constant(value=str(text)):
                    texts[one.target.id] = inspect.cleandoc(text)
    return texts


class ScenarioPart(Described):
    """Base of a scenario's models: frozen, strict, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def matched(value: object, form: re.Pattern[str], wanted: str) -> str:
    """The value, a text of that form. Raises ValueError, with what is `wanted`, for anything else."""
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(wanted)
    return value


def as_tuple(value: object) -> object:
    """One word stands for a list of it; for validators, behind which strict models take no list for a tuple."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
