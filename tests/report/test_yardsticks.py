"""The yardstick and the order of cells in tables, comparisons and reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.comparison.compare import compare, sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.notices import (
    MOVED_FROM_OTHERS,
    MOVED_OVER_CELL,
    NOISE_NOTICES,
    OTHER_WORK,
    NoiseNotice,
    notice_of_cell,
)
from vmlab.analysis.shape import RunDocument
from vmlab.model.event import Notice
from vmlab.report.comparison import comparison_table
from vmlab.report.headline import explanation
from vmlab.report.page.gathered import gather
from vmlab.report.page.html import html_report
from vmlab.report.page.markdown import markdown_report
from vmlab.report.run.tables import run_table
from vmlab.report.run.yardstick_text import short_notices
from vmlab.store.reader import RunReader

TAKEN_OUT = (
    "without yardstick: the difference where each time is divided by, and each rate multiplied by, its cell's "
    "yardstick (the mean of before and after) relative to the median of the cells compared; yardsticks took "
    "0.300 to 0.600 s, median 0.450 s; what counts is the difference as it was measured"
)


def told(path: Path, *, yardsticks: bool = True, repeats: int = 8, order: str = "random", run: str = "slowed") -> Path:
    """A run after a warm-up, whose writeback ran on a host that was half as fast."""
    story = Story(path, run=run).begin({"cache": ["none", "writeback"]}, cells=16, seed=7, order=order)
    cells = [("none", 0, 1.0), *((mode, n, slow) for n in range(1, repeats + 1) for mode, slow in MODES)]
    for cache, repeat, slow in cells:
        story.start_cell({"cache": cache}, repeat)
        if yardsticks:
            story.yardsticks(0.29 * slow, 0.31 * slow)
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


def test_a_comparison_has_a_second_column_which_is_not_the_verdict(tmp_path: Path) -> None:
    found = compare(sides_by_axis(document(told(tmp_path / "run.sqlite"))))
    lines = comparison_table(found, 160).splitlines()
    (head,) = (line for line in lines if line.startswith("figure"))
    assert head.split("  ")[-1] == "without yardstick" and head.index("difference") < head.index("without yardstick")
    (web,) = (line for line in lines if line.startswith("web"))
    assert [part.strip() for part in web.split("  ") if part][3:] == [
        "+100.0 % (+100.0 to +100.0)",
        "~ +0.0 % (+0.0 to +0.0)",
    ]
    assert TAKEN_OUT in one_line(comparison_table(found, 80))
    assert max(map(len, comparison_table(found, 80).splitlines())) <= 80
    (explained,) = explanation(found)
    assert "proven to be worse at web (+100.0 % (+100.0 to +100.0))" in explained
    assert "With the yardstick taken out the verdict is another at web (no difference proven, ~ +0.0 %" in explained


def test_without_yardsticks_nothing_is_said_of_them(tmp_path: Path) -> None:
    store = told(tmp_path / "run.sqlite", yardsticks=False)
    found = compare(sides_by_axis(document(store)))
    with RunReader(store) as reader:
        gathered = gather("last", reader, ())
    texts = (comparison_table(found), *explanation(found), run_table(document(store)))
    for text in (*texts, markdown_report([gathered]).decode()):
        assert "yardstick" not in text


def test_the_table_of_a_run_has_the_yardstick_of_each_cell(tmp_path: Path) -> None:
    text = one_line(run_table(document(told(tmp_path / "run.sqlite", repeats=2))))
    assert (
        "yardstick in s by the number of the cell, mean of before and after it: "
        "1: 0.300, 2: 0.600, 3: 0.300, 4: 0.600, 5: 0.300"
    ) in text


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
    assert cells[:5] == [
        "- cell 1 (cache none, warm-up): passed",
        "  - Yardstick 0.290 s before, 0.310 s after the cell: 6.90 % apart.",
        "- cell 2 (cache writeback, repeat 1): passed",
        "  - Block 1, place 1.",
        "  - Yardstick 0.580 s before, 0.620 s after the cell: 6.90 % apart.",
    ]


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
    assert "Block 1, place 1." in page and "Yardstick 0.580 s before, 0.620 s after the cell" in page
    assert "; without yardstick +0.3 %, one a side" in page
    assert TAKEN_OUT in page


NOISE = {
    3: "the yardstick took 0.351 s before the cell and 0.449 s after it: the host's speed moved by 28 %",
    4: "the yardstick took 0.391 s around it, 0.350 s around others: the host's speed moved by 12 %",
    5: "the yardstick took 0.478 s before the cell and 0.366 s after it: the host's speed moved by 31 %",
}
FOLDED = (
    "the host's speed, by the yardstick, moved by 12 to 31 % around 3 cells; 10 % is the limit "
    "(3 notices, all in `vmlab show --json`)"
)


def test_many_notices_on_noise_are_one_line_first_and_all_further_down(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from vmlab.report.page.content import COURSES

    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    noise = [f"cell {number}: {text}; 10 % is the limit" for number, text in NOISE.items()]
    notices = ["guests are emulated", *noise, "and another"]
    for text in notices:
        story.writer.append(Notice(**story.now(), level="warning", text=text))
    store = story.end()
    shown = one_line(run_table(document(store), 100))
    assert FOLDED in shown and "0.351 s before" not in shown
    assert document(store)["run"]["notices"] == notices, "JSON has all"
    with RunReader(store) as reader:
        gathered = gather("last", reader, COURSES)
    page, markdown = html_report([gathered]).decode(), markdown_report([gathered]).decode()
    first, further = page.split("Cells</h2>")
    assert FOLDED in first and "0.351 s before" not in first
    assert all(text in further for text in NOISE.values())
    assert markdown.index("3 notices") < markdown.index("0.351 s before")
    assert short_notices(notices[:3]) == notices[:3], "two stay as they are"


def test_what_a_run_writes_of_noise_is_recognised_in_its_record() -> None:
    """The forms are the only place with the text: whatever they write is folded, also by a mended text."""
    written = {
        MOVED_OVER_CELL: {"before": 0.3, "after": 0.36, "percent": 20.4, "limit": 10.0},
        MOVED_FROM_OTHERS: {"around": 0.36, "usual": 0.3, "percent": 20.4, "limit": 12.5},
        OTHER_WORK: {"percent": 20.4},
    }
    assert set(written) == set(NOISE_NOTICES)
    for form, figures in written.items():
        lines = [notice_of_cell(cell, form.write(**figures)) for cell in (3, 4, 12)]
        one = form.recognise(lines[2])
        assert one is not None and (one.cell, one.percent) == (12, 20)
        assert one.limit == f"{figures['limit']:g}" if "limit" in figures else one.limit == ""
        (line,) = short_notices(lines)
        assert "3 cells" in line and "20 %" in line and "{" not in line
        assert form.recognise("cell 3: something else") is None
    mended = NoiseNotice("it took {percent:.0f} % (of [all] CPUs)", "{among} of {cells}")
    assert mended.recognise(notice_of_cell(7, mended.write(percent=5.0))) == (7, 5, "")


def test_notices_that_differ_in_numbers_alone_are_one_line_of_any_kind() -> None:
    waited = [f"cell {cell}: tasks on the host waited for memory for {cell + 1} % of the time" for cell in (2, 3, 5)]
    helpers = [f"t{tile}-web: its helper does not answer; its programs are started over SSH" for tile in (1, 2, 3)]
    assert short_notices([waited[0], "guests are emulated", *waited[1:], *helpers]) == [
        "cells 2, 3 and 5: tasks on the host waited for memory for 3 to 6 % of the time "
        "(3 notices, all in `vmlab show --json`)",
        "guests are emulated",
        "t1-web, t2-web, t3-web: its helper does not answer; its programs are started over SSH "
        "(3 notices, all in `vmlab show --json`)",
    ]
    assert short_notices([*waited[:2], *helpers[:2]]) == [*waited[:2], *helpers[:2]]


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
        first, further = html_report([gather("last", reader, COURSES)]).decode().split("Cells</h2>")
    assert folded in first and "took 33 %" not in first
    assert all(f"took {percent} % of the CPUs; the limit is 20 %" in further for percent in (21, 48, 33, 25, 30))
