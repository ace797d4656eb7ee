"""Charts of an emulated disk have figures only while workloads run: between, its limits are lifted."""

import math
from array import array

import pytest
from textual.app import App, ComposeResult

from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.event import Event, RunEnded
from vmlab.model.ordered import EMULATED_DISK
from vmlab.model.sample import Sample, SampleNames
from vmlab.tui.state.history import History
from vmlab.tui.state.run_state import RunState
from vmlab.tui.widgets.charts.axis_scale import NO_FIGURE
from vmlab.tui.widgets.charts.chart_board import ChartBoard, Charted, Times
from vmlab.tui.widgets.charts.chart_head import PAUSED

_NAMES = SampleNames.of(["cpu_user_percent", "disk_read_bytes_per_second", "disk_await_ms", "disk_util_percent"])
_SLOW, _FAST = 10e6, 1000e6


class _Board(App[None]):
    def compose(self) -> ComposeResult:
        """Charts alone."""
        yield ChartBoard()


def _history(count: int, fast_from: int) -> History:
    """A sample a second from 1 on; the disk reads 10 MB/s and, from `fast_from` on, 1000 MB/s."""
    history = History()
    for mono in range(1, count + 1):
        rate = _FAST if mono >= fast_from else _SLOW
        values = array("d", [50.0 + mono % 2, rate, 9.0 + mono % 2, 40.0 + mono % 2])
        history.take(Sample(float(mono), float(mono), 1.0, 0.0, _NAMES, values))
    return history


async def _drawn(
    history: History, ordered: tuple[str, ...], counted: Times, size: tuple[int, int] = (160, 48)
) -> ChartBoard:
    app = _Board()
    async with app.run_test(size=size):
        board = app.query_one(ChartBoard)
        board.show(Charted(history, ordered=ordered, counted=counted))
        return board


@pytest.mark.parametrize("until", [15.0, 15.5])
async def test_what_an_emulated_disk_does_without_its_limits_is_no_figure_of_it(until: float) -> None:
    """The sixteenth sample is fast, and half of it may still have been limited."""
    board = await _drawn(_history(20, fast_from=16), (EMULATED_DISK,), ((2.0, until),))
    assert board.heads["Emulated disk MB/s"].endswith(" no workload runs")
    assert board.heads["Emulated disk ms"].endswith(" no workload runs")
    assert NO_FIGURE not in "".join(head for name, head in board.heads.items() if name.startswith("Emulated"))
    assert board.heads["CPU %"].split("system")[0].split()[-1] == "50"
    assert board.text().count("no workload runs") == 3
    assert "1000" not in board.text(), "the scale is that of the limited disk"


@pytest.mark.parametrize("size", [(80, 20), (110, 30), (160, 48), (200, 50)], ids=str)
async def test_that_no_workload_runs_stands_where_figures_do_and_never_in_a_chart(size: tuple[int, int]) -> None:
    """In the uppermost row of a disk at 100 % the words looked like a fall."""
    app = _Board()
    async with app.run_test(size=size):
        board = app.query_one(ChartBoard)
        board.show(Charted(_history(60, fast_from=58), ordered=(EMULATED_DISK,), counted=((0.0, 57.0),)))
        # Where a screen is low, one line has all of the disk.
        across, each = (1, size[0]) if board._draws_lines else board._grid(*size)[:2]
    seen = 0
    for row in board.text().splitlines():
        charts = [row[place * (each + 1) : (place + 1) * (each + 1)] for place in range(across)]
        for chart in charts:
            if any(words in chart for words in PAUSED):
                seen += 1
                assert not any(sign in "▁▂▃▄▅▆▇█┤" or "⠁" <= sign <= "⣿" for sign in chart), chart
    assert seen == (1 if across == 1 else 3)
    running = await _drawn(_history(60, fast_from=99), (EMULATED_DISK,), ((0.0, math.inf),), size)
    assert _charts_begin(board) == _charts_begin(running), "the words need no row more than figures"


def _charts_begin(board: ChartBoard) -> list[int]:
    """The rows with the title of a chart of the disk."""
    return [place for place, row in enumerate(board.text().splitlines()) if "Emulated disk" in row]


async def test_while_workloads_run_an_emulated_disk_has_its_figures() -> None:
    board = await _drawn(_history(20, fast_from=99), (EMULATED_DISK,), ((0.0, math.inf),))
    assert board.heads["Emulated disk MB/s"].split()[-4:-2] == ["read", "10.0"]
    assert "no workload runs" not in board.text()


async def test_the_hosts_own_disk_always_has_its_figures() -> None:
    board = await _drawn(_history(20, fast_from=16), (), None)
    assert board.heads["Disk MB/s"].split()[-4:-2] == ["read", "1000"]
    assert "no workload runs" not in board.text()


async def test_after_a_run_the_hosts_own_disk_is_drawn_alone() -> None:
    board = await _drawn(_history(20, fast_from=16), (), ((15.0, math.inf),))
    assert board.heads["Disk MB/s"].split()[-4:-2] == ["read", "1000"]
    drawn = max(board.text().splitlines(), key=lambda row: row.count("█"))
    assert [len(part) for part in drawn.replace("│", " ").split()] == [10, 3, 3], (
        "20 samples of the CPU, 5 of the disk: none is emulated"
    )


async def test_the_speed_of_the_cpus_is_drawn_below_their_use_where_it_is_recorded() -> None:
    names = SampleNames.of(["cpu_user_percent", "cpu_speed_percent"])
    history = History()
    for mono in range(1, 21):
        values = array("d", [50.0, 60.0 + mono])
        history.take(Sample(float(mono), float(mono), 1.0, 0.0, names, values))
    board = await _drawn(history, (), None)
    assert board.heads["CPU speed %"].split() == ["CPU", "speed", "%", "of", "the", "best", "80"]
    rows = board.text().splitlines()
    (speed,) = (place for place, row in enumerate(rows) if row.startswith("CPU speed"))
    assert any("⠁" <= sign <= "⣿" for row in rows[speed + 1 :] for sign in row), "the only line on the board"
    assert "CPU speed %" not in (await _drawn(_history(20, fast_from=99), (), None)).heads


def _ended_cell(mono: float) -> CellEnded:
    return CellEnded(cell=1, outcome="failed", reasons=[], wall_seconds=None, start_skew_ms=None, mono=mono)


@pytest.mark.parametrize(
    ("last", "until"),
    [
        ([], math.inf),
        ([PhaseEnded(cell=1, phase="execute", seconds=4.0, mono=9.0), _ended_cell(99.0)], 9.0),
        ([_ended_cell(9.5)], 9.5),
        ([RunEnded(outcome="aborted", exit_code=4, mono=99.0)], 5.0),
        ([CellStarted(cell=2, axes={}, repeat=1, guests=1, mono=99.0)], 5.0),
    ],
    ids=["under way", "ended", "broken off", "killed", "lost"],
)
def test_the_time_in_which_workloads_ran_is_known(last: list[Event], until: float) -> None:
    state = RunState()
    begin = CellStarted(cell=1, axes={}, repeat=1, guests=1, mono=1.0)
    phases = [PhaseStarted(cell=1, phase=phase, mono=mono) for mono, phase in ((4.0, "prepare"), (5.0, "execute"))]
    for event in [begin, *phases, *last]:
        state.apply(event)
    assert state.snapshot().executed == ((5.0, until),)


def test_no_time_counts_after_a_run_without_an_end() -> None:
    state = RunState()
    state.apply(CellStarted(cell=1, axes={}, repeat=1, guests=1, mono=1.0))
    state.apply(PhaseStarted(cell=1, phase="execute", mono=5.0))
    state.abandon(50.0, "its processes are gone")
    assert state.snapshot().executed == ((5.0, 5.0),)
