"""The pages on statistics and JSON against the code: keys, verdicts, and every figure that they print."""

from __future__ import annotations

import re
from pathlib import Path

from vmlab.analysis.comparison.difference import NO_DIFFERENCE, Verdict
from vmlab.analysis.comparison.gate import Answer, Condition, State
from vmlab.analysis.statistics.sample_size import detectable_percent, readings_needed
from vmlab.analysis.tiles.tiles_carried import Carried, ClimbEnd
from vmlab.model.jsonable import jsonable
from vmlab.report.run.tiles_text import Ascent, Stop, scale_document
from vmlab.workloads.target_limits import Target

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation" / "statistics.md").read_text()


def _table(text: str, first: str) -> list[list[str]]:
    """The rows of the table whose heading begins with `first`, its heading included, without the line below it."""
    lines = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [rows[0], *rows[2:]]


def test_the_page_on_json_has_every_key_of_a_difference_and_no_other() -> None:
    text = (DOCS / "reference" / "json.md").read_text()
    section = text[text.index("## `vmlab.compare/2`") :]
    rows = _table(section, "key")[1:]
    named = [key for row in rows for key in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(jsonable(NO_DIFFERENCE))
    assert all(f"`{verdict}`" in rows[0][1] for verdict in Verdict if verdict != Verdict.SAME)


def test_the_page_has_every_verdict() -> None:
    """By the word that the program prints, and where the promised JSON documents have another, by that as well."""
    said = [row[0] for row in _table(PAGE, "verdict")[1:]]
    assert said == [
        verdict.words if verdict.words == verdict else f"{verdict.words}, in JSON `{verdict}`" for verdict in Verdict
    ]


def test_the_page_has_the_repeats_that_are_needed() -> None:
    head, needed = _table(PAGE, "metrics")
    assert len(head) > 2
    for figures, repeats in zip(head[1:], needed[1:], strict=True):
        ends = [int(number) for number in figures.split(" to ")]
        assert {readings_needed(figures) for figures in range(ends[0], ends[-1] + 1)} == {int(repeats)}
    words = re.search(
        r"Groups of runs need (\d) runs per side for one metric, (\d) for two to six, and (\d)", " ".join(PAGE.split())
    )
    assert words is not None
    assert [int(word) for word in words.groups()] == [readings_needed(m, paired=False) for m in (1, 2, 7)]


def test_the_page_has_the_detectable_sizes() -> None:
    head, *rows = _table(PAGE, "spread of the ratio")
    repeats = [int(word.removesuffix(" repeats")) for word in head[1:]]
    assert rows and repeats
    for spread, *sizes in rows:
        found = [detectable_percent(float(spread.removesuffix(" %")), count, 5) for count in repeats]
        assert [f"{size:.1f} %" for size in found if size is not None] == sizes


def test_the_page_on_json_has_every_key_of_a_gate_and_no_other() -> None:
    text = (DOCS / "reference" / "json.md").read_text()
    rows = _table(text, "of `gate`")[1:]
    named = [key for row in rows for key in re.findall(r"`(\w+)`", row[0])]
    answer = Answer(Condition.parse("web > +1 %"), "web", "run_time", {}, "last", State.MET)
    assert sorted([*named, "above", "bound_percent"]) == sorted(jsonable(answer))
    assert all(f"`{key}`" in rows[0][1] for key in ("above", "bound_percent"))
    assert all(f"`{state}`" in rows[2][1] for state in State)


def test_the_page_has_every_state_of_a_gate() -> None:
    assert [row[0] for row in _table(PAGE, "state")[1:]] == [str(state) for state in State]


def test_the_page_on_json_has_every_key_of_a_place_that_was_scaled() -> None:
    text = (DOCS / "reference" / "json.md").read_text()
    section = text[text.index("## `vmlab.scale/1`") :].split("\n## ")[0]
    named = [key for row in _table(section, "key")[1:] for key in re.findall(r"`(\w+)`", row[0])]
    nothing = Carried({}, "", {}, (), None, False, None, None, "")
    assert named == [*jsonable(nothing), "steps"]
    target = Target("web", "latency_p95", "s", 0.5, at_least=False, implied=False)
    scaled = scale_document(Ascent("", "", True, 1, (target,)))
    assert all(f"`{key}`" in section for key in (*scaled["scale"], *scaled["targets"][0]))
    assert all(f"`{stop}`" in section for stop in (*Stop, *ClimbEnd))
