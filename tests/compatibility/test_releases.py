"""What each release recorded, printed and shipped is read by this version, with the same figures."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.events import EVENTS
from tests.compatibility.promised import KEPT, documents_of, lost
from vmlab.model.event_json import from_json, to_json
from vmlab.plan.planning import load_valid
from vmlab.store.archive import unpack

RELEASES = sorted(KEPT.iterdir())
RETIRED = {"CellLinked", "HalfReached", "LinkMeasured", "YardstickTaken"}
"""Kinds of events that no version writes any more: they are skipped when a store is read."""
SCENARIOS = sorted(KEPT.glob("*/scenarios/*.yaml"))


def _documents(release: Path) -> dict[str, Any]:
    documents: dict[str, Any] = json.loads(gzip.decompress((release / "documents.json.gz").read_bytes()))
    return documents


def test_the_first_release_is_kept() -> None:
    assert "0.1.0" in [release.name for release in RELEASES]
    assert len(SCENARIOS) > 20


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_a_run_of_a_release_says_what_it_said_then(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    now = json.loads(json.dumps(documents_of(unpack(release / "run.vmlab"))))
    before = _documents(release)
    assert sum(len(cell["measurements"]) for cell in before["show --json"]["cells"]) > 50
    assert list(lost(before, now)) == []


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_events_of_a_release_are_read_with_all_their_fields(release: Path) -> None:
    lines = (release / EVENTS).read_text(encoding="utf-8").splitlines()
    assert len(lines) > 40
    for line in lines:
        event = from_json(line)
        if event is None:
            assert json.loads(line)["kind"] in RETIRED, line
            continue
        assert list(lost(json.loads(line), json.loads(to_json(event)))) == [], line


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_scenario_of_a_release_is_still_one(path: Path) -> None:
    assert load_valid(str(path)).scenario.name == path.stem


def test_what_is_lost_is_found_and_what_is_new_is_none() -> None:
    before = _documents(KEPT / "0.1.0")
    now = deepcopy(before)
    now["more"] = now["show --json"]["run"]["more"] = 1
    assert list(lost(before, now)) == []
    run = now["show --json"]["run"]
    run["scenario"], run["seed"] = "other", str(run["seed"])
    del run["accelerator"]
    now["show --json"]["cells"].pop()
    now["columns"]["cells"]["cell"] = "Float64"
    now["show --json"]["cells"][0]["reasons"] = "one text"
    found = list(lost(before, now))
    assert len(found) == 6, found
