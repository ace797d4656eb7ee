"""The last event of a run that left something behind."""

from __future__ import annotations

from vmlab.lab.process.run_ending import with_leftovers
from vmlab.model.errors import ExitCode
from vmlab.model.event import RunEnded

PASSED = RunEnded(outcome="passed", exit_code=0)


def test_what_is_left_behind_is_the_runs_exit_code_and_part_of_its_reason() -> None:
    end = with_leftovers(PASSED, ["bridge vmlab0", "a mount"])
    assert (end.outcome, end.exit_code) == ("passed", ExitCode.CLEANUP_INCOMPLETE)
    assert end.reason == "left behind: bridge vmlab0, a mount"
    stopped = with_leftovers(RunEnded(outcome="aborted", exit_code=130, reason="stopped"), ["a mount"])
    assert stopped.reason == "stopped; left behind: a mount"


def test_a_run_that_left_nothing_ends_as_it_ended() -> None:
    assert with_leftovers(PASSED, []) is PASSED
