"""What is told of a run's progress, and that the console's log tells it in the same words."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Iterable, Iterator

import pytest

from vmlab.cli import one_run
from vmlab.cli import progress as progress_module
from vmlab.cli.progress import Detail, RunProgress
from vmlab.lab.cell.disturbance import Disturbance
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    GuestStateChanged,
    PhaseEnded,
    PhaseStarted,
    SnapshotProgressed,
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
from vmlab.model.scenarios.scenario import Allow, Limits
from vmlab.report.run.notice_text import brief_notice
from vmlab.telemetry.host_counters import Between
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
accelerator tcg: guests' values describe emulation
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


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(events: Iterable[Event], detail: Detail = Detail.CELLS, *, page_follows: bool = False) -> list[str]:
    """The lines of these events."""
    stream = io.StringIO()
    progress = RunProgress(stream, detail, page_follows=page_follows)
    for event in events:
        progress.show(event)
    return stream.getvalue().splitlines()


def ended_cell(number: int, seconds: float, *notices: str, tile: int = 1, outcome: str = "passed") -> list[Event]:
    """A cell with two workloads, one of `seconds`, and what was said of it."""
    reasons = [] if outcome == "passed" else ["tile 1 web: 3 of 600 pages were not delivered within their time"]
    return [
        CellStarted(cell=number, axes={"cache": "none", "tiles": 1}, repeat=1, guests=2),
        *(
            WorkloadEnded(cell=number, workload="web", tile=one, guest="a", outcome=outcome, seconds=seconds + one)
            for one in range(1, tile + 1)
        ),
        WorkloadEnded(cell=number, workload="mail", tile=1, guest="b", outcome="passed", seconds=0.25),
        *(Notice(level="warning", text=f"cell {number}: {text}") for text in notices),
        CellEnded(cell=number, outcome=outcome, reasons=reasons, wall_seconds=seconds + 2, start_skew_ms=1),
    ]


def test_each_step_is_a_line_where_that_is_asked_for() -> None:
    told = (*EVENTS, ImageReady(image="abc", how="cached", seconds=0))
    assert shown(told, Detail.STEPS) == TOLD.splitlines()
    assert shown(told, Detail.QUIET) == []


def test_a_cell_is_a_line() -> None:
    other = "the host's other work took 10 % of the CPUs while the workloads ran"
    events = [
        RunStarted(run="tile-1", scenario="tile", size="smoke", seed=1, cells=12, expected_seconds=0),
        Notice(level="warning", text="memory is short"),
        *ended_cell(1, 5.0),
        *ended_cell(2, 112.0, other, tile=2),
        *ended_cell(3, 9.0, outcome="failed"),
        RunEnded(outcome="failed", exit_code=1, reason="1 cell did not pass"),
    ]
    lines = [
        "run tile-1: 12 cells, size smoke",
        " 1/12  none  tiles 1  7.0 s  mail 0.25  web 6.0  passed",
        " 2/12  none  tiles 1  114 s  mail 0.25  web 113-114  passed  ! other work 10 %",
        " 3/12  none  tiles 1  11.0 s  mail 0.25  web failed   failed",
        "  ! tile 1 web: 3 of 600 pages were not delivered within their time",
        "run failed: 1 cell did not pass",
    ]
    assert shown(events, page_follows=True) == lines
    assert shown(events) == [lines[0], "  warning: memory is short", *lines[1:]]


def test_a_cell_s_line_keeps_its_outcome_and_what_disturbed_it() -> None:
    speed = "the CPUs ran at 71 % of their best speed on average, between 50 and 99 %: heat; steal was 0 %"
    steal = "steal: the hypervisor that this host runs on took 31 % of the CPUs; the limit is 20 %"
    many = [
        WorkloadEnded(cell=1, workload=f"job-{place}", tile=1, guest="a", outcome="passed", seconds=10.0)
        for place in range(20)
    ]
    cell = ended_cell(1, 5.0, speed, steal)
    (line,) = shown([cell[0], *many, *cell[1:]])
    assert len(line) <= 80 and line.startswith("1  none  tiles 1  7.0 s  job-0 10.0  ")
    assert line.endswith("  passed  ! CPUs at 71 % of best; +1") and "  +2" in line


def test_each_sentence_on_what_disturbs_a_cell_has_few_words() -> None:
    hot = Between(heat=3, held_back_percent=50)
    bad = Disturbance(
        between=hot,
        other_percent=50,
        steal_percent=50,
        pressure_percent=50,
        swapped_bytes=1e9,
        lateness=9,
        speed_percent=40,
    )
    found = [one.text for one in bad.findings(Limits(), Allow(), 60)]
    brief = [brief_notice(f"cell 3: {text}") for text in found]
    assert len(brief) == 8
    assert [words for words in brief if len(words) > 20 or not re.search(r"\d|hot|no host", words)] == []


def test_of_many_notices_of_a_kind_two_are_shown() -> None:
    stream = io.StringIO()
    progress = RunProgress(stream, Detail.STEPS)
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


def test_the_moving_line_says_how_far_guests_are_that_are_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_MOVE_SECONDS", 0.0)
    terminal = _Terminal()
    progress = RunProgress(terminal, page_follows=True)
    drawn = []
    for event in (
        Notice(level="info", text="freezing front: it is booted and prepared once, and then kept"),
        CellStarted(cell=1, axes={"cache": "none"}, repeat=1, guests=1),
        SnapshotProgressed(cell=1, guest="front", stage="boots"),
        SnapshotProgressed(cell=1, guest="mail", stage="is prepared"),
        PhaseStarted(cell=1, phase="provision"),
    ):
        progress.show(event)
        drawn.append(terminal.getvalue().rpartition("\r\x1b[2K")[2].strip())
    assert drawn[0] == drawn[1] == "freezing front: it is booted and prepared once, and then kept"
    assert drawn[2:4] == ["front boots", "front boots, mail is prepared"]
    assert drawn[4].startswith("1/0 provision")
