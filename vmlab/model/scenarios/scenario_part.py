"""What all parts of a scenario have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ScenarioPart(BaseModel):
    """Base of a scenario's models: frozen, strict, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


def as_tuple(value: object) -> object:
    """One word stands for a list of it; for validators."""
    return [value] if isinstance(value, str) else value
