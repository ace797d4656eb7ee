"""The report of runs as a page and as Markdown."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from lxml import etree, html

from tests.report.told import BUSY, TOLD
from tests.store.stories import HOST, Story
from tests.tui.conftest import RECORDED
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side
from vmlab.cli.main import command_line
from vmlab.model.cell_event import PhaseEnded, PhaseStarted
from vmlab.report.blocks import Heading, Section, Text
from vmlab.report.comparison_text import comparison_table
from vmlab.report.page import report_page
from vmlab.report.page.content import _HOST_CHARTS, COURSES, _drawn
from vmlab.report.page.gathered import Gathered, each_a_side, gather
from vmlab.report.page.report_page import html_report, markdown_report
from vmlab.report.run.run_page import run_table
from vmlab.report.run.tiles_text import TILES_TITLE
from vmlab.report.words import capital
from vmlab.report.writers import html as page
from vmlab.report.writers.html import html_page
from vmlab.report.writers.markdown import escaped
from vmlab.store.reader import RunReader
from vmlab.telemetry.host.host_figures import headlines


def gathered(path: Path, label: str = "last") -> Gathered:
    with RunReader(path) as reader:
        return gather(label, reader, COURSES)


def without_timelines(path: Path, label: str = "last") -> Gathered:
    """As `gathered`, but cells have no chart of what they did, which takes a second each to draw."""
    return replace(gathered(path, label), courses={})


def parsed(*runs: Gathered) -> etree._Element:
    text = html_report(runs)
    assert len(text) <= page.MOST_BYTES
    return html.document_fromstring(text)


def at(root: etree._Element, path: str) -> list[Any]:
    """What an XPath finds."""
    return list(cast(list[Any], root.xpath(path)))


def words(root: etree._Element, path: str) -> list[str]:
    return ["".join(map(str, one.itertext())).strip() for one in at(root, path)]


@pytest.fixture(scope="module")
def tile() -> etree._Element:
    return parsed(gathered(RECORDED))


def test_the_first_screen_has_the_answer_and_one_picture(tile: etree._Element) -> None:
    first = at(tile, "//div[@class='first']")[0]
    assert words(first, ".//div[@class='answer']/p") == [
        "CANNOT TELL YET: 1 repeat points both ways, as writeback is faster than none in 1 and slower in 4 of 5 "
        "metrics; a proof takes 8 repeats.",
        "writeback against none: total wall clock 34.4 s against 28.4 s; +21.3 %.",
        "The CPU was at its limit in both cells.",
        "The disk was busy for at most 1.6 % of the time in these cells, so they did not wait for it, in any "
        "cache mode.",
        "2 of 2 cells passed.",
    ]
    assert all(one.count(":") <= 1 for one in words(first, ".//div[@class='answer']/p")), "no chain of colons"
    assert len(at(first, ".//*[local-name()='svg']")) == 1
    assert words(tile, "//h1") == [
        "Four guests that benchmark each other, in one to three tiles, with and without the host's cache."
    ]
    assert "these values describe emulation" in "".join(words(tile, "//p[@class='sub']"))


def test_every_chart_says_what_stands_behind_its_figures(tile: etree._Element) -> None:
    own, emulated = gathered(RECORDED), ", under emulation (TCG)"
    host = {**own.document.run.host, "disk": {"emulated": True, "profile": "hdd-7200"}}
    document = replace(own.document, run=replace(own.document.run, host=host))
    page = parsed(replace(own, document=document))
    titles = words(page, "//figcaption")
    assert len(titles) == len(words(tile, "//figcaption")) > 6
    assert [title for title in titles if f"{emulated}, on an emulated disk." not in title] == []
    spoken = at(page, "//figure/*/@aria-label")
    assert [name for name in spoken if not name.endswith(f"{emulated}, on an emulated disk")] == []
    assert [title for title in words(tile, "//figcaption") if f"{emulated}." not in title] == []
    both = parsed(own, replace(own, label="other", document=document))
    assert words(both, "//figcaption")[0].startswith("run time (s), under emulation (TCG), on an emulated disk.")


def test_every_headline_of_the_host_is_in_a_chart_of_the_page() -> None:
    shown = [[figure.name for figure in _drawn(chart)] for chart in _HOST_CHARTS]
    assert all(shown) and {figure.name for figure in headlines()} <= {name for names in shown for name in names}


def test_the_page_has_all_parts(tile: etree._Element) -> None:
    titles = words(tile, "//figcaption")
    for part in (
        "run time (s)",
        "CPU, % of all CPUs",
        "Disk busy, % of the time",
        "Disk wait, ms",
        "Disk rate, MB/s",
        "Memory, GiB",
        "Cell 1 over",
        "Cell 2",
    ):
        assert any(title.startswith(part) for title in titles), part
    drawn = words(tile, "//*[local-name()='text']")
    assert {"none", "writeback", "provision", "execute", "disk busy %"} <= set(drawn)
    assert words(tile, "//h2") == [], "all but the answer is folded"
    assert words(tile, "/html/body/details/summary") == [
        "All metrics",
        "The host while the workloads ran (5 charts)",
        "Cells (2)",
        "Configuration",
        "What tools printed",
    ]
    assert words(tile, "//h3")[:2] == ["Host, mean while the workloads ran", "What bound the cells"]
    (first, second) = words(tile, "//section[@class='cell']/details[summary='Cache modes proved']")
    assert "file-a: cache none: " in first and "file-a: cache writeback: " in second


def test_the_page_needs_no_network_and_runs_nothing(tile: etree._Element) -> None:
    assert at(tile, "//script | //link | //img | //iframe | //object | //form") == []
    policy = at(tile, "//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    attributes = [(str(name), str(value)) for one in tile.iter(etree.Element) for name, value in one.attrib.items()]
    assert not [name for name, _ in attributes if name.startswith("on")]
    links = [value for name, value in attributes if name.rpartition("}")[2].rpartition(":")[2] in ("href", "src")]
    assert links and all(value.startswith("#") for value in links)
    styles = "".join(words(tile, "//style"))
    assert "url(" not in styles
    assert "@import" not in styles


def test_what_charts_refer_to_is_there_once(tile: etree._Element) -> None:
    names = at(tile, "//@id")
    assert len(set(names)) == len(names)
    text = etree.tostring(tile).decode()
    for reference in (r"url\(#([^)]+)\)", r'href="#([^"]+)"'):
        found = set(re.findall(reference, text))
        assert found and found <= set(names)


def test_charts_have_the_colours_of_the_page_alone(tile: etree._Element) -> None:
    charts = at(tile, "//*[local-name()='svg']")
    assert len(charts) > 6
    for svg in charts:
        styles = " ".join(at(svg, ".//@style | .//@fill | .//@stroke"))
        assert "var(--" in styles
        colors = set(re.findall(r"#[0-9a-f]{6}\b", styles))
        assert not {color for color in colors if color.startswith("#0")}, "a colour that stands for a variable"


def test_charts_have_the_sides_in_the_order_of_the_scenario(tmp_path: Path) -> None:
    """The seed had the candidate run first; tables and charts begin with the baseline all the same."""
    told = Story(tmp_path / "run.sqlite").begin(
        {"cache": ["none", "writeback"]}, {"columns": "cache", "rows": "workloads", "baseline": "none"}, cells=4
    )
    for cache in ("writeback", "none", "none", "writeback"):
        told.start_cell({"cache": cache})
        told.execute(30.0, [BUSY] * 3)
        told.measure("web", 10.0)
        told.end_cell(wall=30.0)
    root = parsed(gathered(told.end()))
    charts = [one for one in at(root, "//figure") if words(one, "./figcaption")[0].startswith(("CPU, %", "Disk wait"))]
    assert len(charts) == 2
    for chart in charts:
        sides = [word for word in words(chart, ".//*[local-name()='text']") if "none" in word or "writeback" in word]
        assert sides == ["cache none", "cache writeback"]


HOSTILE = '<script>alert("$x$")</script>\x1b[31m‮]]>&amp;'


def hostile(path: Path) -> Path:
    told = Story(path / "run.sqlite", scenario=HOSTILE).begin(
        {"setup": [HOSTILE, "b"]},
        {"columns": "setup", "rows": "workloads", "baseline": HOSTILE},
        said={"summary": HOSTILE},
    )
    told.writer.document("scenario.yaml", HOSTILE)
    for setup in (HOSTILE, "b"):
        told.start_cell({"setup": setup}, settings={"workloads": {HOSTILE: {"kind": HOSTILE}}})
        told.execute(10.0, [BUSY] * 3)
        told.measure(HOSTILE, 9.0)
        told.prove(HOSTILE, o_direct=True, expected=HOSTILE)
        told.end_cell("invalid", [HOSTILE], wall=10.0)
    told.note(HOSTILE)
    return told.end("invalid", 4, HOSTILE)


def test_nothing_of_a_run_becomes_part_of_the_page(tmp_path: Path) -> None:
    run = gathered(hostile(tmp_path), HOSTILE)
    for text in (html_report([run]), html_report([run, run])):
        assert b"<script" not in text.lower()
        assert b"\x1b" not in text
        assert "‮".encode() not in text
        assert b"&lt;script&gt;" in text
        html.document_fromstring(text)


def test_nothing_of_a_run_becomes_markdown(tmp_path: Path) -> None:
    run = gathered(hostile(tmp_path), HOSTILE)
    for text in (markdown_report([run]).decode(), markdown_report([run, run]).decode()):
        assert re.search(r"(?<!\\)<", text) is None
        assert "\x1b" not in text
    assert escaped("a|b *c* [d](e) @all #1 ~x~") == r"a\|b \*c\* \[d\](e) \@all \#1 \~x\~"
    assert escaped("<script>a</script>") == r"&lt;script\>a&lt;/script\>"
    assert escaped("- a") == r"\- a"
    assert escaped("12. a - b") == r"12\. a - b"
    assert escaped("21.3 %") == "21.3 %"


@pytest.mark.parametrize("name", ["two-tiles", "doubtful", "aborted", "not-begun", "cpu-overhead"])
def test_runs_of_each_kind_have_a_page(tmp_path: Path, name: str) -> None:
    run = gathered(TOLD[name](tmp_path / "run.sqlite"))
    root = parsed(run)
    titles = words(root, "//figcaption")
    if name == "two-tiles":
        assert {"web: run time over tiles.", "mail: run time over tiles.", "total wall clock over tiles."} <= set(
            titles
        )
        verdict, *answer = words(root, "//div[@class='answer']/p")
        answer = [text for text in answer if text.startswith("writeback")]
        assert verdict.startswith("CANNOT TELL YET: 1 repeat points to ")
        assert [text[:34] for text in answer] == [f"writeback against none at tiles {count}:" for count in (1, 2)]
    if name == "doubtful":
        assert words(root, "//td/s")
        assert "~~" not in "".join(words(root, "//table"))
        assert "| ~~4.00 ± 0.00~~ (invalid)" in markdown_report([run]).decode()
        assert any("invalid: clients started 700 ms apart" in text for text in words(root, "//p[@class='warn']"))
    if name == "aborted":
        assert any("was aborted" in text for text in words(root, "//p[@class='warn']"))
    assert markdown_report([run]).startswith(b"# ")


def test_a_summary_has_its_programs_without_backticks() -> None:
    assert words(html.document_fromstring(html_page("run", [Heading("what `make run` runs.")])), "//h1") == [
        "what make run runs."
    ]


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (("invalid", "invalid"), "NO CELL IS VALID, so nothing counts."),
        (("invalid", "failed"), "NO CELL PASSED, so nothing counts."),
        (("passed", "passed"), "ONE CONFIGURATION was measured, so nothing is compared."),
    ],
)
def test_a_page_that_compares_nothing_says_why(tmp_path: Path, outcomes: tuple[str, ...], said: str) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, cells=len(outcomes))
    for outcome in outcomes:
        story.start_cell({"cache": "none"})
        story.measure("web", 10.0)
        story.end_cell(outcome, wall=10.0)
    assert words(parsed(without_timelines(story.end())), "//div[@class='answer']/p")[0] == said


def test_workloads_stand_on_the_clock_of_their_cell(tmp_path: Path) -> None:
    told = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]})
    told.start_cell({"cache": "none"})
    told.execute(20.0, [BUSY] * 400)
    told.ran("web", 1, 0.5, 9.0)
    told.end_cell(wall=20.0)
    course = gathered(told.end()).courses[1]
    assert [(name, since, round(until, 6)) for name, since, until in course.phases] == [("execute", 0.0, 20.0)]
    assert [(name, round(since, 6), round(until, 6)) for name, since, until in course.workloads] == [
        ("web 1", 0.5, 9.5)
    ]
    busy = course.values["disk_util_percent"]
    assert len(busy.values) <= 150
    assert set(busy.values) == {97.0}


def test_a_cell_of_the_host_alone_is_not_called_emulated(tmp_path: Path) -> None:
    captions = words(parsed(gathered(TOLD["points"](tmp_path / "run.sqlite"))), "//figcaption")
    cells = [caption.partition(" over time")[2] for caption in captions if caption.startswith("Cell ")]
    assert [caption.startswith(", under emulation (TCG). execute") for caption in cells] == [False, True, True]
    whole = [caption for caption in captions if not caption.startswith("Cell ")]
    assert whole and all(", partly under emulation (TCG)." in caption for caption in whole)


@pytest.mark.parametrize("emulated", [True, False])
def test_an_emulated_disk_is_drawn_while_workloads_run(emulated: bool, tmp_path: Path) -> None:
    disk = {"disk": {"emulated": True, "profile": "hdd-7200"}} if emulated else {}
    told = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, host={**HOST, **disk})
    told.start_cell({"cache": "none"})
    told.writer.append(PhaseStarted(**told.now(), cell=1, phase="prepare"))
    told.sample(1.0, {**BUSY, "disk_read_bytes_per_second": 1e9})
    told.writer.append(PhaseEnded(**told.now(0), cell=1, phase="prepare", seconds=2.0))
    told.execute(20.0, [{**BUSY, "disk_read_bytes_per_second": 1e7}] * 20)
    told.end_cell(wall=20.0)
    course = gathered(told.end()).courses[1]
    assert max(course.values["disk_read_bytes_per_second"].values) == pytest.approx(1e7 if emulated else 1e9)
    assert course.values["disk_read_bytes_per_second"].seconds[-1] == course.values["cpu_user_percent"].seconds[-1]


def test_several_runs_are_set_against_the_first(tmp_path: Path) -> None:
    runs = [gathered(TOLD["tile"](tmp_path / name / "run.sqlite"), name) for name in ("before", "after")]
    root = parsed(*runs)
    assert words(root, "//h1")[0] == "before against after"
    verdict, first, *_ = words(root, "//div[@class='answer']/p")
    assert verdict.startswith("CANNOT TELL YET: 1 repeat points to no difference between after and before; ")
    place = "cache none, tiles 1"
    assert first.startswith(f"after against before at {place}: total wall clock 120.0 s against 120.0 s; +0.0 %")
    assert markdown_report(runs).startswith(b"# before against after\n")


def test_what_does_not_fit_is_left_out_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gathered(RECORDED)
    monkeypatch.setattr(report_page, "_MOST_TIMELINES", 1)
    text = html_report([whole]).decode()
    assert "Timelines of the first 1 of 2 cells are shown." in text
    size = len(html_report([replace(whole, courses={}, outputs=())]))
    monkeypatch.setattr(page, "MOST_BYTES", size + 20_000)
    text = html_report([whole]).decode()
    assert "No further timeline has room on this page." in text
    assert "More was printed than fits here" in text
    assert len(text) < size + 21_000


def test_a_page_of_many_cells_keeps_its_limit_without_the_tables_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(gathered(RECORDED), courses={}, outputs=())
    text = html_report([whole])
    monkeypatch.setattr(page, "MOST_BYTES", len(text) - 15_000)
    less = html_report([whole])
    assert len(less) <= page.MOST_BYTES and less.count(b"<details>") < text.count(b"<details>")
    assert b"No further tables of cells have room on this page" in less and b"No further tables" not in text


def test_settings_that_all_cells_have_stand_once(tmp_path: Path) -> None:
    told = Story(tmp_path / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=3)
    for repeat, cache in enumerate(("none", "writeback", "none"), start=1):
        guests = {"a": {"vcpus": 2, "cache": cache}, "b": {"vcpus": 1}}
        told.start_cell({"cache": cache}, repeat, settings={"tiles": 1, "cache": cache, "guests": guests})
        told.end_cell(wall=1.0)
    root = parsed(without_timelines(told.end()))
    folds = {words(one, "./summary")[0]: words(one, "./pre")[0] for one in at(root, "//details[pre]")}
    found = {title: json.loads(text) for title, text in folds.items() if title.startswith("Settings")}
    assert found == {
        "Settings of all cells": {"tiles": 1, "guests": {"a": {"vcpus": 2}, "b": {"vcpus": 1}}},
        "Settings of cells 1, 3 besides": {"cache": "none", "guests": {"a": {"cache": "none"}}},
        "Settings of cell 2 besides": {"cache": "writeback", "guests": {"a": {"cache": "writeback"}}},
    }


def test_what_does_not_fit_takes_no_room_from_what_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def page_of(*sizes: int) -> str:
        folds = [Section(f"s{size}", [Text("x" * size)], folded=True, spare=f"no room {size}") for size in sizes]
        return html_page("page", folds).decode()

    monkeypatch.setattr(page, "MOST_BYTES", len(page_of()) + 5_000)
    text = page_of(9_000, 4_000)
    assert "no room 9000" in text and "<summary>S4000</summary>" in text and len(text) <= page.MOST_BYTES


def test_the_command_writes_by_the_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["report", str(RECORDED), "-o", str(tmp_path / "r.md")]) == 0
    assert (tmp_path / "r.md").read_text().startswith("# Four guests that benchmark each other")
    assert command_line(["report", str(RECORDED), "-o", str(tmp_path / "r.pdf")]) == 2
    assert "cannot infer the format from" in capsys.readouterr().err


def test_without_its_library_the_page_is_refused_and_markdown_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("matplotlib", "vmlab.report.page."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert command_line(["report", str(RECORDED), "-o", str(tmp_path / "r.html")]) == 3
    assert "-m pip install 'matplotlib>=3.9'" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
    assert command_line(["report", str(RECORDED), "-o", str(tmp_path / "r.md")]) == 0


def test_several_tiles_have_scores_and_single_ones_have_none(tmp_path: Path) -> None:
    run = without_timelines(TOLD["two-tiles"](tmp_path / "two-tiles" / "run.sqlite"))
    root, text = parsed(run), markdown_report([run]).decode()
    title = capital(TILES_TITLE)
    assert title in words(root, "//h3") and f"\n### {title}\n" in text
    # Two tiles 10 % apart in run time: 1 / 1.2 over 1 / 1.1 of the first tile, which is also what runs alone.
    row = at(root, "//caption[.='from tile to tile, cache none']/..//tr[th='web, 2 tiles']")[0]
    assert words(row, "td") == ["0.96 *", "91.7 *", "0.9981 *", "6.15", "95.7 (tile 2)"]
    assert "| web, 2 tiles | 0.96 \\* | 91.7 \\* | 0.9981 \\* | 6.15 | 95.7 (tile 2) |" in text
    knee = "knee, cache none: cannot tell; tile 2 adds 91.7 %"
    assert any(one.startswith(knee) for one in words(root, f"//h3[.='{title}']/following-sibling::p"))
    assert f"\n- {knee}" in text
    single = gathered(TOLD["tile"](tmp_path / "tile" / "run.sqlite"))
    assert title not in words(parsed(single), "//h3")
    assert "tile to tile" not in markdown_report([single]).decode()


def test_the_tile_index_stands_in_documents_alone(tmp_path: Path) -> None:
    runs = [without_timelines(TOLD["two-tiles"](tmp_path / name / "run.sqlite"), name) for name in ("before", "after")]
    assert compare(each_a_side(runs)).indexed
    assert "tile index" not in html_report(runs).decode() + markdown_report(runs).decode()


def timed_run(path: Path, mixed: bool = False, repeats: int = 7) -> Path:
    """Repeats at two depths of fio for a fixed time, with a target that depth 8 misses; mixed with primes."""
    disk = {"kind": "fio", "params": {"rw": "randread", "time": 2.0, "depth": 8}}
    primes = {"kind": "cpu", "params": {"threads": 1}}
    workloads = {"disk": disk, **({"primes": primes} if mixed else {})}
    table = {"columns": "depth", "rows": "workloads", "baseline": 1}
    said = {
        "workloads": {"disk": {"kind": "fio"}, **({"primes": {"kind": "cpu"}} if mixed else {})},
        "targets": {"disk": {"latency_p99": "200 us"}},
    }
    story = Story(path, "timed", path.parent.name).begin({"depth": [1, 8]}, table, cells=2 * repeats, said=said)
    for repeat in range(1, repeats + 1):
        for depth in (8, 1):
            story.start_cell({"depth": depth}, repeat, settings={"workloads": workloads})
            story.execute(2.0, [BUSY] * 3)
            story.measure("disk", 2.0)
            story.measure("disk", depth * (50e6 + repeat * 1e5), "throughput", "B/s")
            story.measure("disk", depth * 1e-4, "latency_p99", "s")
            if mixed:
                story.measure("primes", 0.5 + 0.01 * repeat)
            story.end_cell(wall=2.3)
    return story.end()


def test_workloads_of_fixed_duration_have_their_throughput_in_every_chart_and_sentence(tmp_path: Path) -> None:
    root = parsed(without_timelines(timed_run(tmp_path / "timed" / "run.sqlite")))
    titles = words(root, "//figcaption")
    assert "disk: throughput over depth, under emulation (TCG)." in titles
    assert not [title for title in titles if "run time" in title or "wall clock" in title]
    missed, verdict, answer, *_ = words(root, "//div[@class='answer']/p")
    assert missed.startswith("Targets missed in 7 of 14 cells") and verdict.startswith(
        "DEPTH 8 IS BETTER THAN DEPTH 1: "
    )
    assert answer.startswith("disk, depth 8 against depth 1: throughput 403.2 ± ")
    assert words(root, "//table")[1].startswith("throughput (MB/s)") and "depth 8" in words(root, "//th")


def test_missed_targets_stand_out_on_the_first_screen_and_have_a_table_below_it(tmp_path: Path) -> None:
    run = without_timelines(timed_run(tmp_path / "timed" / "run.sqlite"))
    root = parsed(run)
    missed = "Targets missed in 7 of 14 cells, most of all disk.latency_p99 800.0 us (at most 200 us)."
    assert words(root, "//div[@class='first']//p[@class='missed']") == [missed]
    (table,) = at(root, "//h2[text()='Targets']/following-sibling::div[1]/table")
    assert words(table, ".//th") == [
        "targets of each tile",
        "depth 1",
        "depth 8",
        "disk.latency_p99 at most 200 us",
    ]
    assert words(table, ".//td") == ["met in 7 of 7 cells: 100.0 us", "missed in 7 of 7 cells: 800.0 us"]
    assert words(table, ".//td[@class='missed']") == ["missed in 7 of 7 cells: 800.0 us"]
    assert "| disk.latency\\_p99 at most 200 us | met in 7 of 7 cells: 100.0 us |" in markdown_report([run]).decode()


def test_groups_of_runs_have_short_names_and_the_answer_leaves_out_a_wall_clock_of_fixed_duration(
    tmp_path: Path,
) -> None:
    names = [f"each-night-{count}" for count in range(1, 5)]
    runs = [without_timelines(timed_run(tmp_path / name / "run.sqlite", mixed=True, repeats=2), name) for name in names]
    parts = [Side.of(run.label, run.document) for run in runs]
    sides = [Side.of_runs(",".join(names[at : at + 2]), parts[at : at + 2]) for at in (0, 2)]
    root = html.document_fromstring(html_report(runs, sides))
    assert words(root, "//h1")[0] == "each-night-1 and 1 more against each-night-3 and 1 more"
    assert words(root, "//p[@class='sub']")[:2] == [
        "each-night-1 and 1 more: each-night-1,each-night-2, baseline",
        "each-night-3 and 1 more: each-night-3,each-night-4, candidate",
    ]
    (first, *_) = at(root, "//div[@class='first']")
    answer = "\n".join(words(first, ".//div[@class='answer']/p"))
    assert "disk throughput 50.1" in answer and "primes 515.0 ± " in answer and "wall clock" not in answer
    assert "each-night-1 and 1 more" in words(root, "//th") and "each-night-1,each-night-2" not in "".join(
        words(root, "//th")
    )
    markdown = markdown_report(runs, sides).decode()
    assert "# each\\-night\\-1 and 1 more against" in markdown or "# each-night-1 and 1 more against" in markdown


def test_a_table_of_mixed_units_has_each_unit_and_says_nothing_of_cells_that_do_not_count(tmp_path: Path) -> None:
    run = without_timelines(timed_run(tmp_path / "timed" / "run.sqlite", mixed=True))
    lines = run_table(run.document, 120).splitlines()
    (head,) = (line for line in lines if line.startswith("run time (s) "))
    assert head.split() == ["run", "time", "(s)", "depth", "1", "depth", "8", "difference"]
    assert any(line.startswith("disk, throughput (MB/s)   50.4 ± ") for line in lines)
    cells = [replace(cell, outcome="invalid") for cell in run.document.cells]
    assert "what bound the cells" not in run_table(replace(run.document, cells=cells))


def test_a_reading_far_from_the_others_of_a_group_has_the_run_that_it_is_of(tmp_path: Path) -> None:
    sides = []
    for side in ("base", "night"):
        parts = []
        for count in range(1, 8):
            name = f"{side}-{count}"
            story = Story(tmp_path / name / "run.sqlite", "nightly", name).begin({"cache": ["none"]}, cells=1)
            story.cell({"cache": "none"}, {"web": 90.0 if name == "night-3" else 10.0 + count / 10}, wall=100.0)
            parts.append(Side.of(name, gathered(story.end()).document))
        sides.append(parts)
    groups = [Side.of_runs(",".join(one.label for one in parts), parts) for parts in sides]
    text = " ".join(comparison_table(compare(groups), 200).split())
    assert "web (night-1 and 6 more), run night-3: 90.0 s" in text
    alone = [groups[0], sides[1][0]]
    assert "a side has only one run that counts" in comparison_table(compare(alone), 200)
    assert "one run a side" not in comparison_table(compare(alone), 200)
