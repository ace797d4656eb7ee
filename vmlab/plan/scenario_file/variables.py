"""Variables of a scenario: ``${NAME}`` and ``${NAME:-default}`` in its values.

Their values come from `--var`, from the environment for names that the scenario's `vars` lists, and from `vars`. They
are put into one value at a time after the text was parsed, so that none becomes a key, a list or a mapping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from vmlab.plan.scenario_file.problems import meant, shorten

MOST_CHARACTERS = 4096
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_USE = re.compile(rf"\$\$\{{|\$\{{(?:(?P<name>{NAME.pattern})(?P<default>:-(?:(?!\$\{{)[^}}])*)?\}})?", re.ASCII)
_ESCAPE = "$${"
SIGN = "${"
"""What every variable begins with."""


def check_name(name: str) -> None:
    """Raise ValueError for what is no name of a variable."""
    if NAME.fullmatch(name) is None:
        raise ValueError(
            f"{shorten(name)!r} is no name of a variable: letters, digits and _, at most 64, no digit first"
        )


def check_value(value: str) -> None:
    """Raise ValueError for a text that no variable has."""
    if len(value) > MOST_CHARACTERS:
        raise ValueError(f"has a value of more than {MOST_CHARACTERS} characters")
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise ValueError("has a value that is not UTF-8 text")


def given(assignments: Iterable[str]) -> dict[str, str]:
    """Variables by their names from ``NAME=VALUE``. Raises ValueError, with what is wrong in one of them."""
    found: dict[str, str] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign:
            raise ValueError(f"{shorten(assignment)!r} needs NAME=VALUE")
        check_name(name)
        if name in found:
            raise ValueError(f"{name} is given twice")
        try:
            check_value(value)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
        found[name] = value
    return found


def is_alone(text: str) -> bool:
    """Whether a text is one variable and nothing else."""
    return text != _ESCAPE and _USE.fullmatch(text) is not None


def filled(text: str, values: Mapping[str, str | None], note: Callable[[str, str], object]) -> str:
    """A text with values in place of its variables; None stands for a variable without one.

    Each is noted by its name and value before it is put in place. Raises ValueError, with what would be right.
    """

    def value_of(use: re.Match[str]) -> str:
        name, default = use["name"], use["default"]
        if use[0] == _ESCAPE:
            return SIGN
        if name is None:
            began = shorten(text[use.start() :])
            raise ValueError(f"{began!r} is no variable, as ${{NAME}} and ${{NAME:-default}} are; $${{ stands for ${{")
        value = values.get(name)
        if default is not None:
            # As in a shell, for an empty value too.
            value = value or default.removeprefix(":-")
        if value is not None:
            note(name, value)
            return value
        if name in values:
            raise ValueError(f"the variable {name} has no value: --var {name}=VALUE, or {name} in the environment")
        raise ValueError(
            f"there is no variable {name}; {meant(name, values)}; --var {name}=VALUE and `vars` make one, "
            "and $${ stands for ${"
        )

    return _USE.sub(value_of, text)
