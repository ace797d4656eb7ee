"""What screens and widgets ask of the console that they are on; `app`, which has it, loads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from vmlab.model.run import AxisValue
    from vmlab.tui.app import Console


class Pick(NamedTuple):
    """A run, or one cell of it, that the user marked on the Runs screen."""

    store: Path
    cell: int | None = None


class Proposal(NamedTuple):
    """A run to plan: its scenario and size, and where it is to be others than written, repeats and values of axes."""

    scenario: str
    size: str
    repeats: int | None = None
    axes: Mapping[str, Sequence[AxisValue]] = MappingProxyType({})


class Said(NamedTuple):
    """What the console says in its bottom lines, and the name of its tone; of one screen alone, or of the console."""

    text: str
    tone: str
    of_screen: bool = False


def console_of(node: DOMNode) -> Console:
    """The console that a screen or widget is on."""
    return cast("Console", node.app)
