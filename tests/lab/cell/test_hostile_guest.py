"""Guests that print garbage, gigabytes, escape sequences or numbers beyond all bounds fail their own cell alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.one_cell import Lab, scenario_plan
from vmlab.guests import held_client
from vmlab.model.cell_event import MeasurementTaken
from vmlab.model.run import Outcome

SCRIPTS = {
    "nothing": "true",
    "noise": "head -c 100000 /dev/urandom",
    "escape sequences": r"printf '\033]0;mine\007\033[2J\033[1;1H\x9b31m'; exit 1",
    "a number of 5,000 digits": "printf 'total number of events: '; head -c 5000 /dev/zero | tr '\\0' 9; echo",
    "deep JSON": "head -c 100000 /dev/zero | tr '\\0' '['; echo",
    "one long line": "head -c 3000000 /dev/zero | tr '\\0' a; echo",
    "more than is kept": "yes",
    "another's report": "echo '    total number of events:              10'; echo '    total time: -1s'",
}


@pytest.mark.parametrize("what", SCRIPTS)
async def test_it_fails_its_own_cell(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Short lines take the most work a byte, so that less of them is enough.
    monkeypatch.setattr(held_client, "MOST_PRINTED", 400_000 if what == "more than is kept" else 4_000_000)
    lab = Lab(tmp_path, SCRIPTS[what], scenario_plan())
    assert await lab.cell().run() is Outcome.FAILED
    ended = lab.ended()
    assert ended.outcome == "failed" and ended.reasons
    assert lab.of(MeasurementTaken) == [] and lab.hypervisor.running == {}
    assert all(len(reason) < 1000 for reason in ended.reasons)
