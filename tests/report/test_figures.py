"""A figure is written alike wherever it stands: in text, on a terminal, in Markdown, on a page and on the screen."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from lxml import html
from rich.style import Style

from tests.store.stories import Story
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.figures.figure import Figure
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import Spread
from vmlab.cli.output import write_figures
from vmlab.report.comparison_text import compared_rows, comparison_table
from vmlab.report.figures import doubted, figure_text, mark_words, spread_text, struck_parts, value_text
from vmlab.report.page.content import COURSES
from vmlab.report.page.gathered import Gathered, gather
from vmlab.report.page.report_page import html_report, markdown_report
from vmlab.report.run.cell_text import cell_text
from vmlab.store.reader import RunReader
from vmlab.system.text_width import UNCUT
from vmlab.tui.state.compared import compared_sides
from vmlab.tui.widgets.glyphs import tones_on
from vmlab.tui.widgets.side_table import SideTable

RUNS = {"before": ("passed", 1.0), "after": ("invalid", 2.0)}
FIGURES = {
    "job (s)": ("12.0", "24.0 (invalid)"),
    "job throughput (MB/s)": ("150.0", "300.0 (invalid)"),
    "job bytes (MiB)": ("64.0", "128.0 (invalid)"),
    "job latency (ms)": ("1.25", "2.50 (invalid)"),
    "total wall clock (s)": ("20.0", "40.0 (invalid)"),
}
"""Of each row what is written of both sides."""
NUMBERS = {figure.removesuffix(" (invalid)") for _, figure in FIGURES.values()}


def _told(path: Path, outcome: str, factor: float) -> Path:
    story = Story(path / "run.sqlite", run=path.name).begin({"cache": ["none"]}, cells=1)
    story.start_cell({"cache": "none"})
    story.measure("job", 12.0 * factor)
    story.measure("job", 1.5e8 * factor, "throughput", "B/s")
    story.measure("job", 2.0**26 * factor, "bytes", "B")
    story.measure("job", 0.00125 * factor, "latency")
    story.end_cell(outcome, [] if outcome == "passed" else ["the host did something else"], wall=20.0 * factor)
    return story.end()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Gathered]:
    """A run that passed and one whose only cell is invalid, with figures in each unit that people have another for."""
    found = []
    for label, (outcome, factor) in RUNS.items():
        with RunReader(_told(tmp_path_factory.mktemp("runs") / label, outcome, factor)) as reader:
            found.append(gather(label, reader, COURSES))
    return found


@pytest.fixture(scope="module")
def sides(runs: list[Gathered]) -> list[Side]:
    return [Side.of(run.label, run.document) for run in runs]


def test_text_markdown_page_and_screen_have_the_same_rows(runs: list[Gathered], sides: list[Side]) -> None:
    rows = compared_rows(compare(sides))
    assert {row.label: row.figures for row in rows} == FIGURES
    wanted = list(FIGURES.items())

    text = comparison_table(compare(sides), UNCUT).split("\n\n")[1].splitlines()
    parts = [re.split(r" {2,}", line) for line in text if not line.startswith(("metric", "cache", " "))]
    assert [(label, (first, second)) for label, first, second, *_ in parts] == wanted

    screen = compared_sides(sides, every_metric=True).rows
    shown = [(row.label, row.entries) for row in screen if row.entries]
    assert [(label, (one.text, other.text)) for label, (one, other) in shown] == wanted

    lines = markdown_report(runs).decode().split("| metric")[1].split("\n\n")[0].splitlines()[2:]
    cells = [line[2:-2].replace("\\", "").replace("~~", "").split(" | ") for line in lines]
    assert [(name, (first, second)) for name, first, second, _ in cells] == wanted

    page = cast(Any, html.document_fromstring(html_report(runs)))
    found = [[one.text_content() for one in row.xpath("*")] for row in page.xpath("(//table)[1]/tbody/tr")]
    assert [(name, (first, second)) for name, first, second, _ in found] == wanted
    assert {one.text for one in page.xpath("//s")} >= NUMBERS
    assert "| ~~300.0~~ (invalid)" in markdown_report(runs).decode()


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "kind", "struck"), [(Terminal, "xterm", 5), (Terminal, "dumb", 0), (io.StringIO, "xterm", 0)]
)
def test_a_terminal_strikes_out_figures_of_invalid_cells(
    stream: type[io.StringIO], kind: str, struck: int, sides: list[Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = comparison_table(compare(sides))
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(sys, "stdout", out := stream())
    write_figures(text)
    marked = re.findall("\x1b\\[9m(.*?)\x1b\\[29m", out.getvalue())
    assert (len(marked), set(marked)) == (struck, NUMBERS if struck else set())
    assert re.sub("\x1b\\[2?9m", "", out.getvalue()) == text
    assert text.count("(invalid)") == len(FIGURES)


def test_the_screen_strikes_them_out(sides: list[Side]) -> None:
    table = SideTable()
    table.show(compared_sides(sides, every_metric=True))
    pieces = [piece for line in table.lines(100, 40) for piece in line]
    assert {text.strip() for text, tone in pieces if tone == "struck"} == NUMBERS
    tones = tones_on(Style(), {})
    assert [name for name, style in tones.items() if style.strike] == ["struck"]


def test_the_page_of_a_cell_has_the_same_units(runs: list[Gathered]) -> None:
    document: RunDocument = runs[1].document
    lines = [line.split() for line in cell_text(document, document.cells[0]).splitlines()]
    assert ["job", "1", "throughput", "300.0", "(invalid)", "MB/s"] in lines
    assert ["1", "bytes", "128.0", "(invalid)", "MiB"] in [line[-5:] for line in lines]


@pytest.mark.parametrize(
    ("text", "struck"),
    [
        ("web 12.0 ± 0.50 s (invalid) against 9.00 s", ["12.0 ± 0.50 s"]),
        ("-0.5 (invalid), 1.2e-05 ± 3e-06 (invalid)", ["-0.5", "1.2e-05 ± 3e-06"]),
        ("web (invalid), v2.0 (invalid), 12.0 (valid), 3.00 !", []),
    ],
)
def test_only_figures_are_struck(text: str, struck: list[str]) -> None:
    parts = struck_parts(text)
    assert "".join(parts) == text
    assert parts[1::2] == struck


def test_the_pictures_have_the_figures_of_the_tables(runs: list[Gathered]) -> None:
    page = cast(Any, html.document_fromstring(html_report(runs)))
    drawn = [text.text_content().strip() for text in page.xpath("(//figure)[1]//*[local-name()='text']")]
    assert {"12.0", "24.0 (invalid)", "20.0", "40.0 (invalid)"} <= set(drawn)


def test_a_figure_is_in_the_unit_for_people() -> None:
    half = Figure("passed", Spread(2.5e8, 1e6, 8))
    assert figure_text(half, "B/s") == "250.0 ± 1.0"
    assert figure_text(half, "B/s", named=True) == "250.0 ± 1.0 MB/s"
    assert figure_text(Figure("passed", Spread(0.5, None, 1)), "1") == "0.5000"
    assert figure_text(Figure("failed"), "B/s", named=True) == "failed"
    assert figure_text(Figure("passed", Spread(1.0, None, 1), left_out=1), "s", named=True) == "1.00 s !"
    assert [value_text(value, "1") for value in (600.0, 0.25, None)] == ["600", "0.25", "-"]


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (5.16, 0.0865, "5.16 ± 0.09"),
        (1234.4, 5.6, "1234 ± 6"),
        (12.3, 4.56, "12.3 ± 4.6"),
        (5.16, 0.003, "5.160 ± 0.003"),
        (0.0123, 0.00045, "0.0123 ± 0.0004"),
        (0.0123, 5.2, "0.01 ± 5.20"),
        (5.16, 1e-9, "5.16 ± 0.00"),
        (1.2e-7, 3e-9, "1.2e-07 ± 3e-09"),
    ],
)
def test_an_error_is_rounded_with_its_value(mean: float, half: float, text: str) -> None:
    assert spread_text(mean, half) == text


@pytest.mark.parametrize(
    "figure",
    [
        Figure("passed", Spread(1.0, None, 1), left_out=1),
        Figure("passed", Spread(1.0, None, 1)),
        Figure("invalid", Spread(1.0, None, 1)),
        Figure("invalid", Spread(1.0, None, 1), left_out=1),
        Figure("passed", Spread(1.0, None, 1), left_out=1, undelivered=(cast(Any, None),)),
    ],
)
def test_what_the_mark_means_is_said_where_it_stands_and_nowhere_else(figure: Figure) -> None:
    assert bool(list(mark_words([figure]))) is doubted("1.00", figure).endswith("!")
