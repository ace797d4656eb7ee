"""A run and a comparison on one screen: the answer first, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.stores import ALONE, unpacked
from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.cli.main import command_line
from vmlab.model.run import OF_HOST
from vmlab.report.run.mind_text import first_clauses
from vmlab.report.run.run_page import tables_alone
from vmlab.report.run.run_screen import run_screen
from vmlab.report.run.run_verdict import Found, verdict_sentence
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run
from vmlab.system.text_width import WIDTH

_SCREEN = 45
"""Lines beside the tables, which are as long as a scenario has them."""
_RUNS = [name for name in ALONE if not name.startswith("recording")]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def document(name: str) -> RunDocument:
    """A recorded run."""
    (run,) = unpacked(name)
    with RunReader(resolve_run(run)) as reader:
        return run_document(reader)


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("name", _RUNS)
def test_a_run_is_one_screen_of_80_columns(name: str) -> None:
    known = document(name)
    assert known.run.size != OF_HOST
    lines = run_screen(known).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) - len(tables_alone(known).splitlines()) <= _SCREEN
    told = [line for line in lines if line.startswith(("Mind", "Why"))]
    assert len({*told}) == len(told)


@pytest.mark.usefixtures("state")
def test_a_pipe_gets_the_same_and_explain_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    known = document("cache-modes")
    for words in ((), ("--explain",), ("--quiet",)):
        assert command_line(["show", known.run.id, *words]) == 0
    screen, explained, table = _parts(capsys.readouterr().out)
    assert screen == run_screen(known, known.run.id)
    assert [text for text in known.run.notices if text not in explained] == []
    assert table.startswith("run time (s)") and "host" not in table and table in explained
    assert screen.index("CANNOT TELL YET") < screen.index("run time (s)") < screen.index("Why") < screen.index("host,")


def _parts(printed: str) -> tuple[str, str, str]:
    """What was printed by three commands: the second begins with the scenario, the third with its table."""
    second = printed.index("cache-modes · ")
    third = printed.rindex("run time (s)")
    return printed[:second], printed[second:third], printed[third:]


def found(verdict: Verdict, percent: float | None, better: bool | None = None, name: str = "web") -> Found:
    """A difference of run times."""
    readings = 1 if verdict == Verdict.ONE_EACH else 8
    one = Difference(verdict, percent=percent, better=better, more_is_better=False, readings=readings, needed=7)
    return Found(name, "s", one)


PROVEN, OPEN, ONE = Verdict.PROVEN, Verdict.NOT_PROVEN, Verdict.ONE_EACH


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        (
            [found(PROVEN, -50.0, True), found(PROVEN, -20.0, True, "mail")],
            "WRITEBACK IS FASTER THAN NONE: proven for all 2 metrics.",
        ),
        (
            [found(PROVEN, -50.0, True), found(OPEN, -1.0, None, "mail")],
            "WRITEBACK IS FASTER THAN NONE: proven for web; not proven for mail.",
        ),
        (
            [found(PROVEN, -50.0, True), found(PROVEN, 9.0, False, "mail")],
            "WRITEBACK AGAINST NONE IS FASTER for web AND SLOWER for mail: proven.",
        ),
        ([found(OPEN, -1.0)], "NO DIFFERENCE PROVEN between writeback and none, in 1 metric: 8 repeats."),
        (
            [found(ONE, -9.0), found(ONE, -1.0, None, "mail")],
            "CANNOT TELL YET: 1 repeat points to writeback being faster than none, in all 2 metrics; "
            "a proof takes 7 repeats.",
        ),
        (
            [found(ONE, -9.0), found(ONE, 1.0, None, "mail")],
            "CANNOT TELL YET: 1 repeat points both ways, as writeback is faster than none in 1 and slower in 1 of 2 "
            "metrics; a proof takes 7 repeats.",
        ),
        (
            [found(Verdict.NOT_DELIVERED, None)],
            "writeback against none: No verdict on 1 metric, as what was set was not delivered.",
        ),
        ([found(Verdict.NOT_COMPARED, None)], ""),
    ],
)
def test_the_verdict_says_what_is_proven_and_what_would_prove_it(differences: list[Found], said: str) -> None:
    assert verdict_sentence("writeback", "none", differences) == said


def test_a_caveat_ends_with_a_clause() -> None:
    text = "the lab leaves 2.35 GiB free, and the lab's guests together have half the usual CPU weight"
    assert first_clauses(text, 60) == "the lab leaves 2.35 GiB free"
    assert first_clauses(text, 100) == text
    assert first_clauses("a" * 90, 60).endswith("…")
