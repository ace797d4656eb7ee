"""What a run's host and size cannot answer has no other answer, and what emulation gave stands beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import HOST, Story
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.claims import answer_claim
from vmlab.analysis.reference.published import beside_reference
from vmlab.analysis.shape import RunDocument
from vmlab.model.jsonable import jsonable
from vmlab.model.scenarios.reference import Claim, Reference
from vmlab.report.reference_text import reference_text
from vmlab.store.reader import RunReader

ON_HOST, IN_GUEST = {"setup": "host"}, {"setup": "vm"}
_SETTINGS = {
    "tiles": 2,
    "guests": {"vm": {"memory_bytes": 2**30, "on": "vm"}},
    "workloads": {"job": {"kind": "cpu", "params": {"events": 500}}},
}


def _story(path: Path, accelerator: str, **host: Any) -> Path:
    """Six repeats, in which a guest takes twice as long as the host."""
    story = Story(path / "run.sqlite").begin(
        {"setup": ["host", "vm", "gone"]},
        accelerator=accelerator,
        host={**HOST, "memory_bytes": 2**34, **host},
        said={"axes": {"setup": {"points": {"gone": {"absent": "it needs 8 cores, and this host has 2"}}}}},
        cells=12,
    )
    for repeat in range(1, 7):
        for setup, guests, seconds in (("host", 0, 1.0), ("vm", 1, 2.0)):
            story.start_cell({"setup": setup}, repeat, guests, _SETTINGS if guests else None)
            story.measure("job", seconds + repeat / 1000)
            story.end_cell(wall=seconds)
    return story.end()


def _run(path: Path, accelerator: str, **host: Any) -> RunDocument:
    with RunReader(_story(path, accelerator, **host)) as reader:
        return run_document(reader)


def _claim(**said: Any) -> Claim:
    return Claim.model_validate({"say": "a sentence", **said})


def test_what_emulation_costs_is_no_answer_and_stands_beside(tmp_path: Path) -> None:
    claim = _claim(greater=[IN_GUEST, ON_HOST])
    assert answer_claim(_run(tmp_path / "kvm", "kvm"), claim).answer == "reproduced"
    found = answer_claim(_run(tmp_path / "tcg", "tcg"), claim)
    assert found.answer == "not answerable here" and not found.open and not found.too_few and found.points_to is None
    assert found.because == ("it compares guests with the host, and emulated guests (tcg) show what emulation costs",)
    (comparison,) = found.comparisons
    assert comparison.answer == "not answerable here"
    assert found.of_emulation == (comparison.because,) and "+99.7 %" in comparison.because
    body = jsonable(found)
    assert body["of_emulation"] == [comparison.because] and body["comparisons"][0]["difference"]["percent"] is not None


@pytest.mark.parametrize(
    ("said", "host", "why"),
    [
        (
            {"less": [IN_GUEST, {"setup": "gone"}]},
            {},
            "setup gone is absent: it needs 8 cores, and this host has 2",
        ),
        ({"needs": {"least_cpus": 4}}, {}, "it needs 4 CPUs at least, and there are 2"),
        ({"needs": {"least_cpus": 2}}, {}, ""),
        (
            {"needs": {"least_cpus": 2}},
            {"ordered": {"cpus": 1, "memory_bytes": None}},
            "it needs 2 CPUs at least, and there are 1",
        ),
        (
            {"needs": {"memory_shortage": True}},
            {},
            "it needs guests with more memory than the host; they have 2 GiB, and it has 16 GiB",
        ),
        ({"needs": {"memory_shortage": True}}, {"ordered": {"cpus": None, "memory_bytes": 2**30}}, ""),
        (
            {"needs": {"amounts": {"job.events": 1000}}},
            {},
            "the amounts are too small: job.events is 500, and it takes 1000 at least",
        ),
        ({"needs": {"amounts": {"job.events": 500}}}, {}, ""),
    ],
)
def test_what_is_recorded_of_the_host_and_the_size_decides(
    said: dict[str, Any], host: dict[str, Any], why: str, tmp_path: Path
) -> None:
    comparison = {} if "less" in said else {"at_least": [IN_GUEST], "value": "1.5"}
    found = answer_claim(_run(tmp_path, "kvm", **host), _claim(**comparison, **said))
    assert found.answer == ("not answerable here" if why else "reproduced")
    assert found.of_emulation == ()
    if why:
        assert found.because == (why,)


def test_an_old_run_answers_the_claims_of_today_and_says_whose_bounds_they_are(tmp_path: Path) -> None:
    claims = [
        {"say": "A guest is slower.", "where": "table", "there": "It is.", "greater": [IN_GUEST, ON_HOST]},
        {
            "say": "A guest takes a second or more.",
            "bound": "ours",
            "at_least": [IN_GUEST],
            "value": "1",
            "restates": {"say": "A guest is slower.", "why": "the host takes a second"},
        },
    ]
    with RunReader(_story(tmp_path, "tcg")) as reader:
        beside = beside_reference(reader, Reference.model_validate({"source": "A paper", "claims": claims}))
    text = " ".join(reference_text(beside).split())
    assert "not answerable here: A guest is slower. table: It is. it compares guests with the host" in text
    assert "of emulation: setup vm: 2.0" in text
    words = "restates, and counts with, the claim 'A guest is slower.': the host takes a second"
    assert f"reproduced: A guest takes a second or more. The bound is ours. {words}" in text
    first, second = jsonable(beside)["claims"]
    assert (first["bound"], first["restates"]) == (None, None)
    assert (second["bound"], second["restates"]) == (
        "ours",
        {"say": "A guest is slower.", "scenario": "", "why": "the host takes a second"},
    )
