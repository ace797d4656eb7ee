"""Signals to the command line, in every phase of the second cell."""

from __future__ import annotations

import signal

from tests.faults.row import Act, Rows
from tests.faults.world import STRUCK, World
from vmlab.model.run import Phase

ROWS = Rows()
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
_WORDS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


def _stopped(phase: Phase, number: signal.Signals) -> Act:
    def act(world: World) -> str:
        running = world.run()
        world.wait_for("PhaseStarted", cell=STRUCK, phase=str(phase))
        world.strike()
        running.send_signal(number)
        words = world.end_of(running, 120)
        world.is_over()
        assert running.returncode == _CODES[number], f"exit code {running.returncode}: {words.splitlines()[-1:]}"
        end = world.wait_for("RunnerFinished", 5)
        assert end["outcome"] == "aborted", f"the run is {end['outcome']}"
        # A cell that was measured already keeps its figures.
        cell = world.ended()["outcome"]
        assert cell == "aborted" or phase == Phase.CLEAN_UP, f"cell {STRUCK} is {cell}"
        return f"exit code {running.returncode}; cell 1 {world.ended(1)['outcome']}, cell 2 {cell}, run aborted"

    return act


def _hung_up(phase: Phase) -> Act:
    def act(world: World) -> str:
        running = world.run()
        world.wait_for("PhaseStarted", cell=STRUCK, phase=str(phase))
        world.strike()
        running.send_signal(signal.SIGHUP)
        world.end_of(running, 120)
        end = world.wait_for("RunnerFinished", 120)
        world.is_over()
        assert end["outcome"] == "passed", f"the run is {end['outcome']}"
        assert world.ended()["outcome"] == "passed"
        return f"the command ended ({running.returncode}), the run went on: 2 cells passed"

    return act


for _phase in Phase:
    for _number in _CODES:
        ROWS.add(
            f"{_WORDS[_number].lower()}-{_phase.replace(' ', '-')}",
            f"{_WORDS[_number]} to `vmlab run` in phase {_phase} of cell 2",
            f"exit code {_CODES[_number]}, run aborted, cell 1 kept",
        )(_stopped(_phase, _number))
    ROWS.add(
        f"sighup-{_phase.replace(' ', '-')}",
        f"SIGHUP to `vmlab run` in phase {_phase} of cell 2, as when an SSH connection drops",
        "the run continues without the command, and passes",
    )(_hung_up(_phase))
