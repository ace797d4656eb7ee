"""A lever that was not delivered: no verdict anywhere, and both numbers beside the struck figure."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import junitparser
import pytest

from tests.store.stories import Story
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.difference import Verdict
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.claims import answer_claim
from vmlab.analysis.shape import RunDocument
from vmlab.cli.main import command_line
from vmlab.model.places import runs_folder
from vmlab.model.scenarios.reference import Claim
from vmlab.report.headline import explanation, headline
from vmlab.store.reader import RunReader
from vmlab.tui.state.compared import compared_sides
from vmlab.tui.widgets.tables.result_board import struck_pieces
from vmlab.workloads.pace import DELIVERED

RUN = "20261121-143000-tile-aaaa"
BOTH = "web pace 12/s to 14/s of 20/s configured (bound 5 %)"
SETTINGS = {
    "workloads": {
        "web": {"kind": "http", "params": {"pace": 20.0, "requests": 200}},
        "db": {"kind": "oltp", "params": {}},
    }
}


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight repeats of two cache modes, of which the second began 60 to 70 % of the requests that were due."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    story = Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]}, cells=16)
    for repeat in range(1, 9):
        for cache, web, db, percent in (("none", 10.0, 6.0, 99.0), ("writeback", 5.0, 3.0, 60.0 + 10 * (repeat % 2))):
            story.start_cell({"cache": cache}, repeat, settings=SETTINGS)
            story.execute(web)
            story.measure("web", web + repeat / 100)
            story.measure("web", percent, DELIVERED, "%")
            story.measure("db", db + repeat / 100)
            story.end_cell(wall=web)
    return story.end()


def document(path: Path) -> RunDocument:
    with RunReader(path) as reader:
        return run_document(reader)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert command_line(list(words)) == code
    return capsys.readouterr().out


def test_only_what_the_lever_concerns_has_no_verdict(run: Path) -> None:
    found = compare(sides_by_axis(document(run)))
    verdicts = {(row.workload, row.metric): row.differences[0] for row in found.rows}
    assert verdicts["db", "run_time"].verdict == Verdict.PROVEN
    for figure in (("web", "run_time"), ("web", DELIVERED), ("total wall clock", "wall_seconds")):
        one = verdicts[figure]
        assert (one.verdict, one.because, one.percent, one.interval) == (Verdict.NOT_DELIVERED, BOTH, None, None)
        assert one.p is None and one.better is None
    (overall,) = found.overall
    assert overall.differences[0].verdict == Verdict.NOT_DELIVERED
    # One figure alone is asked about where the others have nothing to be tested.
    assert verdicts["db", "run_time"].family == 1


def test_show_strikes_the_figure_and_has_both_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert "(not delivered) not delivered" in " ".join(said(capsys, "show", RUN, "--quiet").split())
    assert "(not delivered)" in said(capsys, "show", RUN)
    text = " ".join(said(capsys, "show", RUN, "--explain").split())
    assert f"not delivered, so without a verdict: web, total wall clock: {BOTH}" in text
    assert "web: pace 20/s 12/s to 19.8/s 5 % NO, 8 of 16" in text
    assert "! cells 2, 4, 6, 8, 10, 12, 14 and 16: not delivered: web pace 12 to 14/s of 20/s configured" in text
    cell = said(capsys, "show", f"{RUN}:2")
    assert "web, pace: set 20/s, got 14/s (bound 5 %): NOT DELIVERED" in cell
    body = json.loads(said(capsys, "show", RUN, "--json"))
    assert body["cells"][1]["delivered"][0] == {
        "lever": "pace",
        "guest": "",
        "workload": "web",
        "tile": 1,
        "configured": 20.0,
        "got": 14.0,
        "unit": "1/s",
        "within_percent": 5.0,
        "cell_within_percent": 5.0,
        "delivered": False,
        "because": "",
    }
    (table,) = body["tables"]
    (web,) = (row["entries"] for row in table["rows"] if row["head"].get("workloads") == "web")
    assert web[1]["difference"]["verdict"] == "not delivered"
    assert web[1]["undelivered"][0]["got"] == 14.0 and "undelivered" not in web[0]


def test_a_gate_is_undecided_and_junit_skips_it_with_the_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["compare", RUN, "--fail-if", "web > +20 %", "--fail-if", "web > 20 s", "--junit", "gate.xml"]
    text = " ".join(said(capsys, *asked, code=4).split())
    assert text.count(f"cannot tell: not delivered: {BOTH}") == 2
    suite = next(iter(junitparser.JUnitXml.fromfile(str(tmp_path / "gate.xml"))))
    cases: list[Any] = list(suite)
    assert [type(case.result[0]) for case in cases] == [junitparser.Skipped] * 2
    assert all(BOTH in case.result[0].message for case in cases)
    said(capsys, "compare", RUN, "--fail-if", "web > +20 %", "--strict", code=1)
    said(capsys, "compare", RUN, "--fail-if", "web > +20 %", "--lenient")
    said(capsys, "compare", RUN, "--fail-if", "db > +20 %")


def test_sentences_say_that_it_was_not_delivered(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(sides_by_axis(document(run)))
    assert headline(found, ("wall_seconds",)) == f"cache writeback: NOT DELIVERED: {BOTH}, under emulation (TCG)"
    (text,) = explanation(found)
    assert f"No verdict on web, total wall clock, as what was set was not delivered: {BOTH}." in text
    assert "better for db" in text
    assert "not delivered" in said(capsys, "compare", RUN)
    assert "configured" in said(capsys, "compare", RUN, "--explain")


def test_reports_strike_it_in_html_and_markdown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, mark, end in (("a.html", "<s>", "</s>"), ("a.md", "~~", "~~")):
        said(capsys, "report", RUN, "-o", name)
        struck = f"{mark}5.04 ± 0.02{end} (not delivered)"
        text = (tmp_path / name).read_text()
        assert struck in text
        assert "pace 12/s to 14/s of 20/s configured" in text


def test_the_console_compares_and_lists_it_without_a_verdict(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = compared_sides(sides_by_axis(document(run)))
    assert "(not delivered: web, total wall clock)" in shown.sentence and shown.repeats is None
    web = next(row for row in shown.rows if row.label.startswith("web"))
    assert (web.entries[1].difference, web.entries[1].tone, web.entries[1].counts) == ("not delivered", "quiet", False)
    line = next(line for line in said(capsys, "show", RUN, "--quiet").splitlines() if line.startswith("web"))
    assert [part.strip() for part, tone in struck_pieces(line, "plain") if tone == "struck"] == ["5.04 ± 0.02"]


def test_a_claim_on_it_is_not_delivered_whatever_its_other_comparisons_say(run: Path) -> None:
    none, writeback = {"cache": "none"}, {"cache": "writeback"}
    claims = (
        {"less": [writeback, none], "each": {"workloads": ["db", "web"]}},
        {"greater": [{**writeback, "workloads": "db"}, {**none, "workloads": "db"}]},
        {"at_most": [{**writeback, "workloads": "web"}], "value": "20", "unit": "s"},
    )
    answers = [answer_claim(document(run), Claim.model_validate({"say": "so", **claim})) for claim in claims]
    assert [one.answer for one in answers] == ["not delivered", "not", "not delivered"]
    assert answers[0].because[1] == BOTH and answers[0].points_to is None
    assert not answers[0].open and not answers[0].too_few


def test_exports_say_it_and_benchstat_has_no_such_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said(capsys, "export", RUN, "-o", "a.csv")
    rows = [line for line in (tmp_path / "a.csv").read_text().splitlines() if ",writeback," in line]
    assert sum("pace 14/s of 20/s configured" in row for row in rows) == 4 * 3
    assert all("configured" not in row for row in rows if ",db," in row)
    said(capsys, "export", RUN, "-o", "a.bench")
    lines = (tmp_path / "a.bench").read_text().splitlines()
    assert sum("values are left out: not delivered: web pace" in line for line in lines) == 8
    assert not any("BenchmarkWeb" in line and "cache=writeback" in line for line in lines)
    assert sum("BenchmarkDb" in line and "cache=writeback" in line for line in lines) == 8


def test_the_archive_of_cpu_priority_got_its_shares_on_average(tmp_path: Path) -> None:
    """48 cells, of which those with several threads a guest competed, and got 0.646 to 0.702 of 0.667."""
    archive = Path(__file__).parents[2] / "docs/evidence/experiments/claims/cpu-priority.vmlab"
    with zipfile.ZipFile(archive) as packed:
        packed.extract("run.sqlite", tmp_path)
    found = document(tmp_path / "run.sqlite")
    shares = {
        (cell.axes["threads"], one.delivered)
        for cell in found.cells
        for one in cell.delivered
        if one.lever == "cpu_shares" and one.guest == "pr100"
    }
    assert shares == {(1, None), (4, True), (6, True)}
    got = [one.got for cell in found.cells for one in cell.delivered if one.delivered]
    assert any(abs(one / (1 / 3) - 1) > 0.1 for one in got if isinstance(one, float) and one < 0.5)
    verdicts = {one.difference.verdict for table in found.tables for *_, one in table.each() if one.difference}
    assert Verdict.NOT_DELIVERED not in verdicts
