"""Names that a scenario chooses from a list."""

from __future__ import annotations

from typing import TypeVar

from pydantic import AfterValidator, ValidationInfo

_Names = TypeVar("_Names", bound="tuple[str, ...]")


def _each_once(names: _Names, validation: ValidationInfo) -> _Names:
    if len(set(names)) != len(names):
        raise ValueError(f"{validation.field_name} must not name one twice")
    return names


EACH_ONCE = AfterValidator(_each_once)
"""For a field with a tuple of names: none of them may stand in it twice."""
