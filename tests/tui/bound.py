"""The keys of the console, as its own classes bind them; tests walk these and have no list of their own."""

from __future__ import annotations

from textual.dom import DOMNode

MOVES = ("move", "row", "value", "scroll")
"""Actions that move a cursor or a pane; they go back where they are told a step below 0."""
LEAVES = ("quit",)


def bound(*owners: type[DOMNode]) -> dict[str, str]:
    """The action of each key, where the first of `owners` that binds it has it: a pane before its screen."""
    found: dict[str, str] = {}
    for owner in owners:
        for key, bindings in owner._merged_bindings.key_to_bindings.items():  # type: ignore[union-attr]
            found.setdefault(key, bindings[0].action)
    return found


def keys(owner: type[DOMNode], *actions: str) -> list[str]:
    """The keys of `owner` that do one of `actions`, each with what it is told."""
    return [key for key, action in bound(owner).items() if action in actions]


def name_of(action: str) -> str:
    """The action without what it is told."""
    return action.partition("(")[0]
