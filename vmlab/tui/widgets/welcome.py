"""What Live begins with where no run goes on: what the program is for, four ways to begin, and what the host has."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.tui.state.views import Readiness
from vmlab.tui.widgets.painted import Line, Piece

QUESTION = "How many guests does this host carry, and what slows them down?"
WHAT = "vmlab starts real guests that load each other, and watches the host."
_WAYS = (
    ("d", "watch the demo", "demo", "a recorded run"),
    ("c", "is the host's cache worth it?", "cache-modes", "cache-modes smoke"),
    ("s", "one whole tile", "tile", "tile smoke"),
)
"""Keys, what each answers, what it begins, and that in words."""
_KEY, _ANSWERS = 4, 31


def welcome_lines(ready: Readiness, *, airy: bool) -> Iterator[Line]:
    """The question and the ways to begin; with blank lines between them where there is room for that."""
    gap: list[Line] = [[]] if airy else []
    yield [(f" {QUESTION}", "title")]
    yield [(f" {WHAT}", "quiet")]
    yield from gap
    for key, answers, begins, words in _WAYS:
        yield _way(key, answers, ", ".join(filter(None, (words, ready.needs.get(begins, "")))))
    every = f"all {ready.scenarios} scenarios" if ready.scenarios else "all scenarios"
    yield [*_way("2", every, "each with its time"), ("   3", "accent"), ("  the runs there are", "plain")]
    yield from gap
    yield [(f" {ready.words or 'finding out what this host has'}", "plain" if ready.is_ready else "warning")]
    yield from gap


def _way(key: str, answers: str, what: str) -> list[Piece]:
    return [(f" {key:<{_KEY - 1}}", "accent"), (f"{answers:<{_ANSWERS}}", "plain"), (what, "quiet")]
