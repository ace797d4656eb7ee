"""One chart of a comparison, in a file of its own."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from lxml import etree

import vmlab
from tests.golden.stores import unpacked
from tests.store.stories import Story
from tests.tui.conftest import RECORDED
from vmlab.cli.main import command_line
from vmlab.report.page.theme import GROUND, INK, LINE, MUTED, SERIES


def words_of(file: Path) -> list[str]:
    return ["".join(map(str, one.itertext())).strip() for one in etree.parse(str(file)).iter("{*}text")]


def test_the_chart_has_the_figures_of_its_table_in_colours_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "c.SVG"
    assert command_line(["report", *unpacked("repeats"), "--chart", str(file), "--figure", "latency_p95"]) == 0
    words = words_of(file)
    assert {"web", "mail", "database", "cache none", "cache writeback"} <= {*words}
    assert any(word.startswith("latency p95") for word in words)
    text = file.read_text()
    assert not any(color in text for color in (GROUND, INK, LINE, MUTED, *SERIES))
    assert "#ffffff" in text and "var(" not in text


def test_a_chart_says_how_its_figures_came_about(tmp_path: Path) -> None:
    file = tmp_path / "c.svg"
    assert command_line(["report", *unpacked("cache-modes"), "--chart", str(file)]) == 0
    title = " ".join(words_of(file))
    assert "under emulation (TCG)" in title and "emulated disk" in title


def test_a_picture_in_pixels(tmp_path: Path) -> None:
    file = tmp_path / "c.png"
    vmlab.chart_runs(*unpacked("repeats"), output=file, figure="mail")
    head = file.read_bytes()[:24]
    assert head.startswith(b"\x89PNG") and struct.unpack(">II", head[16:])[0] == 1000


def test_a_page_has_its_own_colours_after_a_picture(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert command_line(["report", str(RECORDED), "--chart", str(tmp_path / "c.png"), "-o", str(page)]) == 0
    assert (tmp_path / "c.png").exists()
    first = page.read_bytes()
    assert command_line(["report", str(RECORDED), "-o", str(page)]) == 0
    assert page.read_bytes() == first


def test_a_hostile_name_is_text(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"setup": ["$a$<b>\x1b[2J", "c"]})
    for setup in ("$a$<b>\x1b[2J", "c"):
        story.cell({"setup": setup}, {"web": 2.0}, wall=3.0)
    file = tmp_path / "c.svg"
    story.end()
    assert command_line(["report", str(tmp_path / "run.sqlite"), "--chart", str(file)]) == 0
    assert any(r"$a$<b>\x1b[2J" in word for word in words_of(file))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--chart", "c.gif"], "a chart has no format '.gif'; name a file svg or png"),
        (["--chart", "c.svg", "--figure", "nope"], "no figure is called 'nope'; choose one by --figure: run_time, "),
        (["--figure", "web", "-o", "r.md"], "--figure is for --chart"),
        ([], "Missing option '-o' / '--output'"),
    ],
)
def test_what_names_no_chart_is_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line(["report", *unpacked("repeats"), *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
    assert not list(tmp_path.glob("[cr].*"))


def test_of_several_charts_one_is_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = ["report", *unpacked("claims"), "--chart", str(tmp_path / "c.svg")]
    assert command_line(chart) == 2
    assert "there are 2 charts; choose one by --figure: iops, throughput" in capsys.readouterr().err
    assert command_line([*chart, "--figure", "iops"]) == 0
