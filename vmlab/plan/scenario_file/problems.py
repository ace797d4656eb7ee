"""Problems of a scenario: where each is, what would be right, and how they become one error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.errors import ScenarioError, UsageError, VmlabError
from vmlab.model.visible import cut, visible_line

MOST_LINES = 20
_VARIABLE = re.compile(r"\$\{|\$[A-Za-z_]|\{\{|%[A-Za-z_]+%")

Place = tuple[str | int, ...]
"""Where something stands in a document: keys and indices from the root."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: a position in the file, or an option of the command line."""

    position: Position | None = None
    option: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `at_key` points to the key rather than to its value."""

    place: Place
    message: str
    at_key: bool = False


class ScenarioErrors(ScenarioError):
    """Several problems of one scenario; `str()` has a line for each."""

    def __init__(self, problems: Iterable[VmlabError]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems[0].args[0])
        self.args = ("\n".join(self.lines()),)

    def lines(self) -> tuple[str, ...]:
        """A line for each problem, up to a number that fits a screen."""
        shown = [str(problem) for problem in self.problems[:MOST_LINES]]
        if len(self.problems) > MOST_LINES:
            shown.append(f"… and {len(self.problems) - MOST_LINES} more")
        return tuple(shown)


def dotted(place: Place) -> str:
    """A place as people write it: ``guests.front.memory``; long or strange keys are shortened."""
    return ".".join(shorten(part) if isinstance(part, str) else str(part + 1) for part in place)


def shorten(word: object, most: int = 40) -> str:
    """A value for a message, as YAML has it: one line, at most `most` characters, control characters escaped."""
    return cut(visible_line(_yaml(word)[: most + 1]), most)


def _yaml(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) and not value.is_integer() else str(value)


def meant(word: object, known: Iterable[str]) -> str:
    """What would be right: the nearest of the known words, else all of them."""
    words = list(known)
    near = difflib.get_close_matches(str(word)[:60], words, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(words)}" if words else "none is known here"


def unexpanded(value: str) -> str:
    """A remark on what looks like a variable of a shell or a template; empty for all else."""
    if _VARIABLE.search(value) is None:
        return ""
    return "; environment variables and templates are not expanded: write the value itself, or --set PATH=VALUE"


def as_error(message: str, origin: Origin, file: Path | str) -> UsageError:
    """One problem as an error: an option is named as it was typed, everything else by file, line and column."""
    if origin.option is not None:
        return UsageError(f"{origin.option}: {message}")
    if origin.position is None:
        return ScenarioError(message, file=file)
    return ScenarioError(message, file=file, line=origin.position.line, column=origin.position.column)


def raise_all(errors: list[UsageError]) -> None:
    """Raise what there is: nothing, the one error, or all of them together in the order of the file."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ScenarioErrors(sorted(errors, key=_order))


def _order(error: VmlabError) -> tuple[int, int]:
    if isinstance(error, ScenarioError):
        return (error.line or 0, error.column or 0)
    return (0, 0)
