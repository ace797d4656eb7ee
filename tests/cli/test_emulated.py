"""Behind every figure of emulated guests stands that they were, also where runs are compared and listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_ordered_disk import OTHER, RUN, Captured, shown
from tests.store.stories import HOST, Story
from vmlab.model.places import runs_folder
from vmlab.store.run_list import list_runs
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.run_facts import RunFactsList
from vmlab.tui.feed.sides import sides_of
from vmlab.tui.state.compared import compared_sides

NOTE = "TCG: these values describe emulation"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)


def told(run: str, accelerator: str, guests: int = 1, *, disk: bool = False) -> None:
    """A run of one cell, on an emulated disk or the host's own."""
    host = {**HOST, "disk": {"device": "loop0", "emulated": True, "profile": "hdd-7200"}} if disk else HOST
    story = Story(runs_folder() / run / "run.sqlite", "mine", run)
    story.begin({"cache": ["none"]}, accelerator=accelerator, host=host, cells=1)
    story.start_cell({"cache": "none"}, guests=guests)
    story.measure("primes", 5.0)
    story.end_cell(wall=5.0)
    story.end()


@pytest.mark.parametrize(("guests", "accelerators"), [(1, ["tcg"]), (0, [])])
def test_a_comparison_says_so_where_there_were_guests(guests: int, accelerators: list[str], capsys: Captured) -> None:
    told(RUN, "tcg", guests)
    told(OTHER, "tcg", guests)
    assert (NOTE in shown(["compare", RUN, OTHER, "--explain"], capsys)) is bool(accelerators)
    assert json.loads(shown(["compare", RUN, OTHER, "--json"], capsys))["accelerators"] == accelerators
    picks = [Pick(runs_folder() / run / "run.sqlite") for run in (RUN, OTHER)]
    found = compared_sides([one.side for one in sides_of(picks)])
    assert found.sentence.endswith(", under emulation (TCG)") is bool(accelerators)


def test_a_comparison_with_kvm_says_that_a_part_was_emulated(capsys: Captured) -> None:
    told(RUN, "kvm")
    told(OTHER, "tcg")
    text = shown(["compare", RUN, OTHER, "--explain"], capsys)
    assert "TCG on some of the sides: these values describe emulation" in text
    assert json.loads(shown(["compare", RUN, OTHER, "--json"], capsys))["accelerators"] == ["kvm", "tcg"]


def test_a_comparison_under_kvm_does_not_speak_of_it(capsys: Captured) -> None:
    told(RUN, "kvm")
    told(OTHER, "kvm")
    assert "emulation" not in shown(["compare", RUN, OTHER, "--explain"], capsys)


@pytest.mark.parametrize(
    ("run", "behind"),
    [
        ({"accelerator": "tcg"}, ("tcg",)),
        ({"accelerator": "tcg", "disk": True}, ("tcg", "emulated disk")),
        ({"accelerator": "tcg", "guests": 0}, ()),
        ({"accelerator": "kvm"}, ()),
    ],
)
def test_the_list_of_runs_says_so(run: dict[str, object], behind: tuple[str, ...]) -> None:
    told(RUN, **run)  # type: ignore[arg-type]
    told(OTHER, "kvm")
    runs = list_runs()
    facts = RunFactsList().of(runs, runs_folder())
    assert facts[RUN].behind == behind
