"""Guests that print garbage, gigabytes, escape sequences or numbers beyond all bounds fail their own cell alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.one_cell import Lab, Raw, scenario_plan
from vmlab.guests import held_client
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.model.cell_event import CellEnded, MeasurementTaken
from vmlab.model.errors import MOST_LETTERS, WorkloadError
from vmlab.model.event import Event
from vmlab.model.event_json import from_json, to_json
from vmlab.model.results import Provision
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


def test_the_reasons_of_a_cell_fit_an_event() -> None:
    said: list[Event] = []
    events = CellEvents(scenario_plan().cells[0], said.append, Raw())
    events.invalidate(str(WorkloadError("\N{ADHESIVE BANDAGE}" * 5 * 2**20)) for _ in range(256))
    events.ended(None, None, Provision())
    (ended,) = said
    assert isinstance(ended, CellEnded)
    assert ended.reasons[-1] == "and 224 more" and len(ended.reasons[0]) == MOST_LETTERS
    assert from_json(to_json(ended)) == ended
