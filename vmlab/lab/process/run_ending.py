"""How a run ends: its verdict, the last event of its record, and the store folded into one file."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.axes import axes_words
from vmlab.model.errors import ExitCode, StoreError, VmlabError, in_one_line
from vmlab.model.event import RunEnded, RunnerFinished
from vmlab.model.grouping import grouped
from vmlab.model.run import WARM_UP, Outcome, worst
from vmlab.plan.terms import CellPlan
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter
from vmlab.system.held_folder import demand

CODES = {
    Outcome.PASSED: ExitCode.PASSED,
    Outcome.INCOMPLETE: ExitCode.INVALID,
    Outcome.INVALID: ExitCode.INVALID,
    Outcome.FAILED: ExitCode.FAILED,
}
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the run ended: outcome, exit code and reason."""

    outcome: Outcome
    exit_code: ExitCode
    reason: str = ""

    def finished(self) -> RunnerFinished:
        """The runner's last event."""
        return RunnerFinished(outcome=self.outcome, exit_code=int(self.exit_code), reason=self.reason)

    def ended(self) -> RunEnded:
        """The run's last event."""
        return RunEnded(outcome=self.outcome, exit_code=int(self.exit_code), reason=self.reason)


def failure(error: VmlabError | OSError) -> Verdict:
    """The verdict for a run that was ended by an error."""
    code = error.exit_code if isinstance(error, VmlabError) else ExitCode.FAILED
    return Verdict(Outcome.FAILED, code, in_one_line(error))


def counted(cell: CellPlan, outcome: Outcome) -> Outcome:
    """What the outcome of a cell is for its run: a warm-up is not counted, so it need not be valid."""
    return Outcome.PASSED if cell.repeat == WARM_UP and outcome is Outcome.INVALID else outcome


def run_outcome(ended: Iterable[tuple[CellPlan, Outcome]]) -> tuple[Outcome, str]:
    """What the newest attempts at a run's cells make of it, and why.

    It has passed where every planned repeat of every point is valid. It is incomplete where some are not and figures
    can be compared all the same: two points, or the only one, are valid in a common repeat; else it is invalid.
    """
    cells = [(cell, counted(cell, outcome)) for cell, outcome in ended]
    if (outcome := worst(one for _, one in cells)) is not Outcome.INVALID:
        return outcome, ""
    known = [(cell, one) for cell, one in cells if cell.repeat != WARM_UP]
    points = grouped((axes_words(cell.axes), one) for cell, one in known)
    valid = Counter(cell.repeat for cell, one in known if one is Outcome.PASSED)
    answered = max(valid.values(), default=0) >= min(2, len(points))
    named = [f"{point}: {_valid_words(those)}" for point, those in points.items() if Outcome.INVALID in those]
    more = f", and {len(named) - _MOST_NAMED} further points" if len(named) > _MOST_NAMED else ""
    return Outcome.INCOMPLETE if answered else Outcome.INVALID, ", ".join(named[:_MOST_NAMED]) + more


def _valid_words(repeats: Sequence[Outcome]) -> str:
    valid = repeats.count(Outcome.PASSED)
    return f"{valid} of {len(repeats)} repeats valid" if valid else "no valid repeat"


def ended(folder: RunFolder) -> RunEnded | None:
    """The last event of the run; None where there is none yet. Raises what RunReader raises."""
    if not folder.store.exists():
        return None
    with RunReader(folder.store) as reader:
        return RunTimeline.read(reader, (RunEnded,)).ended


def verdict(folder: RunFolder, left: Sequence[str], otherwise: RunEnded) -> RunEnded:
    """How the run ended: as its runner recorded, or `otherwise` where the runner died before; with what is `left`
    behind.
    """
    return with_leftovers(_of_runner(folder) or otherwise, left)


def with_leftovers(end: RunEnded, left: Sequence[str]) -> RunEnded:
    """The last event, changed if the run left something behind."""
    if not left:
        return end
    reason = "; ".join(filter(None, [end.reason, "left behind: " + ", ".join(left)]))
    return replace(end, exit_code=int(ExitCode.CLEANUP_INCOMPLETE), reason=reason)


def _of_runner(folder: RunFolder) -> RunEnded | None:
    demand()
    if not folder.store.exists():
        return None
    with RunReader(folder.store) as reader:
        last = RunTimeline.read(reader, (RunnerFinished,)).finished
    return None if last is None else RunEnded(outcome=last.outcome, exit_code=last.exit_code, reason=last.reason)


def write_run_end(folder: RunFolder, event: RunEnded, open_store: Callable[[Path], RunWriter] = RunWriter) -> None:
    """Write the last event, and fold the log in, so that a copy of the store's file alone has it.

    Raises StoreError where the event cannot be written. A log that cannot be folded in stays beside the file.
    """
    with contextlib.closing(open_store(folder.store)) as writer:
        writer.append(event)
        with contextlib.suppress(StoreError):
            writer.fold_in()
