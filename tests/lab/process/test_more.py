"""A run that has ended and is to have more: its invalid and failed cells once more, further repeats, whole blocks in a
time.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from typing import Any

import pytest

from tests.lab.faked import CELL_SECONDS, PROBE, Home, until
from tests.lab.programs.faked_runner import CELL_FILE, ENDS

SCENARIO = PROBE + "repeats: 2\n"


def ran(home: Home, *words: str, scenario: str = SCENARIO, **ends: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of a run whose cells of these numbers (``c2``) end so."""
    file = home.folder / "probe.yaml"
    file.write_text(scenario)
    said = json.dumps({number[1:]: end for number, end in ends.items()})
    code, output, lines = home.run("run", str(file), "--json", *words, **{CELL_SECONDS: "0.05", ENDS: said})
    assert output, lines
    return code, json.loads(output)


def resumed(home: Home, document: dict[str, Any], *words: str, **said: str) -> tuple[int, str, str]:
    return home.run("resume", document["run"]["id"], *words, **{CELL_SECONDS: "0.05", **said})


def attempts(document: dict[str, Any]) -> list[tuple[int, str, int, int | None]]:
    """Number, outcome, attempt and successor of each cell, in the order in which they ran."""
    return [
        (cell["cell"], cell["outcome"], cell.get("attempt", 1), cell.get("replaced_by")) for cell in document["cells"]
    ]


def test_a_run_with_disturbed_cells_ends_with_0_and_has_both_attempts(home: Home) -> None:
    code, document = ran(home, c1="disturbed", c3="disturbed")
    assert (code, document["run"]["outcome"], document["run"]["cells_planned"]) == (0, "passed", 4)
    assert attempts(document) == [
        (1, "invalid", 1, 5),
        (2, "passed", 1, None),
        (5, "passed", 2, None),
        (3, "invalid", 1, 6),
        (4, "passed", 1, None),
        (6, "passed", 2, None),
    ]
    listed = json.loads(home.run("ls", "--json")[1])["runs"][0]
    assert (listed["outcome"], listed["cells_done"], listed["cells_planned"]) == ("passed", 4, 4)


def test_one_that_is_disturbed_throughout_ends_with_4_and_the_reason(home: Home) -> None:
    code, document = ran(home, **{f"c{number}": "disturbed" for number in range(1, 7)})
    assert (code, document["run"]["outcome"], document["run"]["exit_code"]) == (4, "invalid", 4)
    reason = "cache writeback: no valid repeat, cache none: no valid repeat after 2 further attempts"
    assert sorted(document["run"]["reason"].replace(" after", ", after").split(", ")) == sorted(
        reason.replace(" after", ", after").split(", ")
    )


def test_failed_cells_are_measured_again_only_where_it_is_asked_for(home: Home) -> None:
    assert ran(home, c2="failed")[0] == 1
    code, document = ran(home, "--again-failed", c2="failed")
    assert code == 0 and [outcome for _, outcome, *_ in attempts(document)].count("failed") == 1
    code, document = ran(home, "--again", "0", c2="disturbed")
    assert (code, document["run"]["outcome"], len(document["cells"])) == (4, "incomplete", 4)


def test_invalid_and_failed_cells_of_a_run_that_has_ended_are_measured_once_more(home: Home) -> None:
    code, document = ran(home, c2="failed", c3="invalid")
    assert code == 1
    code, output, words = resumed(home, document, "--invalid", "--json")
    assert code == 0, words
    document = json.loads(output)
    assert attempts(document)[4:] == [(5, "passed", 2, None), (6, "passed", 2, None)]
    assert [one[3] for one in attempts(document)[:4]] == [None, 5, 6, None]
    assert any("2 cells measured again" in one for one in document["run"]["notices"])
    code, _, words = resumed(home, document, "--invalid")
    assert (code, "has no cell that is invalid or has failed" in words) == (2, True), words


def test_a_warm_up_comes_before_what_is_measured_once_more(home: Home) -> None:
    _, document = ran(home, scenario=SCENARIO + "warm_up: true\n", c3="failed")
    code, output, words = resumed(home, document, "--invalid", "--json")
    assert code == 0, words
    assert [(cell["cell"], cell["repeat"]) for cell in json.loads(output)["cells"]][-2:] == [(1, 0), (6, 1)]


def test_repeats_are_added_with_new_orders_and_judged_at_half_the_level(home: Home) -> None:
    _, document = ran(home, c1="disturbed")
    code, output, words = resumed(home, document, "--repeats", "+3", "--json")
    assert code == 0, words
    document = json.loads(output)
    assert [one["repeats"] for one in document["run"]["extended"]] == [5]
    assert document["run"]["cells_planned"] == 10
    assert [cell["cell"] for cell in document["cells"]] == [1, 2, 5, 3, 4, *range(6, 12)]
    assert [cell["repeat"] for cell in document["cells"]][5:] == [3, 3, 4, 4, 5, 5]
    code, output, _ = resumed(home, document, "--repeats", "+1", "--json")
    assert [one["repeats"] for one in json.loads(output)["run"]["extended"]] == [5, 6]


def test_what_is_killed_in_an_added_block_goes_on_and_counts_as_added_once(home: Home) -> None:
    _, document = ran(home)
    run, ending = document["run"]["id"], home.folder / "cells end"
    home.run("resume", run, "--repeats", "+2", "--detach", **{CELL_SECONDS: "0.05", CELL_FILE: str(ending)})
    until(lambda: len(home.events("CellStarted")) > 4, "a cell of the added block")
    for name in ("runner_pid", "launcher_pid"):
        with suppress(ProcessLookupError):
            os.kill(home.pid(name), signal.SIGKILL)
    until(lambda: home.run("attach", run)[0] == 1, "its end")
    code, _, words = resumed(home, document, "--repeats", "+1")
    assert (code, "has cells left to measure" in words) == (2, True), words
    code, output, words = resumed(home, document, "--json")
    assert code == 0, words
    document = json.loads(output)
    assert [one["repeats"] for one in document["run"]["extended"]] == [4]
    assert [cell["outcome"] for cell in document["cells"]] == ["passed"] * 8


@pytest.mark.parametrize(
    ("scenario", "words", "said"),
    [
        (SCENARIO, ("--repeats", "4"), "is no number of further repeats, such as +4"),
        (SCENARIO, ("--repeats", "+0"), "is no number of further repeats, such as +4"),
        (SCENARIO.replace("repeats: 2", "until: {time: 1 h, at_most: 2}"), ("--repeats", "+1"), "ended by its `until`"),
    ],
)
def test_what_cannot_be_added_is_one_line(home: Home, scenario: str, words: tuple[str, ...], said: str) -> None:
    _, document = ran(home, scenario=scenario)
    code, _, lines = resumed(home, document, *words)
    assert (code, said in lines) == (2, True), lines


def test_whole_blocks_run_for_as_long_as_they_fit(home: Home) -> None:
    code, document = ran(home, "--for", "5 s")
    repeats = {cell["repeat"] for cell in document["cells"]}
    assert len(document["cells"]) == 2 * len(repeats) == document["run"]["cells_planned"]
    assert document["run"]["until"]["seconds"] == 5 and document["run"]["until"]["repeats"] == len(repeats)
    short = "takes" in document["run"]["reason"]
    assert (code, document["run"]["outcome"]) == ((4, "incomplete") if short else (0, "passed"))


def test_a_time_that_is_too_short_for_an_answer_ends_with_4(home: Home) -> None:
    code, document = ran(home, "--for", "100 ms")
    assert (code, document["run"]["outcome"]) == (4, "incomplete")
    assert document["run"]["reason"].startswith("1 repeat fits into ") and "takes" in document["run"]["reason"]
