"""The one place where parts of the console are loaded late: what the first picture does not need costs it nothing."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from textual.screen import Screen

    from vmlab.tui.commands import RunCommands
    from vmlab.tui.feed.host import HostFeed
    from vmlab.tui.feed.live import LiveFeed
    from vmlab.tui.feed.messages import Post
    from vmlab.tui.state.run_state import RunState
    from vmlab.tui.state.views import Intent


def late_screen(module: str, name: str) -> Callable[[], Screen[Any]]:
    """A screen of ``vmlab.tui.screens`` that is loaded when it is first opened."""

    def load() -> Screen[Any]:
        screen: Screen[Any] = getattr(import_module(f"vmlab.tui.screens.{module}"), name)()
        return screen

    return load


def run_state(intent: Intent | None = None) -> RunState:
    """What is known of a run, to begin with."""
    state: RunState = import_module("vmlab.tui.state.run_state").RunState(intent=intent)
    return state


def live_feed(post: Post) -> LiveFeed:
    """What finds and follows runs."""
    feed: LiveFeed = import_module("vmlab.tui.feed.live").LiveFeed(post)
    return feed


def find_run(reference: str) -> Path:
    """The store of a run that a user named; see `store.runs.resolve_run`."""
    store: Path = import_module("vmlab.store.runs").resolve_run(reference)
    return store


def host_feed(post: Post) -> HostFeed:
    """The console's own readings of the host."""
    feed: HostFeed = import_module("vmlab.tui.feed.host").HostFeed(post)
    return feed


def replay_screen(store: Path) -> Screen[Any]:
    """The Replay screen over the store of a run."""
    screen: Screen[Any] = import_module("vmlab.tui.screens.replay").ReplayScreen(store)
    return screen


def modal(module: str, name: str, *arguments: Any) -> Screen[Any]:
    """A modal screen of ``vmlab.tui.screens``."""
    screen: Screen[Any] = getattr(import_module(f"vmlab.tui.screens.{module}"), name)(*arguments)
    return screen


def run_commands(folder: Path) -> RunCommands:
    """Commands to the run in `folder`; loads the planner, so call it from a thread."""
    commands: RunCommands = import_module("vmlab.tui.commands").RunCommands(folder)
    return commands
