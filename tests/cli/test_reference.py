"""`show --reference` and `compare --reference`: a run beside what was published, and when it does not compare."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.model.places import runs_folder
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.terms import HostFacts, Overrides

HOST = HostFacts(2**36, 2**36, 2**40, 4, "kvm")
RUN = "20261121-143000-cpu-priority-7f3a"
TIMES = {1: (85.9227, 85.7653), 4: (32.9604, 43.5084), 6: (32.3740, 43.1772)}
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)


def _told(overrides: Overrides, accelerator: str = "kvm", repeats: int = 1) -> None:
    """A run of cpu-priority that measured what was published, stored as the launcher stores it.

    Its repeats differ by some hundredths of a percent.
    """
    file = load("cpu-priority")
    plan = make_plan(file, overrides, HOST)
    axes = {name: list(axis.values) for name, axis in plan.scenario.axes.items()}
    said = json.loads(plan.scenario.model_dump_json(by_alias=True))
    story = Story(runs_folder() / RUN / "run.sqlite", "cpu-priority", RUN)
    story.begin(axes, said["table"], size=plan.size, accelerator=accelerator, said=said, cells=3 * repeats)
    story.writer.document("scenario.yaml", file.text)
    for repeat, (threads, times) in itertools.product(range(1, repeats + 1), TIMES.items()):
        story.start_cell({"threads": threads}, repeat, guests=2)
        for workload, seconds in zip(("pr100", "pr50"), times, strict=True):
            moved = 1 + 1e-4 * math.sin(repeat * seconds) if repeats > 1 else 1
            story.measure(workload, seconds * moved)
            story.measure(workload, times[0] * moved, "first_half_time")
            story.measure(workload, (times[1] - times[0]) * moved, "second_half_time")
        story.end_cell(wall=max(times))
    story.end()


def _ended(arguments: list[str], capsys: Captured) -> tuple[int, str, str]:
    code = command_line(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_run_at_full_size_compares(capsys: Captured) -> None:
    _told(Overrides(size="full"))
    code, out, _ = _ended(["show", "last", "--reference", "--json"], capsys)
    body = json.loads(out)
    assert (code, body["schema"], body["compares"], body["departures"]) == (0, "vmlab.reference/1", True, [])
    measured = [one for one in body["figures"] if one["relative"] is None]
    assert [one["percent_of_published"] for one in measured] == [pytest.approx(100)] * 6
    ratios = [one["measured"]["mean"] for one in body["figures"] if one["relative"] == "ratio"]
    assert ratios == pytest.approx([1.00, 0.758, 0.750], abs=0.002)
    assert {claim["answer"] for claim in body["claims"]} == {"cannot tell"}
    assert [claim["points_to"] for claim in body["claims"]] == ["reproduced"] * 4 + ["not"]
    assert [claim["readings_needed"] for claim in body["claims"]] == [6, 6, 7, 6, 6]
    text = " ".join(_ended(["show", "last", "--reference"], capsys)[1].split())
    assert text.count("one measurement each, no spread known") == 6
    assert text.count("it points to: reproduced; an answer takes 6 repeats at least") == 3
    assert text.count("it points to: reproduced; an answer takes 7 repeats at least") == 1


@pytest.mark.parametrize(("repeats", "third"), [(6, "cannot tell"), (7, "reproduced")])
def test_claims_are_answered_from_as_many_repeats_as_they_take(repeats: int, third: str, capsys: Captured) -> None:
    _told(Overrides(size="full"), repeats=repeats)
    claims = json.loads(_ended(["show", "last", "--reference", "--json"], capsys)[1])["claims"]
    assert [claim["answer"] for claim in claims] == ["reproduced", "reproduced", third, "reproduced", "not"]
    assert [claim["points_to"] for claim in claims] == [None, None, "reproduced" if repeats == 6 else None, None, None]
    out = _ended(["show", "last", "--reference"], capsys)[1]
    assert out.count("an answer takes 7 repeats at least") == out.count("it points to") == (repeats == 6)
    assert out.count("at 97.5 % confidence") == (2 if repeats == 7 else 0)


def test_the_publication_s_own_error_stands_beside_what_is_right(capsys: Captured) -> None:
    _told(Overrides(size="full"))
    code, out, _ = _ended(["compare", RUN, "--reference"], capsys)
    assert code == 0
    assert "! 4 Thread, Ratio of pr100 to pr50: .756 is printed, .758 is right:" in out
    assert ".756 !" in out and "85.9227" in out


def test_a_claim_says_where_it_was_published_or_that_it_is_ours(capsys: Captured) -> None:
    code, out, _ = _ended(["show", "memcpy-overhead", "--reference"], capsys)
    text = " ".join(out.split())
    assert code == 0
    assert '"Memory Test", table, last column: The overhead of a guest in mbw\'s MEMCPY is 1.7 %.' in text
    assert "! contradicted by its own values: the bandwidths in the same row, 7578.348 and 6254.520 MiB/s" in text
    assert "from the printed bandwidths. ours: the publication does not say so" in text
    body = json.loads(_ended(["show", "memcpy-overhead", "--reference", "--json"], capsys)[1])
    printed, derived = body["claims"]
    assert (printed["source"], printed["where"]) == ("publication", '"Memory Test", table, last column')
    assert "17.5 % apart" in printed["contradicted"]
    assert (derived["source"], derived["where"], derived["there"], derived["contradicted"]) == ("ours", "", "", "")


def test_a_finding_that_no_claim_asks_stands_with_its_reason(capsys: Captured) -> None:
    code, out, _ = _ended(["show", "tile-backing", "--reference"], capsys)
    text = " ".join(out.split("not asked here", 1)[1].split())
    assert code == 0 and text.startswith("A rebooting guest keeps its host buffers.")
    assert text.endswith("not asked: a cell starts its guests once, and never reboots or restarts them")
    (finding,) = json.loads(_ended(["show", "tile-backing", "--reference", "--json"], capsys)[1])["unasked"]
    assert finding.keys() == {"say", "where", "why"}


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (Overrides(size="smoke"), "workloads.pr100.events is 2000, and 10000 at size full"),
        (
            Overrides(size="full", sets=("workloads.pr50.events=500",)),
            "workloads.pr50.events is 500, and 10000 at size full",
        ),
        (Overrides(size="full", sets=("guests.pr50.memory=1 GiB",)), "guests.pr50.memory is "),
    ],
)
def test_other_amounts_do_not_compare(overrides: Overrides, line: str, capsys: Captured) -> None:
    _told(overrides)
    _, out, _ = _ended(["show", "last", "--reference"], capsys)
    assert "! this run does not compare with what was published, since amounts differ" in out
    assert line in out and "of theirs" not in out
    body = json.loads(_ended(["show", "last", "--reference", "--json"], capsys)[1])
    assert body["compares"] is False
    assert {one["percent_of_published"] for one in body["figures"]} == {None}
    assert [one["measured"]["mean"] for one in body["figures"] if one["relative"] == "ratio"][2] is not None


def test_fewer_values_of_an_axis_and_more_repeats_still_compare(capsys: Captured) -> None:
    _told(Overrides(size="full", repeats=3, sets=("axes.threads=[1, 4, 6]", "limits.start_skew=2 s")))
    assert json.loads(_ended(["show", "last", "--reference", "--json"], capsys)[1])["compares"] is True


def test_it_is_about_one_whole_run(capsys: Captured) -> None:
    _told(Overrides(size="full"))
    for arguments in (["show", "last:1"], ["show", "last", "--raw"], ["compare", "last", "last"]):
        code, _, err = _ended([*arguments, "--reference"], capsys)
        assert code == 2 and "--reference" in err


def test_a_scenario_without_a_publication_is_one_line(capsys: Captured) -> None:
    story = Story(runs_folder() / RUN / "run.sqlite", "mine", RUN).begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 1.0}, 2.0)
    story.end()
    code, _, err = _ended(["show", "last", "--reference"], capsys)
    assert code == 2 and "its scenario names no publication" in err


def test_figures_of_emulated_guests_say_so(capsys: Captured) -> None:
    _told(Overrides(size="full"), "tcg")
    body = json.loads(_ended(["show", "last", "--reference", "--json"], capsys)[1])
    assert {one["measured"]["accelerator"] for one in body["figures"]} == {"tcg"}
    assert "85.9 tcg" in _ended(["show", "last", "--reference"], capsys)[1]


def test_figures_of_the_host_have_no_accelerator(capsys: Captured) -> None:
    story = Story(runs_folder() / RUN / "run.sqlite", "mine", RUN)
    figures = [{"rows": {"setup": setup}, "value": "5.0", "unit": "s"} for setup in ("host", "vm")]
    said = {"reference": {"source": "a paper", "figures": figures}}
    story.begin({"setup": ["host", "vm"]}, {"columns": "setup"}, said=said)
    for setup, guests in (("host", 0), ("vm", 1)):
        story.start_cell({"setup": setup}, guests=guests)
        story.measure("primes", 5.0)
        story.end_cell(wall=5.0)
    story.end()
    body = json.loads(_ended(["show", "last", "--reference", "--json"], capsys)[1])
    assert [one["measured"]["accelerator"] for one in body["figures"]] == [None, "tcg"]
    assert body["tables"][0]["rows"][0]["entries"][1]["mean"] == 5.0


def test_the_run_s_own_table_stands_for_charts_without_numbers(capsys: Captured) -> None:
    story = Story(runs_folder() / RUN / "run.sqlite", "mine", RUN)
    story.begin({"cache": ["none"]}, said={"reference": {"source": "a paper with charts"}})
    story.cell({"cache": "none"}, {"web": 1.25}, 2.0)
    story.end()
    _, out, _ = _ended(["show", "last", "--reference"], capsys)
    assert "published: a paper with charts" in out
    assert re.search(r"^web +1\.25$", out, re.MULTILINE)


@pytest.mark.parametrize("command", ["show", "compare"])
def test_a_scenario_without_a_run_shows_what_was_published(command: str, capsys: Captured) -> None:
    code, out, _ = _ended([command, "disk-shared", "--reference"], capsys)
    assert code == 0
    assert out.startswith("disk-shared · no run\n")
    assert "15.1k" in out and "yours" not in out
    lines = [line.strip() for line in out.splitlines()]
    assert "Writeback with four queues writes at least 10 % faster than none with one." in lines
    assert "2.9 to 31 times. The bound is ours." in " ".join(out.split())
    where = '"Shared Storage (ceph) IO Performance Testing", "Test Conclusions", third point; not asked:'
    assert where in " ".join(out.split())
    assert "cannot tell" not in out


def test_a_scenario_without_a_run_has_a_document_without_a_run(capsys: Captured) -> None:
    code, out, _ = _ended(["show", "disk-shared.yaml", "--reference", "--json"], capsys)
    body = json.loads(out)
    assert (code, body["schema"], body["scenario"]) == (0, "vmlab.reference/1", "disk-shared")
    assert (body["run"], body["compares"], body["tables"]) == (None, False, [])
    assert len(body["figures"]) == 48
    assert {(one["measured"]["mean"], one["percent_of_published"]) for one in body["figures"]} == {(None, None)}
    assert {claim["answer"] for claim in body["claims"]} == {"cannot tell"}


def test_a_scenario_of_one_s_own_without_a_publication_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nguests: {vm: {memory: 512 MiB}}\nworkloads: {job: {kind: cpu, on: vm, threads: 1}}\n")
    code, out, err = _ended(["show", str(file), "--reference"], capsys)
    assert (code, out, err) == (2, "", "vmlab: scenario mine names no publication\n")
    code, out, err = _ended(["show", str(tmp_path / "other.yaml"), "--reference"], capsys)
    assert (code, out) == (2, "") and err.count("\n") == 1 and "other.yaml" in err


def test_parts_of_a_publication_that_share_neither_row_nor_column_stand_apart(capsys: Captured) -> None:
    assert command_line(["show", "query-replay", "--reference"]) == 0
    parts = [part.splitlines() for part in capsys.readouterr().out.split("\n\n")]
    (followup,) = [part for part in parts if "The Followup" in part[0]]
    assert [line.split("  ")[0] for line in followup[3:]] == [
        "Bare metal: Xeon L5520",
        "VM 1: Xeon E7-8837",
        "VM 2: Xeon E5-4650",
    ]
    # Minutes and seconds need no unit behind them.
    assert followup[3].split("  ")[-2:] == ["128m43s", "2.27 GHz"]
