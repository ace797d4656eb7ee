"""A scenario's text as plain values that remember where each came from, and can be changed at a place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vmlab.model.errors import UsageError
from vmlab.plan.scenario_file.files_beside import FilesBeside
from vmlab.plan.scenario_file.problems import Origin, Place, Problem, as_error, raise_all
from vmlab.plan.scenario_file.yaml_text import Tree


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values of a scenario.

    `changed` has the origin of values that were set later: another place of the text, or an option. `files` are those
    beside the scenario.
    """

    file: Path
    tree: Tree
    value: dict[str, Any]
    changed: dict[Place, Place | Origin] = field(default_factory=dict)
    files: FilesBeside = field(default_factory=lambda: FilesBeside(None))

    def at(self, place: Place) -> Any:
        """The value at a place, or None where there is none."""
        found: Any = self.value
        for part in place:
            found = found.get(part) if isinstance(found, dict) else None
        return found

    def assigned(self, places: list[Place], value: Any, origin: Place | Origin) -> Document:
        """A copy with `value` at every place; mappings on the way are made where they are missing.

        All other parts are shared with the original: a document is never changed after it was made.

        Raises UsageError where something on the way is not a mapping.
        """
        # What was set below one of the places is gone.
        changed = {old: one for old, one in self.changed.items() if not any(old[: len(new)] == new for new in places)}
        root = dict(self.value)
        for place in places:
            inner = root
            for length, part in enumerate(place[:-1], start=1):
                below = inner.get(str(part), {})
                if not isinstance(below, dict):
                    raise self.error(Problem(place[:length], "needs a mapping"))
                inner[str(part)] = inner = dict(below)
            inner[str(place[-1])] = value
            changed[place] = origin
        return replace(self, value=root, changed=changed)

    def without(self, *keys: str) -> Document:
        """A copy that lacks some of the root's keys."""
        return replace(self, value={k: v for k, v in self.value.items() if k not in keys})

    def is_option(self, place: Place) -> bool:
        """Whether the value at a place comes from an option of the command line."""
        return isinstance(self._source(place), Origin)

    def is_changed(self, place: Place) -> bool:
        """Whether the value at a place is another one than the text has there, by a size or an option."""
        return self._source(place) is not None

    def origin(self, place: Place, *, at_key: bool = False) -> Origin:
        """The origin of the value (or key) at a place; that of the enclosing value, where it is not written itself."""
        source = self._source(place)
        return source if isinstance(source, Origin) else self._written(source or place, at_key=at_key)

    def _source(self, place: Place) -> Place | Origin | None:
        """The first origin of a value that was set here; None for one that is written here in the text."""
        for length in range(len(place), -1, -1):
            source = self.changed.get(place[:length])
            if isinstance(source, tuple):
                # An axis may have its values from a size or an option.
                earlier = (*source, *place[length:])
                return self._source(earlier) or earlier
            if source is not None:
                return source
        return None

    def _written(self, place: Place, *, at_key: bool) -> Origin:
        for length in range(len(place), -1, -1):
            part = place[:length]
            by_key = at_key or length < len(place)
            position = self.tree.keys.get(part) if by_key else None
            if (position := position or self.tree.values.get(part)) is not None:
                return Origin(position)
        return Origin()

    def error(self, problem: Problem) -> UsageError:
        """A problem as an error that names its file, line and column, or the option behind it."""
        return as_error(problem.message, self.origin(problem.place, at_key=problem.at_key), self.file)

    def raise_problems(self, problems: list[Problem]) -> None:
        """Raise all problems together; nothing where there are none.

        A value that was set at many places is reported once.
        """
        first: dict[object, Problem] = {}
        for problem in problems:
            first.setdefault(self._source(problem.place) or problem, problem)
        raise_all([self.error(problem) for problem in first.values()])
