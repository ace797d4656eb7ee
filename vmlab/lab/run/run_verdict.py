"""How a run ended, for its runner's last event."""

from __future__ import annotations

from dataclasses import dataclass

from vmlab.model.errors import ExitCode, VmlabError, in_one_line
from vmlab.model.run import WARM_UP, Outcome
from vmlab.plan.terms import CellPlan

CODES = {
    Outcome.PASSED: ExitCode.PASSED,
    Outcome.INVALID: ExitCode.INVALID,
    Outcome.FAILED: ExitCode.FAILED,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the run ended: outcome, exit code and reason."""

    outcome: Outcome
    exit_code: ExitCode
    reason: str = ""


def failure(error: VmlabError | OSError) -> Verdict:
    """The verdict for a run that was ended by an error."""
    code = error.exit_code if isinstance(error, VmlabError) else ExitCode.FAILED
    return Verdict(Outcome.FAILED, code, in_one_line(error))


def counted(cell: CellPlan, outcome: Outcome) -> Outcome:
    """What the outcome of a cell is for its run: a warm-up is not counted, so it need not be valid."""
    return Outcome.PASSED if cell.repeat == WARM_UP and outcome is Outcome.INVALID else outcome
