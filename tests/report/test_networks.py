"""What networks carried, in words: on a cell's own page, in the report and in the log."""

from __future__ import annotations

from pathlib import Path

from tests.report.test_page import gathered
from tests.store.stories import Story
from vmlab.model.cell_event import NetworkProved
from vmlab.model.results import NetworkProof
from vmlab.report.event_words import event_sentence
from vmlab.report.page.report_page import html_report
from vmlab.report.run.cell_text import cell_text

TUNNEL = "tunnel: 9 B carried, NOT as it must be (at least 10 B)"
LIMIT = "limit of t1-far, to it: 9 B carried, as it must be (at most 1 KiB)"
RULES = "translated address of t1-far, from it: 9 B carried, as it must be (at least 1 B)"
BOTH = "limit of t1-far, both ways: 9 B carried, as it must be (at least 9 B)"


def test_every_view_has_the_same_sentence(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, {"columns": "cache", "rows": "workloads"})
    story.start_cell({"cache": "none"})
    story.carry("tunnel", 9, least=10)
    story.carry("limit", 9, most=1024, guest="t1-far", direction="to")
    story.carry("limit", 9, least=9, guest="t1-far")
    story.carry("nat", 9, least=1, guest="t1-far", direction="from")
    story.end_cell()
    run = gathered(story.end())
    text = cell_text(run.document, run.document.cells[0])
    page = html_report([run]).decode()
    for words in (TUNNEL, LIMIT, BOTH, RULES):
        assert words in text
        assert words in page


def test_the_log_has_what_does_not_agree() -> None:
    for carried, level in ((9, "error"), (10, None)):
        proof = NetworkProof.of("tunnel", "", "both", carried, 10, None)
        event = NetworkProved(wall=0.0, mono=0.0, cell=3, proof=proof)
        sentence = event_sentence(event)
        assert (sentence and sentence.level) == level
        assert sentence is None or sentence.text == f"cell 3: {TUNNEL}"
