"""Loads parts of the console when they are first used, so that they do not delay the first picture.

Each function imports what it gives when it is called, so that mypy sees what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from textual.screen import Screen

    from vmlab.analysis.record.loops import LoopRow
    from vmlab.report.demo.chapters import Demo
    from vmlab.tui.commands import RunCommands
    from vmlab.tui.feed.host import HostFeed
    from vmlab.tui.feed.live import LiveFeed
    from vmlab.tui.feed.messages import PostMessage
    from vmlab.tui.screens.compare import CompareScreen
    from vmlab.tui.screens.demo import DemoScreen
    from vmlab.tui.screens.help import HelpModal
    from vmlab.tui.screens.question import QuestionModal
    from vmlab.tui.screens.replay import ReplayScreen
    from vmlab.tui.screens.results import ResultsScreen
    from vmlab.tui.screens.runs import RunsScreen
    from vmlab.tui.screens.scenarios import ScenariosScreen
    from vmlab.tui.state.asked import AskedChanges
    from vmlab.tui.state.run_state import RunState
    from vmlab.tui.state.views import Axes, Intent
    from vmlab.tui.widgets.tables.coming_list import ComingList


def scenarios_screen() -> ScenariosScreen:
    """The Scenarios screen."""
    from vmlab.tui.screens.scenarios import ScenariosScreen

    return ScenariosScreen()


def runs_screen() -> RunsScreen:
    """The Runs screen."""
    from vmlab.tui.screens.runs import RunsScreen

    return RunsScreen()


def compare_screen() -> CompareScreen:
    """The Compare screen."""
    from vmlab.tui.screens.compare import CompareScreen

    return CompareScreen()


def replay_screen(store: Path) -> ReplayScreen:
    """The Replay screen over the store of a run."""
    from vmlab.tui.screens.replay import ReplayScreen

    return ReplayScreen(store)


def find_demo() -> Demo:
    """The recording that comes with the program; see `report.demo.chapters.load_demo`."""
    from vmlab.report.demo.chapters import load_demo

    return load_demo()


def demo_screen(demo: Demo) -> DemoScreen:
    """The Demo screen."""
    from vmlab.tui.screens.demo import DemoScreen

    return DemoScreen(demo)


def results_screen(store: Path) -> ResultsScreen:
    """The Results screen over the store of a run."""
    from vmlab.tui.screens.results import ResultsScreen

    return ResultsScreen(store)


def help_modal(screen: Screen[Any]) -> HelpModal:
    """The help for `screen`."""
    from vmlab.tui.screens.help import HelpModal

    return HelpModal(screen)


def question_modal(question: str, deed: str, keep: str) -> QuestionModal:
    """A question before something that cannot be undone."""
    from vmlab.tui.screens.question import QuestionModal

    return QuestionModal(question, deed, keep)


def run_state(intent: Intent | None = None, planned: Sequence[Axes] = ()) -> RunState:
    """A new, empty state of a run."""
    from vmlab.tui.state.run_state import RunState

    return RunState(intent=intent, planned=planned)


def coming_list(asked: AskedChanges) -> ComingList:
    """The list of the cells to come, of which some may be `asked` to change."""
    from vmlab.tui.widgets.tables.coming_list import ComingList

    return ComingList(asked, id="coming")


def asked_changes() -> tuple[AskedChanges, AskedChanges]:
    """What is asked for of the cells to come of a run, and of its running guests."""
    from vmlab.tui.state.asked import OF_RUNNING_GUESTS, AskedChanges

    return AskedChanges(), AskedChanges(OF_RUNNING_GUESTS)


def loop_text(rows: Sequence[LoopRow], width: int) -> list[str]:
    """Throughput and latency of a loop, as lines; see `report.loops.loop_lines`."""
    from vmlab.report.run.loop_text import loop_lines

    return loop_lines(rows, width)


def live_feed(post: PostMessage) -> LiveFeed:
    """The feed that finds and follows live runs."""
    from vmlab.tui.feed.live import LiveFeed

    return LiveFeed(post)


def host_feed(post: PostMessage) -> HostFeed:
    """The console's own readings of the host."""
    from vmlab.tui.feed.host import HostFeed

    return HostFeed(post)


def find_run(reference: str) -> Path:
    """The store of a run that a user named; see `store.runs.resolve_run`."""
    from vmlab.store.runs import resolve_run

    return resolve_run(reference)


def run_commands(folder: Path) -> RunCommands:
    """Commands to the run in `folder`; loads the planner, so call it from a thread."""
    from vmlab.tui.commands import RunCommands

    return RunCommands(folder)
