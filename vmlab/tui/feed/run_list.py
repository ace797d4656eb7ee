"""The list of runs: what has ended is read once, what lives is read again."""

from __future__ import annotations

from vmlab.model.run import RUNNING
from vmlab.store.runs import STORE, RunSummary, run_folders, summarise


class RunList:
    """All runs, newest first; `read` may be called as often as one likes, from one thread at a time."""

    def __init__(self) -> None:
        self._ended: dict[str, RunSummary] = {}

    def read(self) -> list[RunSummary]:
        """The runs as they are now."""
        found = []
        for folder in run_folders():
            known = self._ended.get(folder.name)
            if known is None:
                known = summarise(folder / STORE)
                if known.outcome != RUNNING and known.problem is None:
                    self._ended[folder.name] = known
            found.append(known)
        return found
