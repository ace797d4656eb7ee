"""A board that is too low for charts has a line for each resource; charts keep their places."""

from __future__ import annotations

import math
from array import array

import pytest
from textual.app import App, ComposeResult

from vmlab.model.ordered import EMULATED_DISK
from vmlab.model.sample import Sample, SampleNames
from vmlab.tui.state.history import History
from vmlab.tui.widgets.charts.axis_scale import NO_FIGURE
from vmlab.tui.widgets.charts.chart_board import ChartBoard, Charted
from vmlab.tui.widgets.charts.resource_lines import spark_width

GIB = 2.0**30
VALUES = {
    "cpu_user_percent": 60.0,
    "cpu_system_percent": 36.0,
    "cpu_iowait_percent": 4.0,
    "cpu_steal_percent": 0.0,
    "cpu_nice_percent": 0.0,
    "cpu_irq_percent": 0.0,
    "cpu_softirq_percent": 0.0,
    "disk_util_percent": 45.0,
    "disk_await_ms": 7.5,
    "disk_read_bytes_per_second": 8.8e6,
    "memory_used_bytes": 6 * GIB,
    "memory_total_bytes": 24 * GIB,
    "ksm_saved_bytes": 0.0,
    "network_receive_bytes_per_second": 2e6,
    "pressure_cpu_some_percent": 86.0,
}
NAMES = SampleNames.of(tuple(VALUES))
RESOURCES = ["CPU", "Disk", "Memory", "Network"]


class _Board(App[None]):
    def compose(self) -> ComposeResult:
        yield ChartBoard()


def history(count: int = 100, **last: float) -> History:
    """A sample a second, the newest with `last` in place of its own values."""
    found = History()
    for mono in range(1, count + 1):
        values = VALUES | (last if mono == count else {})
        found.take(Sample(float(mono), float(mono), 1.0, 0.0, NAMES, array("d", values.values())))
    return found


async def drawn(shown: Charted, size: tuple[int, int] = (80, 12)) -> list[str]:
    app = _Board()
    async with app.run_test(size=size):
        board = app.query_one(ChartBoard)
        board.show(shown)
        return board.text().splitlines()


async def test_each_resource_has_its_figure_its_course_its_scale_and_its_limit_in_one_line() -> None:
    heading, *rows = await drawn(Charted(history()), (80, 9))
    assert spark_width(80) * 2 >= 60, "a minute at least, at a sample a second"
    assert heading.split() == [f"-{2 * spark_width(80)}", "s", "now", "up", "to", "limit"]
    found = {row.split()[0]: row for row in rows if row and row.split()[0] in RESOURCES}
    assert list(found) == RESOURCES
    for name, begin, end in (
        ("CPU", "CPU 96 %", "100 % 95 %"),
        ("Disk", "Disk 45 %", "100 % 90 %"),
        ("Memory", "Memory 6.0 GiB", "24.0 GiB"),
        ("Network", "Network 2.0 MB/s", "2.0 MB/s"),
    ):
        words = " ".join(found[name].split())
        assert words.startswith(begin) and words.endswith(end)
        assert sum(sign in "▁▂▃▄▅▆▇█" for sign in found[name]) == spark_width(80)
    text = " ".join("\n".join(rows).split())
    assert "user 60 system 36 iowait 4" in text and "pressure 86 %" in text
    assert "await 7.5 ms read 8.8" in text
    assert "speed" not in text, "it was not recorded"


async def test_ksm_has_a_line_once_it_saves_memory() -> None:
    rows = await drawn(Charted(history(100, ksm_saved_bytes=5e5)))
    assert [row.split()[0] for row in rows if row and row.split()[0] in (*RESOURCES, "KSM")] == [
        *RESOURCES[:3],
        "KSM",
        RESOURCES[3],
    ]


async def test_room_that_is_left_over_is_for_higher_sparklines_with_both_ends_of_their_scale() -> None:
    low, high = [await drawn(Charted(history()), (110, height)) for height in (20, 30)]
    assert [sum(row.endswith(" 0 %") for row in rows) for rows in (low, high)] == [0, 2]
    at = next(place for place, row in enumerate(high) if row.startswith("Disk"))
    top, middle, bottom = (row[19:-15].strip() for row in high[at : at + 3])
    assert not top and set(middle) == {"▄"} and set(bottom) == {"█"}, "45 of 100 %"


@pytest.mark.parametrize("height", [6, 8, 12, 19])
async def test_every_resource_is_there_however_few_lines_there_are(height: int) -> None:
    rows = await drawn(Charted(history()), (80, height))
    assert [row.split()[0] for row in rows if row and row.split()[0] in RESOURCES] == RESOURCES
    assert len(rows) == height


async def test_what_was_not_read_is_a_gap_and_an_emulated_disk_without_work_has_no_figure() -> None:
    rows = await drawn(Charted(history(100, memory_used_bytes=math.nan)), (80, 9))
    (memory,) = (row for row in rows if row.startswith("Memory"))
    assert f"{NO_FIGURE} GiB" in memory
    rows = await drawn(Charted(history(), ordered=(EMULATED_DISK,), counted=((0.0, 50.0),)), (80, 9))
    place = next(number for number, row in enumerate(rows) if row.startswith("Disk"))
    assert "45" not in rows[place] and rows[place + 1].split() == ["emulated", "disk", "no", "workload", "runs"]
    assert "▅  " in rows[place], "what counted is drawn, and then a gap"


@pytest.mark.parametrize("size", [(110, 40), (120, 44), (79, 50), (94, 40), (200, 34)], ids=str)
async def test_charts_keep_their_places_and_have_both_ends_of_their_scale(size: tuple[int, int]) -> None:
    titles = ("CPU %", "Memory GiB", "Disk %", "Disk ms", "Disk MB/s", "Pressure %", "KSM MiB", "Lab network MB/s")

    def places(rows: list[str]) -> dict[str, tuple[int, int]]:
        return {title: (y, row.find(title)) for title in titles for y, row in enumerate(rows) if title in row}

    still = await drawn(Charted(history()), size)
    moved = await drawn(Charted(history(100, ksm_saved_bytes=5e5)), size)
    assert places(still) == places(moved) and len(places(still)) == len(titles)
    ends = [end for row in still for end in row.replace("┤", "┤ ").split() if end.endswith("┤")]
    assert ends.count("0┤") == len(titles) and ends.count("100┤") == 3 and len(ends) == 2 * len(titles)
