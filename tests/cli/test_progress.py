"""What is told of a run's progress, and that the console's log tells it in the same words."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator

import pytest

from vmlab.cli import one_run
from vmlab.cli.progress import RunProgress
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    GuestStateChanged,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
)
from vmlab.model.errors import CommandFailed
from vmlab.model.event import (
    AnotherRunSeen,
    Event,
    HostProbed,
    ImageReady,
    Notice,
    RunEnded,
    RunStarted,
)
from vmlab.tui.state.run_state import RunState

EVENTS: tuple[Event, ...] = (
    RunStarted(run="r", scenario="tile", size="smoke", seed=1, cells=2, expected_seconds=30),
    HostProbed(accelerator="tcg", host={}),
    ImageReady(image="abc", how="built", seconds=12),
    CellStarted(cell=1, axes={"tiles": 1, "huge": True}, repeat=1, guests=4),
    PhaseStarted(cell=1, phase="execute"),
    GuestStateChanged(cell=1, tile=1, guest="file-a", role="fileserver", state="ready"),
    PhaseEnded(cell=1, phase="execute", seconds=5),
    WorkloadEnded(cell=1, workload="web", tile=1, guest="front", outcome="failed", seconds=5, reason="no answer"),
    Notice(level="info", text="no RAPL"),
    Notice(level="warning", text="memory is short"),
    AnotherRunSeen(run="s", user="eve", launcher=1, folder="/s"),
    CellEnded(cell=1, outcome="failed", reasons=["one", "two"], wall_seconds=5, start_skew_ms=1),
    RunEnded(outcome="failed", exit_code=1, reason="1 cell did not pass"),
)
TOLD = """\
run r started: tile, size smoke, 2 cells, about 30 s
accelerator tcg: figures of guests describe emulation
image abc built in 12.0 s
cell 1/2 started: tiles 1, huge true, repeat 1, 4 guests
  execute took 5.0 s
  tile 1 web failed after 5.0 s: no answer
  no RAPL
  warning: memory is short
  warning: run s of eve measures on this host at the same time
  cell 1 failed: one; two
run failed: 1 cell did not pass
"""


def test_progress_is_a_line_for_each_thing_that_happened() -> None:
    stream = io.StringIO()
    progress = RunProgress(stream)
    for event in (*EVENTS, ImageReady(image="abc", how="cached", seconds=0)):
        progress.show(event)
    assert stream.getvalue() == TOLD


def test_of_many_notices_of_a_kind_two_are_shown() -> None:
    stream = io.StringIO()
    progress = RunProgress(stream)
    for cell in range(1, 6):
        progress.show(Notice(level="warning", text=f"cell {cell}: the CPUs ran at {70 + cell} % of their best speed"))
    progress.show(Notice(level="warning", text="cell 5: a disk was full"))
    assert stream.getvalue().splitlines() == [
        "  warning: cell 1: the CPUs ran at 71 % of their best speed",
        "  warning: cell 2: the CPUs ran at 72 % of their best speed",
        "  warning: cell 5: a disk was full",
    ]


def test_the_console_s_log_has_the_same_sentences() -> None:
    state = RunState()
    for event in EVENTS:
        state.apply(event)
    log = [line.text for line in state.snapshot().log]
    assert [text for text in log if text not in TOLD.replace("cell 1/2 ", "cell 1 ")] == [
        "execute began",
        "tile 1 file-a is ready",
    ]


def test_a_run_that_cannot_be_followed_is_not_called_one_that_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(folder: RunFolder) -> Iterator[Event]:
        raise OSError(errno.EINVAL, "Invalid argument")
        yield

    monkeypatch.setattr(one_run, "watch", unreadable)
    with pytest.raises(CommandFailed) as failed:
        one_run.follow(RunFolder.of("20261121-143000-tile-0001"), None)
    assert failed.value.exit_code == 1
    assert str(failed.value) == (
        "run 20261121-143000-tile-0001 cannot be followed any more: Invalid argument; it goes on, and "
        "`vmlab attach 20261121-143000-tile-0001` tries again"
    )
