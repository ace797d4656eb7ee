"""The interface of the console for its screens; the console itself is in `app`, which loads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from textual.signal import Signal

    from vmlab.model.run import AxisValue
    from vmlab.tui.feed.picks import Pick


class Proposal(NamedTuple):
    """A run to plan: its scenario and size, and where it is to be others than written, repeats and values of axes."""

    scenario: str
    size: str
    repeats: int | None = None
    axes: Mapping[str, Sequence[AxisValue]] = MappingProxyType({})


WATCHES = "this console only watches; `vmlab serve --control` serves one that changes runs"
CHANGING = frozenset(
    {
        "as_planned",
        "change_tiles",
        "change_tiles_now",
        "edit_coming",
        "end_loop",
        "file",
        "picture",
        "start",
        "stop",
        "stop_run",
        "switch_cache",
        "switch_cache_now",
        "switch_ksm_now",
    }
)
"""The actions that start, change or stop a run, open a file by its path, or write one."""


@runtime_checkable
class Limiting(Protocol):
    """An app that may only watch."""

    def forbids(self, action: str) -> str:
        """Why this console never does `action`, as a sentence; empty where it may."""
        ...

    def require_control(self) -> None:
        """Raise UsageError where this console only watches. Each command to a run asks here first."""
        ...


class ConsoleCommands(Limiting, Protocol):
    """Commands that concern more than one screen."""

    def open_run(self, folder: Path, *, live: bool) -> None:
        """Watch the run in `folder` when it lives, play it back when it is over."""
        ...

    def open_results(self, store: Path) -> None:
        """Show the tables of the run at `store`."""
        ...

    def compare(self, picks: Sequence[Pick]) -> None:
        """Set runs or cells side by side."""
        ...

    def open_demo(self) -> None:
        """Play the recording that comes with the program."""
        ...

    def propose(self, proposal: Proposal) -> None:
        """Plan a run on the Scenarios screen, which starts nothing."""
        ...

    def ask_to_stop(self, folder: Path) -> None:
        """Ask the user, and then the run, to stop."""
        ...


class Said(NamedTuple):
    """What the console says in its bottom lines, and the name of its tone; of one screen alone, or of the console."""

    text: str
    tone: str
    of_screen: bool = False


@runtime_checkable
class Saying(Protocol):
    """An app that says things; `said_changed` is published when `said` is another."""

    said: Said | None
    said_changed: Signal[Said | None]

    def say_nothing(self) -> None:
        """Take away what is said."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """A screen that knows why one of its keys does nothing now."""

    def why_not(self, action: str) -> str:
        """The reason why `action` is not possible now, as a sentence; empty where it is."""
        ...


@runtime_checkable
class Tabular(Protocol):
    """A screen whose table can be copied."""

    def table_text(self) -> str:
        """The whole table as plain text."""
        ...
