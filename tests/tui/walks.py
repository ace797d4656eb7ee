"""The walks over the screens of runs that are over, and over what lies over a screen."""

from __future__ import annotations

import re
from pathlib import Path

from textual.widgets import Button

from tests.tui.bound import LEAVES, bound, keys
from tests.tui.tmux import Tmux
from tests.tui.walk import (
    FOCUS,
    PANES,
    TITLES,
    WATCHED,
    Deed,
    Walk,
    WatchWalk,
    closes,
    everywhere,
    moves,
    opens,
    reacts,
    says,
    unknown,
)
from vmlab.tui.app import Console
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.demo_screen import DemoScreen
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.modals import HelpModal, HelpText, QuestionModal
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.screens.results_screen import ResultsScreen
from vmlab.tui.screens.runs_screen import RunsScreen
from vmlab.tui.screens.scenarios_screen import ScenariosScreen
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.side_table import SideTable
from vmlab.tui.widgets.tables.choice_form import ChoiceForm
from vmlab.tui.widgets.tables.coming_list import ComingList
from vmlab.tui.widgets.tables.result_board import ResultBoard

COMING = "─Cells to come─"
QUESTION = "Let it run"
PATH = "path of a scenario file"
RECORDING = "RECORDING"
PAUSED = f"{RECORDING} paused"
_KEY = {action: key for key, action in bound(Console).items()}
_STAGE = tuple(keys(DemoScreen, "stage"))
_TO_LIVE, _TO_RUNS = "switch_mode('live')", "switch_mode('runs')"


def walk_coming(tmux: Tmux) -> None:
    """The list of the cells to come, on Live."""
    (opening,) = keys(LiveScreen, "edit_coming")
    tmux.send(opening)
    walk = Walk(tmux, COMING, "AS PLANNED")
    tmux.shows(*walk.home)
    deeds = dict.fromkeys(bound(ComingList).values(), says("Cells to come: "))
    deeds["tiles(-1)"] = says("Cells to come: |at least one tile")
    deeds |= moves(ComingList, lambda walk: walk.grounds("Cells to come")) | {"close": closes(opening)}
    walk.over(ComingList, deeds=deeds, other=unknown)
    walk.closes(opening, opening)
    tmux.send(opening)
    tmux.shows("─Events─", gone=COMING)


def walk_question(tmux: Tmux) -> None:
    """The question whether to stop the run on Live: all keys that do not, then the one that does."""
    (opening,), (answer,) = keys(LiveScreen, "stop_run"), keys(Button, "press")
    walk = Walk(tmux, QUESTION, "Stop the run", modal=True)
    walk.quiet()
    tmux.send(opening)
    tmux.shows(*walk.home)

    def button(walk: Walk) -> str:
        """How one of the buttons looks."""
        found = re.search(rf"((?:\x1b\[[0-9;]*m)*) *{QUESTION}", tmux.text(styled=True))
        return found[1] if found else ""

    other: Deed = lambda walk, key: walk.reacts(key, lambda: button(walk))  # noqa: E731
    deeds = {"dismiss(False)": closes(opening), "app.focus_next": other}
    walk.over(QuestionModal, deeds=deeds, other=unknown)
    (no,) = keys(QuestionModal, "dismiss(False)")
    walk.closes(no, opening)
    walk.closes(answer, opening)
    other(walk, keys(QuestionModal, "app.focus_next")[0])
    tmux.send(answer)
    tmux.until(lambda text: QUESTION not in text, "the question is gone")


def walk_help(tmux: Tmux) -> None:
    """The help of Live."""
    tmux.send(_KEY[_TO_LIVE])
    tmux.shows(TITLES["live"])
    walk = Walk(tmux, "╭", modal=True)
    walk.quiet()
    tmux.send(_KEY["help"])
    tmux.shows(*walk.home)
    walk.over(HelpText, deeds=moves(HelpText), other=unknown)
    walk.over(HelpModal, deeds={"dismiss": closes(_KEY["help"])}, other=unknown)
    tmux.send(keys(HelpModal, "dismiss")[0])
    tmux.shows(TITLES["live"], gone="╭")


def walk_scenarios(tmux: Tmux) -> None:
    """Scenarios, but for starting one."""
    tmux.send(_KEY["switch_mode('scenarios')"])
    tmux.shows(TITLES["scenarios"], "repeats")
    walk = Walk(tmux, TITLES["scenarios"])
    deeds = everywhere("scenarios") | {"file": opens(PATH), "filter": opens("words that a scenario")}
    walk.over(ScenariosScreen, Console, deeds=deeds, later=("start",), other=reacts)
    there, back = keys(ScenariosScreen, "pane(1)")[0], keys(ScenariosScreen, "pane(-1)")[0]

    def chosen(walk: Walk, key: str) -> None:
        walk.reacts(key)
        walk.reacts(back)

    names = moves(RowList, lambda walk: walk.grounds("Scenarios", columns=10))
    walk.over(RowList, deeds=names | {"choose": chosen}, other=unknown)
    walk.reacts(there)
    walk.over(ChoiceForm, deeds={}, other=reacts)
    for key in keys(ScenariosScreen, "reset"):
        walk.reacts(key)


def walk_to_the_start(tmux: Tmux, scenario: Path) -> None:
    """A scenario's file is opened on Scenarios, and started."""
    tmux.send(_KEY["switch_mode('scenarios')"])
    tmux.shows(TITLES["scenarios"])
    for key in keys(ScenariosScreen, "file"):
        tmux.send(key)
    tmux.shows(PATH)
    tmux.type(str(scenario))
    tmux.send("enter")
    tmux.shows(f"─{scenario.name}─", "Press s to start it")
    for key in keys(ScenariosScreen, "start"):
        tmux.send(key)


def walk_runs(tmux: Tmux) -> None:
    """Runs, all of which are over."""
    tmux.send(_KEY[_TO_RUNS])
    tmux.shows(TITLES["runs"], "outcome", gone="Reading")
    walk = Walk(tmux, TITLES["runs"])
    deeds = everywhere("runs") | {
        "choose": opens(RECORDING),
        "compare": opens(TITLES["compare"], back=(_KEY[_TO_RUNS],)),
        "results": opens("─Results─"),
        "filter": opens("words that a run must have"),
        "stop": says("is over"),
    }
    walk.over(RowList, RunsScreen, Console, deeds=deeds | moves(RowList), other=reacts)


def walk_replay(tmux: Tmux) -> None:
    """The recording of the oldest run, while it stands still."""
    last, opening = keys(RowList, "move(100000)")[0], keys(RowList, "choose")[0]
    tmux.send(last)
    tmux.send(opening)
    _walk_recording(tmux, ReplayScreen, "runs")
    _leaves(Walk(tmux, RECORDING), opening, *keys(ReplayScreen, "dismiss"))


def walk_demo(tmux: Tmux) -> None:
    """The demo, while it stands still; each key that leads from it to Live ends the walk over a program."""
    leaving = (*keys(DemoScreen, "dismiss"), _KEY[_TO_LIVE])
    for place, key in enumerate(leaving):
        tmux.open("demo")
        tmux.shows(RECORDING)
        if not place:
            _walk_recording(tmux, DemoScreen, "live")
        tmux.send(key)
        tmux.shows(TITLES["live"], gone=RECORDING)
        tmux.send(keys(Console, *LEAVES)[0])
        tmux.gone()


def _walk_recording(tmux: Tmux, screen: type[ReplayScreen], mode: str) -> None:
    """A recording that was opened over the screen of `mode`, but for the keys that lead back there."""
    tmux.shows(RECORDING)
    (pause,) = keys(screen, "pause")
    tmux.send(pause)
    walk = WatchWalk(tmux, PAUSED)

    def paused(walk: Walk, key: str) -> None:
        tmux.send(key)
        tmux.shows(RECORDING, gone=PAUSED)
        tmux.send(key)
        tmux.shows(PAUSED)

    back = f"switch_mode('{mode}')"
    deeds = (
        everywhere(mode, opened=True)
        | WATCHED
        | {
            "pause": paused,
            "change_run": says("this is a recording"),
            "compare": opens(TITLES["compare"], back=(_KEY[back],)),
        }
    )
    if screen is DemoScreen:
        hidden = ("latency", *FOCUS, "next_host(1)", "next_host(-1)")
        deeds |= {**dict.fromkeys(hidden, says("g shows all charts")), "stage": opens("─Events─", back=_STAGE)}
    walk.over(screen, Console, deeds=deeds, later=("dismiss", back), other=reacts)
    for key in _STAGE if screen is DemoScreen else ():
        tmux.send(key)
    for title, owner in PANES.items():
        walk.enter(title)
        walk.over(owner, deeds=moves(owner), other=unknown)


def walk_results(tmux: Tmux) -> None:
    """The tables of a run."""
    (opening,) = keys(RunsScreen, "results")
    tmux.send(opening)
    walk = Walk(tmux, "─Results─")
    tmux.shows(*walk.home)
    deeds = everywhere("runs", opened=True) | moves(ResultBoard)
    walk.over(ResultBoard, ResultsScreen, Console, deeds=deeds, later=("dismiss", _TO_RUNS), other=reacts)
    _leaves(walk, opening, *keys(ResultsScreen, "dismiss"))


def _leaves(walk: Walk, opening: str, *leaving: str) -> None:
    """Each of the keys that lead from what was opened on Runs back to it."""
    for key in (*leaving, _KEY[_TO_RUNS]):
        walk.closes(key, opening)
    walk.tmux.send(leaving[0])
    walk.tmux.until(lambda text: not all(word in text for word in walk.home), f"{walk.home} are gone")
    walk.tmux.shows(TITLES["runs"])


def walk_compare(tmux: Tmux) -> None:
    """What the first run of the list varied, side by side."""
    for key in (*keys(RowList, "move(-100000)"), *keys(RunsScreen, "compare")):
        tmux.send(key)
    tmux.shows(TITLES["compare"], "since the workloads started")
    walk = Walk(tmux, TITLES["compare"])
    deeds = everywhere("compare") | {f"app.{_TO_RUNS}": opens(TITLES["runs"], back=(_KEY["switch_mode('compare')"],))}
    walk.over(CompareScreen, Console, deeds=deeds, other=reacts)
    walk.over(SideTable, deeds=moves(SideTable), other=unknown)
