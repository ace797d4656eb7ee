"""What the console asks a run to do. Every call may wait for an answer: call from a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vmlab.lab.commands.stopping import stop_run
from vmlab.lab.commands.verbs import ChangeComing, ChangeRunning, ListComing
from vmlab.lab.process.launch import check_ready, start_run
from vmlab.lab.process.measuring_runs import HostBusy
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.event_fields import CellToCome
from vmlab.model.run import CacheMode
from vmlab.plan.hosting import check_fit
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.report.listing import changed_words
from vmlab.report.words import changed_now_words, plural, switch_words

ORIGIN = "the console"


class RunCommands:
    """Commands to one run. All raise UsageError with one line when the run refuses or does not answer."""

    def __init__(self, folder: Path) -> None:
        self._folder = RunFolder(folder.name, folder)

    def stop(self) -> None:
        """Ask the run to stop; returns before its clean-up ends."""
        stop_run(self._folder, origin=ORIGIN)

    def coming(self) -> list[CellToCome]:
        """The cells to come, with those that are skipped."""
        coming: list[CellToCome] = ListComing(origin=ORIGIN).ask(self._folder)["coming"]
        return coming

    def change_coming(self, change: dict[str, Any]) -> str:
        """Change all cells to come, or the one whose number is among the fields; returns what is to come as a sentence.

        `change` has the fields of `ChangeComing`.
        """
        answer = ChangeComing(origin=ORIGIN, **change).ask(self._folder)
        if "cell" in change:
            return changed_words(answer["coming"], change["cell"])
        return f"{_asked(**change)}, {plural(len(answer['cells']), 'cell')} to come; the running cell stays as it is"

    def change_now(self, change: dict[str, Any]) -> str:
        """Change the guests that run, or their loop, by a field of `ChangeRunning`; returns what came of it as a
        sentence. Raises CommandFailed when it did not work.
        """
        answer = ChangeRunning(origin=ORIGIN, **change).ask(self._folder)
        if "what" in answer:
            return f"{switch_words(answer)}; invalidates this cell"
        return changed_now_words(answer)


def _asked(cache: CacheMode | None = None, tiles: int = 0, as_planned: bool = False) -> str:
    return "as planned" if as_planned else plural(tiles, "tile") if tiles else f"cache {cache}"


def start(file: ScenarioFile, overrides: Overrides) -> Path:
    """Plan and start a run, which is independent of this process; returns its folder.

    Raises UsageError, ScenarioError or RefusedError; then nothing was started.
    """
    check_ready()
    plan, host = prepare_run(file, overrides)
    check_fit(plan, host)
    try:
        return start_run(file, overrides, plan, host).path
    except HostBusy as busy:
        raise busy.remedied("`vmlab run --wait` in a terminal waits for its turn") from busy
