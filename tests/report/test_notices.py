"""Notices and the order of cells in tables, comparisons and reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.retired import add_retired
from tests.store.stories import Story
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.event import Notice
from vmlab.report.comparison_text import comparison_table
from vmlab.report.headline import explanation
from vmlab.report.page.gathered import gather
from vmlab.report.page.report_page import html_report, markdown_report
from vmlab.report.run.mind_text import brief_lines
from vmlab.report.run.notice_text import short_notices
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader


def told(path: Path, *, repeats: int = 8, order: str = "random", run: str = "slowed") -> Path:
    """A run after a warm-up, whose writeback ran on a host that was half as fast."""
    story = Story(path, run=run).begin({"cache": ["none", "writeback"]}, cells=16, seed=7, order=order)
    cells = [("none", 0, 1.0), *((mode, n, slow) for n in range(1, repeats + 1) for mode, slow in MODES)]
    for cache, repeat, slow in cells:
        story.start_cell({"cache": cache}, repeat)
        story.execute(10.0)
        story.measure("web", (10 + 0.01 * repeat) * slow)
        story.end_cell(wall=(10 + 0.01 * repeat) * slow)
    return story.end()


MODES = (("writeback", 2.0), ("none", 1.0))


def document(store: Path) -> RunDocument:
    with RunReader(store) as reader:
        return run_document(reader)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_record_with_readings_of_the_old_yardstick_is_read_without_them(tmp_path: Path) -> None:
    store = told(tmp_path / "run.sqlite")
    for cell, mono in ((2, 20.0), (3, 40.0)):
        add_retired(store, "YardstickTaken", cell=cell, mono=mono, when="before", seconds=0.3, cpu_seconds=0.3)
    found = compare(sides_by_axis(document(store)))
    with RunReader(store) as reader:
        gathered = gather("last", reader, ())
    assert all(cell.yardstick is None for cell in document(store).cells)
    texts = (comparison_table(found), *explanation(found), run_table(document(store)))
    assert "proven to be worse for web (+100.0 % (+100.0 to +100.0))" in texts[1]
    for text in (*texts, markdown_report([gathered]).decode()):
        assert "yardstick" not in text.lower()


@pytest.mark.parametrize(
    ("repeats", "order", "sentence"),
    [
        (
            2,
            "random",
            "The cells ran in 2 blocks, each of which is one repeat of all cells, in random order within each "
            "repeat (seed 7), after a warm-up; they are listed in the order in which they ran.",
        ),
        (
            1,
            "as written",
            "The cells ran in one block, as written, after a warm-up; they are listed in the order in which they ran.",
        ),
    ],
)
def test_a_report_says_in_which_order_the_cells_ran(repeats: int, order: str, sentence: str, tmp_path: Path) -> None:
    with RunReader(told(tmp_path / "run.sqlite", repeats=repeats, order=order)) as reader:
        gathered = gather("last", reader, ())
    text = markdown_report([gathered]).decode()
    assert sentence in text
    cells = text[text.index("## Cells") :].splitlines()[4:]
    assert "### Cell 1 (cache none, warm-up): passed" in cells
    second = cells.index("### Cell 2 (cache writeback, repeat 1): passed")
    assert cells[second + 2] == "- Block 1, place 1."


def test_the_page_says_the_same(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from vmlab.report.page.content import COURSES

    first = told(tmp_path / "first" / "run.sqlite", repeats=2, run="first")
    second = told(tmp_path / "second" / "run.sqlite", run="second")
    runs = []
    for label, store in (("first", first), ("second", second)):
        with RunReader(store) as reader:
            runs.append(gather(label, reader, COURSES))
    page = html_report(runs).decode()
    assert "The cells ran in 2 blocks, each of which is one repeat of all cells, in random" in page
    assert "Block 1, place 1." in page


NOISE = {
    number: f"the host's other work took {percent} % of the CPUs while the workloads ran"
    for number, percent in ((3, 12), (4, 28), (5, 17))
}
FOLDED = (
    "cells 3, 4 and 5: the host's other work took 12 to 28 % of the CPUs while the workloads ran "
    "(3 notices, listed in the JSON)"
)


def test_many_notices_on_noise_are_one_line_first_and_all_further_down(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from vmlab.report.page.content import COURSES

    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    noise = [f"cell {number}: {text}" for number, text in NOISE.items()]
    notices = ["guests are emulated", *noise, "and another"]
    for text in notices:
        story.writer.append(Notice(**story.now(), level="warning", text=text))
    store = story.end()
    shown = one_line(run_table(document(store), 100))
    assert FOLDED in shown and "took 17 %" not in shown
    assert document(store).run.notices == notices, "JSON has all"
    with RunReader(store) as reader:
        gathered = gather("last", reader, COURSES)
    page, markdown = html_report([gathered]).decode(), markdown_report([gathered]).decode()
    first, further = page.split("Cells (1)</summary>")
    assert FOLDED in first and "took 17 %" not in first
    assert all(text in further for text in NOISE.values())
    assert markdown.index("3 notices") < markdown.index("took 17 %")
    assert short_notices(notices[:3]) == notices[:3], "two stay as they are"


def test_notices_that_differ_in_numbers_alone_are_one_line_of_any_kind() -> None:
    waited = [f"cell {cell}: tasks on the host waited for memory for {cell + 1} % of the time" for cell in (2, 3, 5)]
    helpers = [f"t{tile}-web: its helper does not answer; its programs are started over SSH" for tile in (1, 2, 3)]
    assert short_notices([waited[0], "guests are emulated", *waited[1:], *helpers]) == [
        "cells 2, 3 and 5: tasks on the host waited for memory for 3 to 6 % of the time "
        "(3 notices, listed in the JSON)",
        "guests are emulated",
        "t1-web, t2-web, t3-web: its helper does not answer; its programs are started over SSH "
        "(3 notices, listed in the JSON)",
    ]
    assert short_notices([*waited[:2], *helpers[:2]]) == [*waited[:2], *helpers[:2]]


def test_spans_of_several_notices_become_the_span_that_holds_all() -> None:
    spans = {2: (67, 99), 3: (62, 93), 5: (70, 98)}
    notices = [
        f"cell {cell}: the CPUs ran at {80 + cell} % of their best speed on average, between {low} and {high} %"
        for cell, (low, high) in spans.items()
    ]
    assert short_notices(notices) == [
        "cells 2, 3 and 5: the CPUs ran at 82 to 85 % of their best speed on average, between 62 and 99 % "
        "(3 notices, listed in the JSON)"
    ]


def test_warnings_of_a_comparison_are_folded_side_by_side() -> None:
    invalid = [
        f"base-{side}: cell {cell}: invalid, other work took {20 + cell} %" for side in (1, 2) for cell in (1, 4, 6)
    ]
    assert short_notices(["the kernels differ", *invalid, "night-1: cell 7: failed"]) == [
        "the kernels differ",
        "base-1: cells 1, 4 and 6: invalid, other work took 21 to 26 % (3 notices, listed in the JSON)",
        "base-2: cells 1, 4 and 6: invalid, other work took 21 to 26 % (3 notices, listed in the JSON)",
        "night-1: cell 7: failed",
    ]


def test_cells_that_the_hosts_other_work_spoiled_are_one_line_first_and_each_has_its_own_further_down(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    from vmlab.report.page.content import COURSES

    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=5)
    skewed = "clients started 700 ms apart; the limit is 500 ms"
    for cell, percent in enumerate((21, 48, 33, 25, 30), 1):
        story.start_cell({"cache": "none"}, cell)
        story.measure("web", 10.0)
        other = f"the host's other work took {percent} % of the CPUs; the limit is 20 %"
        story.end_cell("invalid", [other, skewed] if cell == 2 else [other], wall=11.0)
    store = story.end()
    folded = (
        "cells 1, 2, 3, 4 and 5 (cache none) are invalid: the host's other work took 21 to 48 % of the CPUs; "
        "the limit is 20 %"
    )
    shown = one_line(run_table(document(store), 100))
    assert f"! {folded} ! cell 2 (cache none, repeat 2) is invalid: {skewed}" in shown
    with RunReader(store) as reader:
        first, further = html_report([gather("last", reader, COURSES)]).decode().split("Cells (5)</summary>")
    assert folded in first and "took 33 %" not in first
    assert all(f"took {percent} % of the CPUs; the limit is 20 %" in further for percent in (21, 48, 33, 25, 30))


def test_a_line_on_many_cells_keeps_what_it_says() -> None:
    cells = "cells 1, 2, 3, 4, 5, 7, 8, 9, 13, 14, 15 and 16"
    assert brief_lines([f"{cells}: guests of this host used disks", f"{cells}: steal 4 %"]) == [
        "12 cells: guests of this host used disks",
        f"{cells}: steal 4 %",
    ]
