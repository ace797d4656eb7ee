"""The test of all experiments itself: what it finds wrong, what it keeps, and that it goes on and ends in time."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.checklist import Checklist
from tests.experiments import run_all
from tests.experiments.judged import faults_beside, faults_of_run
from tests.experiments.page import published_names
from tests.experiments.records import keep, kept, record_of
from tests.experiments.run_all import Asked, check_all
from tests.experiments.told import tell
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.published import BesideReference, beside_reference, published_alone
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import RefusedError
from vmlab.model.jsonable import jsonable
from vmlab.plan.scenario_file.loading import load
from vmlab.report.reference_text import reference_text
from vmlab.store.reader import RunReader
from vmlab.system.text_width import UNCUT

TOLD = (sys.executable, "-m", "tests.experiments.told")
Printed = pytest.CaptureFixture[str]


pytestmark = pytest.mark.xdist_group("experiments")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(Path(__file__).parents[2])
    return tmp_path


def _told(name: str) -> tuple[RunDocument, BesideReference]:
    with RunReader(tell(name)) as reader:
        return run_document(reader), beside_reference(reader)


@pytest.mark.parametrize("name", published_names())
def test_a_run_that_measured_everything_has_no_fault(name: str) -> None:
    document, beside = _told(name)
    assert list(faults_of_run(jsonable(document))) == []
    assert list(faults_beside(beside.reference, jsonable(beside), reference_text(beside, UNCUT))) == []


def test_a_publication_alone_has_no_fault() -> None:
    beside = published_alone(load("disk-shared").scenario)
    text = reference_text(beside, UNCUT)
    assert list(faults_beside(beside.reference, jsonable(beside), text)) == []
    assert list(faults_beside(beside.reference, jsonable(beside), text.replace("15.1k", ""))) != []


def test_a_run_that_is_not_whole_is_found() -> None:
    whole = json.loads(json.dumps(jsonable(_told("memcpy-overhead")[0])))
    spoils: list[tuple[Callable[[Any], object], str]] = [
        (lambda run: run["run"].update(outcome="invalid", reason="noise"), "the run is invalid: noise"),
        (lambda run: run["cells"].pop(), "1 of 2 cells"),
        (lambda run: run["cells"][1].update(outcome="failed", reasons=["it broke"]), "is failed: it broke"),
        (lambda run: run["cells"][0].update(measurements=[]), "cell 1 (setup host) has no figure"),
    ]
    for spoil, words in spoils:
        spoilt = copy.deepcopy(whole)
        spoil(spoilt)
        assert words in "; ".join(faults_of_run(spoilt))


def test_what_is_missing_beside_the_publication_is_found() -> None:
    _, beside = _told("memcpy-overhead")
    whole, text = json.loads(json.dumps(jsonable(beside))), reference_text(beside, UNCUT)
    unmeasured = {"mean": None, "reason": ""}

    def faults(spoil: Callable[[Any], object], printed: str = text) -> str:
        spoilt = copy.deepcopy(whole)
        spoil(spoilt)
        return "; ".join(faults_beside(beside.reference, spoilt, printed))

    assert "without a reason" in faults(lambda body: body["figures"][0]["measured"].update(unmeasured))
    assert "no figure of the run" in faults(lambda body: [one["measured"].update(mean=None) for one in body["figures"]])
    assert "are in the JSON" in faults(lambda body: body["figures"].pop())
    assert "are not those of the scenario" in faults(lambda body: body["claims"].pop())
    assert "no answer" in faults(lambda body: body["claims"][0].update(because=[]))
    unfounded = {"answer": "reproduced"}
    assert "without an interval" in faults(lambda body: body["claims"][0]["comparisons"][0].update(unfounded))
    assert "not printed with its answer" in faults(lambda body: None, text.replace("17.5 % slower", ""))
    assert "not printed with its answer" in faults(lambda body: None, text.replace('"Memory Test", table', ""))
    assert "published figures are not printed" in faults(lambda body: None, "")
    assert "theirs and yours" in faults(lambda body: None, text.replace("yours", ""))


def test_an_empty_row_of_the_run_s_own_table_is_found() -> None:
    _, beside = _told("tile-backing")
    body = json.loads(json.dumps(jsonable(beside)))
    for entry in body["tables"][0]["rows"][0]["entries"]:
        entry["mean"] = None
    text = reference_text(beside, UNCUT)
    assert list(faults_beside(beside.reference, body, text)) == ["the table's row run_time is empty"]
    assert list(faults_beside(beside.reference, body | {"tables": []}, text)) == ["the run has no table"]


def _checked(names: list[str], asked: Asked, state: Path, printed: Printed) -> list[str]:
    report = Checklist(state / "output")
    check_all(names, asked, state, report)
    report.total()
    return printed.readouterr().out.splitlines()


def test_without_its_pool_a_scenario_is_checked_for_what_is_published_alone(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    asked = []

    def refuse(pool: str) -> None:
        asked.append(pool)
        raise RefusedError("no cluster")

    monkeypatch.setattr(run_all, "require_pool", refuse)

    def commands(folder: Path) -> list[str]:
        assert _checked(["disk-shared"], Asked(command=TOLD), folder, capsys)[0].split()[0] == "ok"
        told = (folder / "output/disk-shared.log").read_text().splitlines()
        return [line.split()[2] for line in told if line.startswith("$ vmlab ")]

    assert commands(state / "without") == ["show", "show"] and asked == ["rbd"]
    monkeypatch.setattr(run_all, "require_pool", asked.append)
    assert commands(state / "with") == ["run", "show", "show"]


def test_a_line_each_a_failure_does_not_end_it_and_what_passed_is_kept(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setattr(run_all, "keep", lambda name, record: keep(name, record, state / "kept"))
    monkeypatch.setenv("TOLD", "failed=memcpy-overhead")
    lines = _checked(["memcpy-overhead", "tile", "disk-shared"], Asked(record=True, command=TOLD), state, capsys)
    assert lines[0].startswith("FAILED") and "memcpy-overhead: exit code 1" in lines[0]
    assert "cell 2 (setup vm) is failed: it ended with code 1" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["ok", "ok", "1"]
    assert lines[-1].startswith("1 FAILED in ")
    assert [path.name for path in (state / "kept").iterdir()] == ["tile.json"]
    record = kept("tile", state / "kept")
    assert record is not None and "hostname" not in record["machine"] and record["machine"]["kernel"]
    assert record["beside"]["run"]["accelerator"] == "tcg"
    assert "$ vmlab run tile --size smoke --allow-noise --json" in (state / "output/tile.log").read_text()


def test_each_has_its_deadline_and_all_have_one(state: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    monkeypatch.setenv("TOLD", "hang=tile")
    lines = _checked(["tile", "tile-backing"], Asked(longest=3.0, altogether=3.0, command=TOLD), state, capsys)
    assert "tile: it took longer than 3 s" in lines[0]
    assert "tile-backing: not run: the 0 min for all scenarios are over" in lines[1]
    assert lines[-1].startswith("2 FAILED")


def test_a_record_is_what_was_printed_and_can_be_read_again(state: Path) -> None:
    document, beside = _told("memcpy-overhead")
    record = record_of(jsonable(document), jsonable(beside))
    keep("memcpy-overhead", record, state)
    assert kept("memcpy-overhead", state) == json.loads(json.dumps(record))
    assert kept("memcpy-overhead", state)["beside"] == json.loads(json.dumps(jsonable(beside)))  # type: ignore[index]
    assert max(map(len, (state / "memcpy-overhead.json").read_text().splitlines())) < 2000
    assert kept("tile", state) is None
