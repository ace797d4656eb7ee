"""A state folder with a run that was really recorded, and nothing of this machine's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Hashable, Iterator
from pathlib import Path

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from tests.tui.tmux import Tmux
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import UsageError
from vmlab.model.places import runs_folder
from vmlab.store.run_list import list_runs
from vmlab.tui.feed.recorded_run import RecordedRun

RECORDED = Path(__file__).parent / "recorded/tile-smoke.sqlite"
RUN = "20261121-063647-tile-778a"


def first_execution(recording: RecordedRun) -> float:
    """When the workloads of its first cell began, on the run's monotonic clock."""
    spans = (cell.execution for cell in RunTimeline.of(recording.events).cells.values())
    return next(span[0] for span in spans if span is not None)


@pytest.fixture(autouse=True, scope="session")
def parsed_once() -> Iterator[None]:
    """Style sheets are parsed once for all consoles of the tests: it takes most of a console's time to start."""
    parse, kept = Stylesheet._parse_rules, dict[Hashable, list[RuleSet]]()

    def rules(sheet: Stylesheet, *what: Hashable, **how: Hashable) -> list[RuleSet]:
        key = (what, *sorted(how.items()), frozenset(sheet._variables.items()))
        if key not in kept:
            kept[key] = parse(sheet, *what, **how)  # type: ignore[arg-type]
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", rules)
        yield


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same terminal for every test: UTF-8, all colours."""
    for name in ("NO_COLOR", "VMLAB_ASCII", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")


@pytest.fixture(autouse=True)
def no_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key starts a real run in this process: its guests would outlive the test, in a folder that is gone.

    A test that starts one has a console in a process of its own, under tmux, or plays the launcher.
    """

    def refuse(*of: object) -> int:
        raise UsageError("no run begins in a test of keys")

    for module in ("launch", "resuming"):
        monkeypatch.setattr(f"vmlab.lab.process.{module}.spawn_launcher", refuse)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty state folder; its path is short, as sockets' paths end at 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="vmt-") as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        monkeypatch.setenv("VMLAB_RUNTIME_DIR", f"{folder}/run")
        yield Path(folder)


@pytest.fixture
def recorded(state: Path) -> Path:
    """The folder of the recorded run, in the state folder: a tile at size smoke, cache none and writeback."""
    folder = runs_folder() / RUN
    folder.mkdir(parents=True)
    shutil.copy(RECORDED, folder / "run.sqlite")
    return folder


@pytest.fixture
def tmux(request: pytest.FixtureRequest, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tmux]:
    """A terminal, of 80 by 24 or as `request.param` says; what runs when the test ends is stopped."""
    if shutil.which("tmux") is None or os.geteuid() != 0:
        pytest.skip("needs tmux and root")
    monkeypatch.setenv("COLORTERM", "truecolor")
    terminal = Tmux(state, getattr(request, "param", (80, 24)))
    yield terminal
    terminal.kill()
    for run in list_runs():
        folder = RunFolder(run.id, runs_folder() / run.id)
        if folder.alive():
            subprocess.run([sys.executable, "-m", "vmlab", "stop", run.id], check=False, timeout=300)
