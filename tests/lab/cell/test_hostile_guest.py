"""Guests that print garbage, gigabytes, escape sequences or numbers beyond all bounds fail their own cell alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell
from tests.lab.one_cell import Lab, Raw, lab_of, scenario_plan
from vmlab.guests import held_client
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.provision.snapshot_provider import prepare_alone, rehearse_alone
from vmlab.model.cell_event import CellEnded, MeasurementTaken
from vmlab.model.errors import MOST_LETTERS, WorkloadError
from vmlab.model.event import Event
from vmlab.model.event_json import from_json, to_json
from vmlab.model.results import Provision
from vmlab.model.run import Outcome
from vmlab.workloads.registry import kinds

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


STEPS: list[tuple[str, Exception]] = [
    ("stage", ValueError("invalid literal for int() with base 10: '\u00b2'")),
    ("prepare", KeyError("status")),
    ("collect", TypeError("'<' not supported between instances of 'str' and 'int'")),
    ("readings", TypeError("bad operand type for abs(): 'str'")),
]


@pytest.mark.parametrize(("step", "raised"), STEPS, ids=[step for step, _ in STEPS])
async def test_what_a_step_cannot_read_fails_its_cell_with_one_line(
    step: str, raised: Exception, tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_arguments: object) -> None:
        raise raised

    async def read_late(*_arguments: object) -> None:
        raise raised

    monkeypatch.setattr(kinds()["cpu"], step, read if step == "readings" else read_late)
    lab = lab_of(tmp_path, captured_events)
    assert await lab.cell().run() is Outcome.FAILED
    reasons = lab.ended().reasons
    assert reasons and all(f"what cpu printed cannot be read: {raised}" in one for one in reasons), reasons
    assert lab.hypervisor.running == {}


@pytest.mark.parametrize("step", ["stage", "rehearse"])
async def test_a_guest_that_cannot_be_frozen_for_what_it_prints_fails_by_it(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(*_arguments: object) -> None:
        raise ValueError("invalid literal for int()")

    monkeypatch.setattr(kinds()["cpu"], step, read)
    cell, shell = scenario_plan().cells[0], FakeShell("quick", "198.18.0.11")
    with pytest.raises(WorkloadError, match=r"what cpu printed cannot be read: invalid literal for int\(\)"):
        if step == "stage":
            await prepare_alone(shell, cell, cell.guests[0], 1, 1.0)
        else:
            await rehearse_alone(shell, cell, cell.guests[0], 1)


def test_the_reasons_of_a_cell_fit_an_event() -> None:
    said: list[Event] = []
    events = CellEvents(scenario_plan().cells[0], said.append, Raw())
    events.invalidate(str(WorkloadError("\N{ADHESIVE BANDAGE}" * 5 * 2**20)) for _ in range(256))
    events.ended(None, None, Provision())
    (ended,) = said
    assert isinstance(ended, CellEnded)
    assert ended.reasons[-1] == "and 224 more" and len(ended.reasons[0]) == MOST_LETTERS
    assert from_json(to_json(ended)) == ended
