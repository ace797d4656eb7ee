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
from vmlab.model.scenarios.host_settings import Ksm
from vmlab.plan.planning import check_fit
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.report.coming_text import changed_words
from vmlab.report.words import changed_now_words, plural, switch_words

ORIGIN = "the console"


class RunCommands:
    """Commands to one run. All raise UsageError with one line when the run refuses or does not answer."""

    def __init__(self, folder: Path) -> None:
        self._folder = RunFolder(folder.name, folder)

    def stop(self) -> None:
        """Ask the run to stop; returns before its clean-up ends."""
        stop_run(self._folder, origin=ORIGIN)

    def set_cache(self, mode: CacheMode) -> str:
        """Change the cache mode of the cells to come; returns the new plan as a sentence."""
        return self._set(cache=mode)

    def set_tiles(self, count: int) -> str:
        """Change the cells to come to `count` tiles; returns the new plan as a sentence."""
        return self._set(tiles=count)

    def set_as_planned(self) -> str:
        """Have the cells to come as they were planned; returns the plan as a sentence."""
        return self._set(as_planned=True)

    def coming(self) -> list[CellToCome]:
        """The cells to come, with those that are skipped."""
        coming: list[CellToCome] = ListComing(origin=ORIGIN).ask(self._folder)["coming"]
        return coming

    def change_cell(self, number: int, change: dict[str, Any]) -> str:
        """Change the cell to come with this number, see `ComingCells.change`; returns what is to come as a sentence."""
        asked = ChangeComing(origin=ORIGIN, cell=number, **change)
        return changed_words(asked.ask(self._folder)["coming"], number)

    def switch_cache(self, mode: CacheMode) -> str:
        """Switch the guests that run to a cache mode; returns what came of it as a sentence.

        Raises CommandFailed when it did not work.
        """
        return switch_words(ChangeRunning(origin=ORIGIN, cache=mode).ask(self._folder))

    def switch_ksm(self, state: Ksm) -> str:
        """Switch the host's KSM ``on`` or ``off`` under the guests that run; returns what came of it as a sentence.

        Raises CommandFailed when it did not work.
        """
        return switch_words(ChangeRunning(origin=ORIGIN, ksm=state).ask(self._folder))

    def change_tiles(self, count: int) -> str:
        """Have the loop that runs go on with `count` tiles, one more or fewer; returns what is done as a sentence."""
        return changed_now_words(ChangeRunning(origin=ORIGIN, tiles=count).ask(self._folder))

    def end_loop(self) -> str:
        """Have no workload of the loop that runs start again; returns what comes of it as a sentence."""
        return changed_now_words(ChangeRunning(origin=ORIGIN, end=True).ask(self._folder))

    def _set(self, **change: Any) -> str:
        cells = ChangeComing(origin=ORIGIN, **change).ask(self._folder)["cells"]
        return f"{plural(len(cells), 'cell')} to come"


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
