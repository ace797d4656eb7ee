"""The Compare screen's rows: the differences that the command line prints, and a tone for what is proven alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.analysis.record.test_disk_latency import LatencyStory, told
from tests.report.test_page import timed_run
from tests.store.stories import Story
from tests.tui.conftest import RECORDED
from vmlab.analysis.cell_shape import BoundDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import cells_alike
from vmlab.analysis.figures.figure import host_mean
from vmlab.report.comparison_text import comparison_table
from vmlab.report.demo.duration import FOLDER
from vmlab.report.words import NOT_MEASURED
from vmlab.store.runs import STORE, write_tag
from vmlab.telemetry.host.host_figures import headlines
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.sides import sides_of
from vmlab.tui.state.compared import ComparedSides, Entry, SideRow, compared_sides
from vmlab.tui.widgets.charts.raster import PLAIN_LINES
from vmlab.tui.widgets.charts.side_charts import OverlayChart, SideBars
from vmlab.tui.widgets.side_table import SideTable

NOISE = (0.2, -0.5, 0.7, -0.1, 0.3, -0.6, 0.1, -0.3)


def _store(path: Path, repeats: int) -> Path:
    """Both cache modes: web differs by chance alone, mail for certain, and so do its mails per second."""
    story = Story(path / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=2 * repeats)
    for repeat in range(repeats):
        for cache, web, mail, rate in (("none", 10.0, 20.0, 100.0), ("writeback", 10.3, 10.0, 50.0)):
            noise = NOISE[repeat if cache == "none" else -1 - repeat]
            story.start_cell({"cache": cache}, repeat + 1)
            story.measure("web", web + noise)
            story.measure("mail", mail + 0.1 * noise)
            story.measure("mail", rate + 0.1 * noise, "mails", "1/s")
            story.end_cell(wall=30.0)
    return story.end()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return _store(tmp_path, 8)


def _entries(store: Path) -> dict[str, Entry]:
    sides = [picked.side for picked in sides_of([Pick(store)])]
    rows = compared_sides(sides, every_metric=True).rows
    return {row.label.strip(): row.entries[1] for row in rows if row.entries}


def test_a_side_has_the_name_that_its_run_alone_has(tmp_path: Path) -> None:
    ids = ("20261121-143000-tile-7f3a", "20261121-150000-tile-b7b6", "20261121-153000-tile-c1c2")
    picks = []
    for run in ids:
        story = Story(tmp_path / f"{run}.sqlite", run=run).begin({"cache": ["none"]}, cells=1)
        story.cell({"cache": "none"}, {"web": 10.0}, wall=20.0)
        picks.append(Pick(story.end()))
    write_tag("base", ids[0])
    write_tag("nights", *ids[1:])
    assert [picked.side.label for picked in sides_of(picks)] == ["base", "tile-b7b6", "tile-c1c2"]


def test_the_screen_has_the_differences_of_the_command_line(store: Path) -> None:
    entries = _entries(store)
    assert {label: (entry.difference, entry.tone) for label, entry in entries.items()} == {
        "web (s)": ("~ +3.0 %", "quiet"),
        "mail (s)": ("-50.0 %", "good"),
        "mail mails (1/s)": ("-50.0 %", "bad"),
        "total wall clock (s)": ("~ +0.0 %", "quiet"),
    }
    lines = comparison_table(compare([picked.side for picked in sides_of([Pick(store)])])).splitlines()
    for label, entry in entries.items():
        (line,) = (line for line in lines if line.startswith(f"{label}  "))
        assert line.endswith(f"  {entry.difference} {entry.interval}")


@pytest.mark.parametrize("repeats", [1, 6])
def test_what_is_not_proven_has_no_tone(repeats: int, tmp_path: Path) -> None:
    entries = _entries(_store(tmp_path, repeats))
    assert entries["mail (s)"].difference.startswith("? -50.")
    assert {label: entry.tone for label, entry in entries.items() if entry.tone != "quiet"} == (
        # The rate is asked about alone, and six pairs are enough for that.
        {} if repeats == 1 else {"mail mails (1/s)": "bad"}
    )


def test_the_baseline_has_no_difference(store: Path) -> None:
    compared = compared_sides([picked.side for picked in sides_of([Pick(store)])])
    assert compared.rows[1].entries[0][:2] == ("9.97 ± 0.37", "")
    (overall, note, *_) = (row.label for row in compared.rows if row.tone == "quiet")
    assert overall.startswith("overall, the geometric mean of ")
    assert note.startswith("in brackets: interval of the difference")


def test_a_small_screen_has_the_hosts_figures_before_the_notes_on_differences() -> None:
    shown = compared_sides([picked.side for picked in sides_of([Pick(RECORDED)])])
    assert sorted(shown.narrow) == sorted(shown.rows)
    labels = [row.label for row in shown.narrow]
    overall, note = (next(one for one in labels if one.startswith(word)) for word in ("overall, ", "?: "))
    assert labels.index("total wall clock (s)") < labels.index(overall) < labels.index("disk await ms")
    assert labels.index("disk await ms") < labels.index(note)


def test_the_interval_is_shown_where_there_is_room(store: Path) -> None:
    sides = sides_of([Pick(store)])
    table = SideTable()
    table.show(compared_sides([picked.side for picked in sides])._replace(sentence=""))
    wide, narrow = ("\n".join("".join(text for text, _ in line) for line in table.lines(w, 30)) for w in (100, 60))
    assert "-50.0 % (-50." in wide
    assert "-50.0 %" in narrow and "-50.0 % (" not in narrow


def test_a_long_warning_is_all_there_on_a_narrow_screen() -> None:
    warning = "setting workloads.job.params.block differs (cache none; cache writeback): before 4096, after 65536 " * 2
    table = SideTable()
    table.show(ComparedSides(("before", "after"), rows=(SideRow("run time"),), warnings=(warning.strip(),)))
    lines = ["".join(text for text, _ in line) for line in table.lines(80, 24)]
    assert max(map(len, lines)) <= 80
    told = [line for line in lines if line[:2] in ("! ", "  ") and line.strip() and "(base)" not in line]
    assert " ".join(line[2:] for line in told) == warning.strip()


def test_sides_are_named_above_the_first_figures_and_sentences_leave_room_for_the_scroll_bar() -> None:
    note = SideRow("no difference is proven " * 8, tone="quiet")
    figure = SideRow("CPU user %", (Entry("76.1"), Entry("77.5")))
    table = SideTable()
    table.show(ComparedSides(("before", "after"), rows=(note, SideRow("Host", tone="title"), figure)))
    lines = ["".join(text for text, _ in line).rstrip() for line in table.lines(79, 24)]
    assert lines[-3].split() == ["before", "(base)", "after"]
    assert lines[-2] == "Host" and lines[-1].startswith("CPU user %")
    assert max(map(len, lines[:-3])) < 79


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_figure_of_four_sides_is_cut_off(width: int, tmp_path: Path) -> None:
    modes = ["none", "writeback", "writethrough", "directsync"]
    story = Story(tmp_path / "run.sqlite").begin({"cache": modes}, cells=32)
    for repeat in range(1, 9):
        for place, mode in enumerate(modes):
            story.cell({"cache": mode}, {"web": 100.0 + 10 * place + 0.1 * repeat}, 200.0 + place, repeat)
    sides = [picked.side for picked in sides_of([Pick(story.end())])]
    table = SideTable()
    table.show(compared := compared_sides(sides)._replace(sentence=""))
    lines = ["".join(text for text, _ in line).rstrip() for line in table.lines(width, 40)]
    assert max(map(len, lines)) <= width
    shown = " ".join(line for line in lines if line.startswith("web (s)"))
    (row,) = (row for row in compared.rows if row.label == "web (s)")
    assert len(row.entries) == 4
    for entry in row.entries:
        assert f" {entry.text} {entry.difference}".rstrip() in shown


def _bars(store: Path, width: int = 140) -> list[str]:
    compared = compared_sides([picked.side for picked in sides_of([Pick(store)])])
    bars = SideBars()
    bars.show(compared)
    return ["".join(text for text, _ in line) for line in bars.lines(width, 40)]


def test_bars_are_as_long_as_their_figures_and_shade_their_intervals(store: Path) -> None:
    lines = [line for line in _bars(store) if "█" in line]
    web, faster = (next(line for line in lines if word in line) for word in ("web", "-50.0 %"))
    # Mail by write-back takes as long as web, and half of what it takes without: 10 s of a scale of 30 s.
    assert abs(web.index("┃") - faster.index("┃")) <= 2
    assert web.count("┃") == faster.count("┃") == 1
    wall = next(line for line in lines if "total wall clock" in line)
    assert abs(wall.count("█") - 3 * faster.count("█")) <= 4


def test_a_long_difference_is_whole_beside_its_bar() -> None:
    bars = SideBars()
    long = "+1250.6 % (+1210.4 to +1330.6)"
    row = SideRow("disk", (Entry("1.0", mean=1.0), Entry("2.0", long, mean=2.0)), top=2.0)
    bars.show(ComparedSides(("1", "8"), bars=(row,)))
    lines = ["".join(text for text, _ in line) for line in bars.lines(160, 40)]
    assert max(map(len, lines)) <= 160 and any(line.endswith(long) for line in lines)


def test_a_side_that_missed_targets_says_so_on_the_screen(tmp_path: Path) -> None:
    compared = compared_sides([picked.side for picked in sides_of([Pick(timed_run(tmp_path / "run.sqlite"))])])
    missed = "depth 8: targets missed in 7 of 7 cells, most of all disk.latency_p99 800.0 us (at most 200 us)"
    assert compared.warnings[0] == missed
    assert "DEPTH 8 IS BETTER: disk throughput +" in compared.sentence
    assert {row.label for row in compared.bars} == {"disk throughput (MB/s)"}


def test_bars_of_one_reading_have_no_interval(tmp_path: Path) -> None:
    lines = _bars(_store(tmp_path, 1))
    assert not any("▒" in line for line in lines)
    assert not any("┃" in line for line in lines)
    assert any("one measurement, no interval" in line for line in lines)


def test_the_mean_is_a_mark_within_its_interval() -> None:
    bars = SideBars()
    bars.show(
        ComparedSides(
            ("1", "8"),
            bars=(SideRow("disk", (Entry("1.0", mean=1.0, half=0.5), Entry("2.0", mean=2.0, half=0.5)), top=2.5),),
        )
    )
    lines = ["".join(text for text, _ in line) for line in bars.lines(160, 3)]
    one, other = (line for line in lines if "█" in line)
    for line in (one, other):
        assert re.search("█▒+┃▒+ ?", line)
    assert other.index("┃") - one.index("█") > 1.8 * (one.index("┃") - one.index("█"))


@pytest.mark.parametrize(("width", "there"), [(160, True), (112, False)])
def test_a_long_name_of_a_figure_is_whole_where_there_is_room(width: int, *, there: bool) -> None:
    label = "blocks write_latency_mean (ms)"
    bars = SideBars()
    bars.show(
        ComparedSides(
            ("none", "writeback"),
            bars=(SideRow(label, (Entry("1.0", mean=1.0), Entry("2.0", mean=2.0)), top=2.0),),
        )
    )
    lines = ["".join(text for text, _ in line) for line in bars.lines(width, 40)]
    assert any(label in line for line in lines) is there
    first, second = (line for line in lines if "writeback" in line or "none " in line)
    assert first.index("█") == second.index("█")
    assert max(map(len, lines)) <= width


def test_what_is_drawn_and_the_hosts_means_are_of_cells_alike_that_passed(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"tiles": [1, 2], "cache": ["none", "writeback"]}, cells=4)
    for cache, tiles, outcome in (
        ("none", 1, "invalid"),
        ("none", 2, "passed"),
        ("writeback", 1, "passed"),
        ("writeback", 2, "passed"),
    ):
        story.start_cell({"tiles": tiles, "cache": cache})
        story.measure("web", 10.0)
        story.end_cell(outcome, wall=10.0)
    found = sides_of([Pick(story.end())])
    assert [(one.side.label, one.cells) for one in found] == [("cache none", (2,)), ("cache writeback", (4,))]
    assert [[cell.cell for cell in cells] for cells in cells_alike([one.side for one in found])] == [[2], [4]]


def test_the_chart_opens_on_what_was_the_limit_and_the_hosts_figures_have_their_differences() -> None:
    names = [figure.name for figure in headlines()]
    for cells, figure in (((2, 1), "disk_util_percent"), ((6, 5), "cpu_user_percent")):
        sides = [one.side for one in sides_of([Pick(FOLDER / STORE, cell) for cell in cells])]
        shown = compared_sides(sides)
        assert names[shown.limited] == figure
        rows = {row.label: row.entries for row in shown.rows if row.entries}
        means = [host_mean("disk_util_percent")(side.cells[0]) for side in sides]
        assert means[0] is not None and means[1] is not None
        assert rows["disk util %"][0].difference == ""
        assert rows["disk util %"][1].difference == f"{means[1] - means[0]:+.1f} points"
        assert rows["disk await ms"][1].difference.endswith(" %") and rows["disk await ms"][1].tone == "quiet"


def test_where_nothing_was_at_its_limit_the_chart_opens_on_what_was_busiest() -> None:
    names = [figure.name for figure in headlines()]
    sides = [one.side for one in sides_of([Pick(FOLDER / STORE, cell) for cell in (2, 1)])]
    for disk, cpu, figure in ((60.0, 50.0, "disk_util_percent"), (10.0, 11.0, "cpu_user_percent")):
        evidence = {"disk_busy_percent": disk, "cpu_busy_percent": cpu}
        bound = BoundDocument(resource="none", where="", sentence="", evidence=evidence)
        idle = [replace(one, cells=tuple(replace(cell, bound_by=bound) for cell in one.cells)) for one in sides]
        assert names[compared_sides(idle).limited] == figure


@pytest.mark.parametrize("width", [110, 160])
def test_bars_have_room_for_long_names_and_figures_with_words(width: int) -> None:
    labels = "cell 2: cache none, tiles 2", "cell 5: cache writeback, tiles 2"
    entries = Entry("86.1 (not delivered)", mean=86.1), Entry("57.2", "not delivered", mean=57.2)
    bars = SideBars()
    bars.show(ComparedSides(labels, bars=(SideRow("total wall clock (s)", entries, top=86.1),)))
    lines = ["".join(text for text, _ in line) for line in bars.lines(width, 20)]
    first, second = (line for line in lines if "cell" in line)
    assert labels[0] in first and labels[1] in second and max(map(len, lines)) <= width
    assert "█ 86.1 (not delivered) baseline" in first and second.endswith("57.2 not delivered")


def test_all_cells_of_a_side_are_drawn_in_its_tone(store: Path) -> None:
    assert [len(one.cells) for one in sides_of([Pick(store)])] == [8, 8]
    for signs, text in ((False, "x"), (True, PLAIN_LINES[1])):
        cells = [OverlayChart._of_side(("x", place, None), [0, 0, 0, 1, 1], signs=signs) for place in range(5)]
        assert [side for _, side, _ in cells] == [0, 0, 0, 1, 1]
        assert cells[-1][0] == cells[-2][0] == text


def test_where_there_is_room_the_hosts_figures_stand_in_two_columns() -> None:
    figures = [SideRow(f"figure {place}", (Entry("1"), Entry("2"))) for place in range(6)]
    table = SideTable()
    table.show(ComparedSides(("before", "after"), rows=(SideRow("Host", tone="title"), *figures)))
    narrow, wide = ([*table.lines(width, 30)] for width in (80, 160))
    assert len(wide) < len(narrow) - 2
    told = "".join(text for line in wide for text, _ in line)
    assert all(f"figure {place}" in told for place in range(6))


def test_latencies_of_the_guests_disks_stand_side_by_side_with_the_error_of_their_bins(tmp_path: Path) -> None:
    compared = compared_sides([picked.side for picked in sides_of([Pick(told(tmp_path, "none", "writeback"))])])
    place = next(place for place, row in enumerate(compared.rows) if row.label.startswith("Latency"))
    assert compared.rows[place] == SideRow("Latency of the guests' disks in ms, each ± 216 %")
    found = {row.label: [entry.text for entry in row.entries] for row in compared.rows[place + 1 :]}
    assert list(found) == [f"{what} {part}" for what in ("read", "write", "flush") for part in ("p50", "p95", "p99")]
    # As the run's own table has them.
    assert (found["read p50"], found["read p99"]) == (["3.2", "3.2"], ["320", "320"])
    assert (found["write p95"], found["flush p50"]) == (["32", "32"], ["1000", "1000"])


def test_a_side_whose_disks_nobody_counted_has_no_latency(tmp_path: Path, store: Path) -> None:
    story = LatencyStory(tmp_path / "one" / "run.sqlite")
    story.begin({"cache": ["none", "writeback"]})
    story.executed("none")
    story.cell({"cache": "writeback"}, {"web": 1.0}, 20.0)
    sides = [picked.side for picked in sides_of([Pick(story.end())])]
    rows = {row.label: [entry.text for entry in row.entries] for row in compared_sides(sides).rows}
    assert rows["read p50"] == ["3.2", NOT_MEASURED]
    without = compared_sides([picked.side for picked in sides_of([Pick(store)])])
    assert not any(row.label.startswith("Latency") for row in without.rows)
