"""The walk over Live, and what its keys do by what a run does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from tests.tui.tmux import Tmux
from tests.tui.walk import (
    FOCUS,
    PANES,
    TITLES,
    WATCHED,
    Deed,
    Walk,
    WatchWalk,
    everywhere,
    focus,
    moves,
    opens,
    says,
    unknown,
)
from tests.tui.walks import COMING, QUESTION, RECORDING
from vmlab.tui.app import Console
from vmlab.tui.screens.base_screen import RUN_KEYS
from vmlab.tui.screens.live_screen import LiveScreen

Deeds = dict[str, Deed]
_COMING, _GUESTS, _LOOP = "Cells to come: ", "The running guests: ", "The loop: "
_STAYS = "the running cell stays as it is"
_NOT = "not changed: "
_ONE_TILE = "at least one tile"


def logs(*words: str) -> Deed:
    """The key, pressed once, brings a line with one of these into the log; for what takes time or ends something."""

    def found(text: str) -> set[str]:
        # A line of the log begins with its time: the same words once more are another line.
        return {row for row in text.splitlines() if any(one in row for one in words)}

    def deed(walk: Walk, key: str) -> None:
        walk.quiet()
        before = found(walk.tmux.text())
        walk.tmux.send(key)
        text = walk.tmux.until(
            lambda text: found(text) - before or _NOT in walk.said(text), f"a line more with one of {words}"
        )
        assert found(text) - before, f"it is refused:\n{text}"

    return deed


def _switches(what: str) -> Deed:
    """The key switches it under the guests that run, which the strip tells; or the host's refusal is said."""

    def now(text: str) -> list[str]:
        return re.findall(rf"now {what} (\w+)", text)

    def deed(walk: Walk, key: str) -> None:
        walk.quiet()
        before = now(walk.tmux.text())
        walk.tmux.send(key)
        walk.tmux.until(
            lambda text: now(text) != before or _GUESTS + _NOT in walk.said(text), f"{what} is switched, or why not"
        )

    return deed


TRIED = ("try_it('cache-modes')", "try_it('tile')")
SPAN: Deeds = {"span": says("charts: ")}
NO_RUN: Deeds = SPAN | {
    **dict.fromkeys(("domain", *(one.action for one in RUN_KEYS)), says("no run is going on", "; press 2 to start ")),
    "demo": opens(RECORDING),
    **dict.fromkeys(TRIED, opens(TITLES["scenarios"], back=("1",))),
}
WAITING: Deeds = SPAN | {
    **dict.fromkeys(("domain", "demo", *TRIED), says("a run is going on")),
    "switch_cache": says(f"{_COMING}cache ", _STAYS),
    **dict.fromkeys(("switch_cache_now", "switch_ksm_now"), says(_GUESTS + _NOT)),
    "change_tiles(1)": says(_COMING, _STAYS),
    # What was asked a moment ago may not be known yet; then there is one tile.
    "change_tiles(-1)": says(_COMING, f"{_STAYS}|{_ONE_TILE}"),
    "edit_coming": opens(COMING),
    "as_planned": says(f"{_COMING}as planned, ", _STAYS),
    **dict.fromkeys(("change_tiles_now(1)", "change_tiles_now(-1)", "end_loop"), says(_LOOP + _NOT)),
    "stop_run": opens(QUESTION),
}
"""While no workload runs."""
WORKING: Deeds = WAITING | {
    "domain": opens("─Workloads─"),
    "switch_cache_now": _switches("cache"),
    "switch_ksm_now": _switches("ksm"),
    "change_tiles_now(1)": logs("tile 2 was added"),
    "change_tiles_now(-1)": logs("tile 2 was retired"),
    "end_loop": logs("asked: end the loop", "cell 2/"),
}
"""While the workloads of a loop run."""
LAST_CELL: Deeds = WAITING | {
    "domain": opens("─Workloads─"),
    **dict.fromkeys(("switch_cache", "change_tiles(1)", "as_planned"), says(_COMING + _NOT)),
    "change_tiles(-1)": says(f"{_COMING}{_NOT}|{_ONE_TILE}"),
}
"""While no workload runs, and no cell is to come."""


class Live(WatchWalk):
    """Live, just opened."""

    def __init__(self, tmux: Tmux) -> None:
        super().__init__(tmux, TITLES["live"], "─Events─")

    def walk(self, of_a_run: Deeds, later: Iterable[str] = ()) -> None:
        """All keys of the screen and of its panes but for `later`; those for a run do what `of_a_run` says."""
        deeds = everywhere("live") | WATCHED | of_a_run | dict.fromkeys(FOCUS, focus)
        deeds = {action: deed for action, deed in deeds.items() if action not in later}
        self.over(LiveScreen, Console, deeds=deeds, later=tuple(later), other=unknown)
        for title, owner in PANES.items():
            if f"─{title}" not in self.tmux.text():
                # The welcome has the place of guests.
                continue
            self.enter(title)
            self.over(owner, deeds=moves(owner, _first_row(title)), other=unknown)


def _first_row(title: str) -> Callable[[Walk], str]:
    return lambda walk: walk.first_row(title)
