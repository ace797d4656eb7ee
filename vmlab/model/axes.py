"""Values of axes as people read and write them: the same in reports, plans, the console and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from vmlab.model.run import WARM_UP

if TYPE_CHECKING:
    from vmlab.model.run import AxisValue


def axis_word(value: AxisValue) -> str:
    """An axis value as YAML has it, without quotation marks: ``true``, ``4``, ``none``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def axes_words(axes: Mapping[str, AxisValue]) -> str:
    """``tiles 1, cache none``; ``as written`` for a cell without axes."""
    return ", ".join(f"{name} {axis_word(value)}" for name, value in axes.items()) or "as written"


def without(axes: Mapping[str, AxisValue], name: str) -> dict[str, AxisValue]:
    """A place on all axes but one."""
    return {axis: value for axis, value in axes.items() if axis != name}


def places_words(places: Sequence[Mapping[str, AxisValue]]) -> tuple[str, list[str]]:
    """The axes of places, ``cache / tiles``, and the values of each place, ``none / 1``; ``-`` for an axis it lacks."""
    axes = list(dict.fromkeys(name for place in places for name in place))
    values = [[axis_word(place[name]) if name in place else "-" for name in axes] for place in places]
    return " / ".join(axes), [" / ".join(words) for words in values]


def repeat_words(repeat: int) -> str:
    """``repeat 2``, or ``warm-up``."""
    return "warm-up" if repeat == WARM_UP else f"repeat {repeat}"


def absent_words(name: str, values: Sequence[AxisValue], reason: str) -> str:
    """The line that stands for values of an axis that have no cells, all for the same reason."""
    verb = "is" if len(values) == 1 else "are"
    return f"{name} {', '.join(map(axis_word, values))} {verb} absent: {reason}"


def axis_yaml(values: Iterable[AxisValue]) -> str:
    """Values of an axis as YAML that is read back as the same values: ``[true, 4, "none"]``."""
    # Loaded here: the console's first picture shows values of axes and does not wait for JSON.
    import json

    # YAML reads JSON, but not JSON's escapes for characters beyond the basic multilingual plane.
    return json.dumps(list(values), ensure_ascii=False)
