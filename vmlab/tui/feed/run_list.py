"""The list of runs: what has ended is read once, what lives is read again."""

from __future__ import annotations

from vmlab.model.run import RUNNING
from vmlab.store.run_list import summaries
from vmlab.store.run_summary import summarise
from vmlab.store.runs import STORE, RunSummary, run_folders


class RunList:
    """All runs, newest first; `read` may be called as often as one likes, from one thread at a time."""

    def __init__(self) -> None:
        self._ended: dict[str, RunSummary] | None = None

    def read(self) -> list[RunSummary]:
        """The runs as they are now."""
        ended = self._ended
        if ended is None:
            found = summaries()
        else:
            found = [ended.get(folder.name) or summarise(folder / STORE) for folder in run_folders()]
        self._ended = {run.id: run for run in found if run.outcome != RUNNING and run.problem is None}
        return found
