"""A disk that answers nothing is said in the moving line of the progress and by `top`, from the run's events.

The console's screens have it in `tests/tui/screens/test_silent_disks.py`, by the same sentence.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.cli.commands import top_command
from vmlab.cli.progress import _MOVE_SECONDS, RunProgress
from vmlab.lab.process.measuring_runs import HostQueue, MeasuringRun
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    DiskSilent,
    PhaseStarted,
)
from vmlab.model.event import Event
from vmlab.report.words import silent_words
from vmlab.store.writer import RunWriter

SILENT = "t1-vm: no answer from its root disk for"


def silent(mono: float = 100.0, seconds: float = 30.0, requests: int = 4, **more: Any) -> DiskSilent:
    where = {"cell": 1, "tile": 1, "guest": "vm", "disk": "root", **more}
    return DiskSilent(wall=0.0, mono=mono, seconds=seconds, requests=requests, **where)


def cell(*more: Event) -> list[Event]:
    return [
        CellStarted(cell=1, axes={}, repeat=1, guests=1),
        PhaseStarted(cell=1, phase="execute", wall=0.0, mono=time.monotonic()),
        *more,
    ]


@pytest.mark.parametrize(
    ("disks", "now", "words"),
    [
        ([], 200.0, ""),
        ([silent()], 100.0, f"{SILENT} 30 s"),
        ([silent()], 115.2, f"{SILENT} 45 s"),
        ([silent()], 90.0, f"{SILENT} 30 s"),
        ([silent(guest="db", mono=90.0), silent()], 100.0, "t1-db: no answer from its root disk for 40 s, and 1 more"),
        ([silent(tile=2, disk="data")], 100.0, "t2-vm: no answer from its data disk for 30 s"),
    ],
)
def test_the_disk_that_is_silent_for_longest_is_named(disks: list[DiskSilent], now: float, words: str) -> None:
    assert silent_words(disks, now) == words


ANSWERS = silent(130.0, 60.0, 0)
ENDED = CellEnded(cell=1, outcome="failed", reasons=[], wall_seconds=None, start_skew_ms=None)


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ([silent()], {(1, "vm", "root")}),
        ([silent(), silent(disk="data"), ANSWERS], {(1, "vm", "data")}),
        ([silent(), ANSWERS, silent(190.0)], {(1, "vm", "root")}),
        ([silent(), ENDED], set()),
    ],
)
def test_a_disk_is_silent_until_it_answers_or_its_cell_ends(more: list[Event], left: set[tuple[int, str, str]]) -> None:
    timeline = RunTimeline.of(cell(*more))
    assert timeline.cell is not None and timeline.cell.silent.keys() == left


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_moving_line_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    progress = RunProgress(terminal)
    for event in cell(silent(time.monotonic())):
        progress.show(event)
    time.sleep(2 * _MOVE_SECONDS)
    progress.show(None)
    assert f"| ! {SILENT} 3" in terminal.getvalue().replace("  execute", "|  execute")


def test_top_reads_it_from_the_records_of_the_runs_on_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "run.sqlite"
    writer = RunWriter(store)
    for event in cell(silent(time.monotonic())):
        writer.append(event)
    runs = [MeasuringRun(run, "ann", 1, str(folder)) for run, folder in (("r1", tmp_path), ("r2", tmp_path / "gone"))]
    monkeypatch.setattr(top_command, "host_queue", lambda: HostQueue(tuple(runs)))
    (words,) = top_command.SilentDisks().words()
    assert words.startswith(f"run r1: {SILENT} 3")
    writer.append(ANSWERS)
    assert top_command.SilentDisks().words() == []
    writer.close()
