"""This version reads what each release wrote, and says of it what the release said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.releases.keeping import ARCHIVE, EVENTS, KEPT, SCENARIOS, lost, printed, read_printed
from vmlab.model.event_json import from_json, to_json
from vmlab.plan.validating import load_valid
from vmlab.store.archive import unpack

RELEASES = sorted(KEPT.iterdir())
assert RELEASES
each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)


@each_release
def test_documents_of_a_releases_run_have_what_the_release_printed(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    unpack(release / ARCHIVE)
    kept, now = read_printed(release), printed()
    assert kept["show last --json"]["cells"]
    assert len(kept["export last -o run.csv"]) > 100
    assert list(lost(kept, now)) == []


@each_release
def test_events_of_a_release_are_read_with_all_their_fields(release: Path) -> None:
    lines = (release / EVENTS).read_text(encoding="utf-8").splitlines()
    assert len(lines) > 40
    for line in lines:
        event = from_json(line)
        assert event is not None, line
        assert list(lost(json.loads(line), json.loads(to_json(event)))) == [], line


@each_release
def test_scenarios_of_a_release_are_valid(release: Path) -> None:
    scenarios = sorted((release / SCENARIOS).glob("*.yaml"))
    assert len(scenarios) > 20
    for scenario in scenarios:
        load_valid(str(scenario))


@pytest.mark.parametrize(
    ("kept", "now", "said"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": {"b": 1}}, {"a": {}}, ["/a/b is gone"]),
        ({"a": [1, 2]}, {"a": [1]}, ["/a was [1, 2] and is [1]"]),
        ({"a": 1}, {"a": 1.0}, ["/a was 1 and is 1.0"]),
        ({"a": "passed"}, {"a": "failed"}, ["/a was 'passed' and is 'failed'"]),
        ({"a": "two words"}, {"a": "other words"}, []),
        ({"a": "two words"}, {"a": None}, ["/a was 'two words' and is None"]),
    ],
)
def test_what_is_lost_is_found(kept: Any, now: Any, said: list[str]) -> None:
    assert list(lost(kept, now)) == said
