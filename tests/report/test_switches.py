"""A report shows when the running guests were switched: a line across a cell's tracks, and a sentence."""

from __future__ import annotations

from pathlib import Path

from lxml import etree

from tests.analysis.record.test_switches import switched_cell
from tests.store.stories import Story
from vmlab.report.page.content import COURSES, cell_chart
from vmlab.report.page.gathered import gather
from vmlab.report.run.cell_text import cell_facts
from vmlab.store.reader import RunReader


def test_each_switch_is_marked_in_the_chart_of_its_cell(tmp_path: Path) -> None:
    story = Story(tmp_path / "run" / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=1)
    switched_cell(story, seconds=4.0, repeat=1)
    with RunReader(story.end("invalid", 4)) as reader:
        run = gather("last", reader, COURSES)
    course = run.courses[1]
    assert course.marks == ((1.0, "cache writeback"), (3.0, "cache none"))
    texts = [
        "".join(map(str, one.itertext())) for one in cell_chart(course, "cell").draw("c").iter(etree.Element, "{*}text")
    ]
    assert texts.count("cache writeback") == texts.count("cache none") == 1
    told = " ".join(cell_facts(run.document.cells[0]))
    assert "switched 1.00 s after the start, as vmlab set asked: cache none to writeback" in told
