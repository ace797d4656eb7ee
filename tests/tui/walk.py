"""Presses every key that the program binds, on a real terminal, and waits for what each does or says."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from textual.dom import DOMNode

from tests.tui.bound import LEAVES, MOVES, bound, keys, name_of
from tests.tui.tmux import Tmux
from vmlab.tui.app import Console
from vmlab.tui.screens.modals import CLOSES
from vmlab.tui.screens.watch_screen import WatchScreen
from vmlab.tui.widgets.tables.event_log import EventLog
from vmlab.tui.widgets.tables.guest_table import GuestTable

_LEAVE = "press q to leave"
"""What Ctrl+C says."""
_QUIET_SECONDS = 0.15
_AGAIN_SECONDS = 20.0
"""After which a key is pressed once more: what it says goes by itself, and a busy machine may miss it."""
_KEYS = "q Quit"
"""The end of the bottom line while nothing is said there."""
_SAID_ROWS = 4
TITLES = {"live": "● LIVE", "scenarios": "─What a run costs─", "runs": "─Runs─", "compare": "─Compare─"}
"""What stands on each screen, and on no other."""
PANES: dict[str, type[DOMNode]] = {"Events": EventLog, "Guests": GuestTable}
"""The panes of Live and of Replay that can have the focus, by their titles."""
FOCUS = ("pane(1)", "pane(-1)")
(_CTRL_C,), (_COPY,) = keys(Console, "help_quit"), keys(Console, "copy_table")

Deed = Callable[["Walk", str], None]
"""Presses a key and waits for what it does."""


class Walk:
    """The walk over one screen of a console in `tmux`, which shows all of `home` while nothing is open over it."""

    def __init__(self, tmux: Tmux, *home: str, modal: bool = False) -> None:
        self.tmux = tmux
        self.home = home
        self._modal = modal
        """Whether it lies over a screen whose keys do nothing meanwhile."""

    def over(self, *owners: type[DOMNode], deeds: Mapping[str, Deed], later: tuple[str, ...] = (), other: Deed) -> None:
        """Press all keys of `owners`; those whose action `deeds` does not know do what `other` says.

        Not pressed is what ends the program, or does what `later` names: that is for the end.
        """
        unknown = [*deeds.keys() - set(bound(*owners).values())]
        assert not unknown, f"no key does {unknown}"
        for key, action in bound(*owners).items():
            if name_of(action) in LEAVES or action in later:
                continue
            try:
                deeds.get(action, other)(self, key)
            except AssertionError as error:
                raise AssertionError(f"{key} ({action}) on {self.home}: {error}") from None

    def said(self, text: str = "") -> str:
        """What stands in place of the keys, or in the lower edge of what lies over a screen; empty for nothing."""
        rows = (text or self.tmux.text()).rstrip("\n").splitlines()
        if self._modal:
            edge = next((row for row in reversed(rows) if "╰" in row), "").strip(" ╰─╯")
            return "" if edge.endswith(CLOSES) else edge
        return "" if _KEYS in rows[-1] else " ".join(" ".join(rows[-_SAID_ROWS:]).split())

    def quiet(self) -> None:
        """Have nothing said but what Ctrl+C says; over a screen whose keys do nothing, wait until nothing is."""
        if self._modal:
            self.tmux.until(lambda text: not self.said(text), "silence")
        elif self.said() and _LEAVE not in self.said():
            self.tmux.send(_CTRL_C)
            self.tmux.until(lambda text: _LEAVE in self.said(text) or not self.said(text), "room for another sentence")

    def is_fresh(self, text: str) -> bool:
        """Whether something is said that was not before, after `quiet`."""
        return bool(self.said(text)) and _LEAVE not in self.said(text)

    def says(self, key: str, *words: str) -> None:
        """Press `key`: then a sentence with all `words` stands in the bottom lines for a while.

        A word may be several with ``|`` between, of which one is enough.
        """

        def holds(text: str) -> bool:
            said = self.said(text)
            return all(any(one in said for one in word.split("|")) for word in words)

        if holds(self.tmux.text()):
            # The same sentence of the key before makes room for another one.
            self.tmux.send(_COPY if key == _CTRL_C else _CTRL_C)
            self.tmux.until(lambda text: not holds(text), f"room for {words}")
        for last in (False, False, True):
            self.tmux.send(key)
            try:
                self.tmux.until(holds, f"{words} are said", *(() if last else (_AGAIN_SECONDS,)))
                return
            except AssertionError:
                if last:
                    raise

    def closes(self, key: str, opening: str) -> None:
        """Press `key`, and what was open is gone; then `opening` opens it again."""
        self.tmux.send(key)
        self.tmux.until(lambda text: not all(word in text for word in self.home), f"{self.home} are gone")
        self.tmux.send(opening)
        self.tmux.shows(*self.home)

    def opens(self, key: str, *words: str, back: tuple[str, ...]) -> None:
        """Press `key`: all `words` come to stand there; then `back`, and they are gone and the screen is as before."""
        there = self.tmux.shows(*self.home)
        assert not all(word in there for word in words), f"{words} were there before"
        self.tmux.send(key)
        self.tmux.shows(*words)
        for one in back:
            self.tmux.send(one)
        self.tmux.until(
            lambda text: all(word in text for word in self.home) and not all(word in text for word in words),
            f"back from {words} to {self.home}",
        )

    def reacts(self, key: str, seen: Callable[[], Any] | None = None) -> None:
        """Press `key`: then `seen` gives something else, or something is said.

        `seen` gives what no clock changes; the whole screen, where it stands still.
        """
        look = seen or self._still
        self.quiet()
        before = self._settled(look)
        for last in (False, False, True):
            self.tmux.send(key)
            try:
                self.tmux.until(
                    lambda text: self.is_fresh(text) or look() != before,
                    "something is another, or is said",
                    *(() if last else (_AGAIN_SECONDS,)),
                )
                return
            except AssertionError:
                if last:
                    raise

    def _still(self) -> list[str]:
        """All but the bottom line, in its colours."""
        return self.tmux.text(styled=True).rstrip("\n").splitlines()[:-1]

    def _settled(self, look: Callable[[], Any]) -> Any:
        """What `look` gives twice in a row: a pane that glides has come to rest."""
        before, now = object(), look()
        while now != before:
            time.sleep(_QUIET_SECONDS)
            before, now = now, look()
        return now

    def pane(self, title: str) -> tuple[int, int]:
        """The first row under an edge with this title, and the one behind the last, counted from 0.

        The edge of guests may count those out of sight.
        """
        edge = re.compile(f"─{title}(  ▼ [0-9]+ more)?─")
        # A picture may be read while it is drawn.
        text = self.tmux.until(lambda text: any(map(edge.match, text.splitlines())), f"the edge of {title}")
        rows = text.rstrip("\n").splitlines()
        first = next(place for place, row in enumerate(rows) if edge.match(row)) + 1
        ends = [place for place, row in enumerate(rows) if place >= first and re.match("─[A-Z].*─", row)]
        return first, min([*ends, len(rows) - 1])

    def first_row(self, title: str) -> str:
        """The first row of a pane."""
        return self.tmux.text().splitlines()[self.pane(title)[0]]

    def grounds(self, *titles: str, columns: int = 1000) -> list[list[set[str]]]:
        """The colours behind the rows of panes, by which a cursor and the focus are seen."""
        every = self.tmux.grounds(columns)
        return [every[slice(*self.pane(title))] for title in titles]


class WatchWalk(Walk):
    """The walk over Live or Replay."""

    def __init__(self, tmux: Tmux, *home: str) -> None:
        super().__init__(tmux, *home)
        tmux.shows(*self.home)

    def enter(self, title: str) -> None:
        """Press Tab until the pane has the focus."""
        for _ in range(3):
            if self.tmux.focused() == [title]:
                return
            self.reacts(keys(WatchScreen, FOCUS[0])[0], self.tmux.focused)
        raise AssertionError(f"{title} never has the focus")


def says(*words: str) -> Deed:
    """The key says `words`."""
    return lambda walk, key: walk.says(key, *words)


def opens(*words: str, back: tuple[str, ...] = ("escape",)) -> Deed:
    """The key opens what has `words`, and `back` leads back."""
    return lambda walk, key: walk.opens(key, *words, back=back)


def closes(opening: str) -> Deed:
    """The key closes what `opening` opens."""
    return lambda walk, key: walk.closes(key, opening)


WATCHED: dict[str, Deed] = {
    # The heat map has the charts' place until the key is pressed once more.
    "latency": opens("Guests' disks: ", back=tuple(keys(WatchScreen, "latency"))),
    **dict.fromkeys(("next_host(1)", "next_host(-1)"), says("this is one host")),
}
"""What Live and Replay have in common, for a run of one host."""


def reacts(walk: Walk, key: str) -> None:
    """The key changes a screen that stands still, or says something."""
    walk.reacts(key)


def unknown(walk: Walk, key: str) -> None:
    """For screens that change by themselves: what a key does must be known."""
    raise AssertionError("what it does is not known here")


def focus(walk: Walk, key: str) -> None:
    """The key gives another pane the focus."""
    walk.reacts(key, walk.tmux.focused)


def moves(owner: type[DOMNode], seen: Callable[[Walk], Any] | None = None) -> dict[str, Deed]:
    """The keys of a pane of class `owner` that move in it do so, by what is `seen` of it, or say that it ends there."""

    def deed(walk: Walk, key: str) -> None:
        walk.reacts(key, None if seen is None else lambda: seen(walk))

    return {action: deed for action in bound(owner).values() if name_of(action) in MOVES}


def everywhere(mode: str, opened: bool = False) -> dict[str, Deed]:
    """What the keys do that every screen has, on the one of `mode`; where another was `opened` over it, not its own."""
    keys = {action: key for key, action in bound(Console).items()}
    here = keys[f"switch_mode('{mode}')"]
    deeds = {
        f"switch_mode('{other}')": opens(title, back=(here,)) for other, title in TITLES.items() if other != mode
    } | {
        "help": opens("This screen"),
        "command_palette": opens("Search for commands"),
        "copy_table": says("lines to the clipboard"),
        "picture": says(".svg"),
        "help_quit": says(_LEAVE),
        "suspend_process": says("no shell is behind the console"),
    }
    return deeds if opened else {**deeds, f"switch_mode('{mode}')": says("already")}
