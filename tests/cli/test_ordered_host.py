"""Every figure from a limited host says so, in tables, comparisons, exports and titles of charts."""

import csv
import json
from pathlib import Path

from lxml import etree

from tests.cli.test_ordered_disk import EMULATED, OWN, RUN, Captured, compared, shown, state, told
from vmlab.model.event import HostProbed
from vmlab.model.ordered import ordered_words
from vmlab.report.event_words import event_sentence
from vmlab.report.page.content import COURSES, cell_chart
from vmlab.report.page.gathered import CellCourse, Course
from vmlab.tui.state.charts import MEMORY, ORDERED_MEMORY, chart_of
from vmlab.tui.state.history import History
from vmlab.tui.widgets.charts.chart_board import ChartBoard, Charted

__all__ = ["state"]
SIZE = {"ordered": {"cpus": 2, "memory_bytes": 4 * 2**30}}
ORDERED = {**OWN, **SIZE}


def test_tables_and_comparisons_say_so(capsys: Captured) -> None:
    told(ORDERED)
    assert "limited host of 2 CPUs and 4 GiB of memory: all guests share these" in shown(
        ["show", "last", "--explain"], capsys
    )
    assert "limited host" in shown(["show", "last"], capsys)
    assert "all values are from a limited host" in compared(capsys, "--explain")
    assert json.loads(compared(capsys, "--json"))["ordered"] == ["ordered host"]
    told(OWN)
    assert "limited host" not in shown(["show", "last"], capsys) + compared(capsys)


def test_exports_and_pages_say_so_beside_an_emulated_disk(capsys: Captured, tmp_path: Path) -> None:
    told({**EMULATED, **SIZE})
    shown(["export", "last", "--format", "csv", "-o", str(tmp_path / "run.csv")], capsys)
    with (tmp_path / "run.csv").open(newline="") as file:
        assert {row["ordered"] for row in csv.DictReader(file)} == {"emulated disk, ordered host"}
    shown(["report", RUN, "-o", str(tmp_path / "run.html")], capsys)
    assert ", on an emulated disk, on a limited host." in (tmp_path / "run.html").read_text()


def test_the_event_says_so() -> None:
    sentence = event_sentence(HostProbed(accelerator="kvm", host=ORDERED))
    assert sentence is not None
    assert sentence.text == "accelerator kvm; limited host of 2 CPUs and 4 GiB of memory: all guests share these"


def test_the_consoles_chart_of_memory_is_the_ordered_hosts_up_to_its_limit() -> None:
    words = ordered_words(ORDERED)
    assert chart_of(MEMORY, words) is ORDERED_MEMORY
    assert chart_of(MEMORY, []) is MEMORY
    assert (ORDERED_MEMORY.title, ORDERED_MEMORY.top) == ("Limited host memory", "ordered_memory_limit_bytes")
    board = ChartBoard()
    board.show(Charted(History(), ordered=words))
    titles = [chart.title for panel in board._grid(200, 30)[2] for chart in panel]
    assert "Limited host memory" in titles
    assert "Memory" not in titles


def test_the_page_draws_its_memory_up_to_its_limit() -> None:
    nothing = dict.fromkeys(COURSES, Course())
    drawn = {
        name: Course((0.0, 1.0), (each * 2.0**30, each * 2.0**30))
        for name, each in (
            ("ordered_memory_used_bytes", 1.0),
            ("ordered_memory_cached_bytes", 0.5),
            ("ordered_memory_limit_bytes", 4.0),
        )
    }
    labels = {}
    for values in (nothing, {**nothing, **drawn}):
        texts = [
            "".join(map(str, one.itertext()))
            for one in cell_chart(CellCourse((), (), values), "cell").draw("c").iter(etree.Element, "{*}text")
        ]
        labels["limited host GiB" in texts] = texts
    assert labels.keys() == {False, True}
    # Its scale goes on to the limit, though no more than 1.5 GiB was in use.
    assert "4" in labels[True]
