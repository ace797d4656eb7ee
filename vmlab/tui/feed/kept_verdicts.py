"""What each run of the list has shown, in a few words: read from its tables once, and kept beside the runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vmlab.model.errors import VmlabError
from vmlab.model.places import state_folder
from vmlab.store.kept_file import KeptFile, file_stamp
from vmlab.store.runs import STORE, RunSummary
from vmlab.tui.feed.run_facts import readable_soon

_SCHEMA = "vmlab.run-verdicts/2"
"""Its number changes with the words of `brief_verdict` and of `uncompared_words`."""
_AT_ONCE = 2
"""Runs that are read at a time: each may take half a second."""


class KeptVerdicts:
    """The verdicts of the newest runs that are over; for one thread at a time."""

    def __init__(self) -> None:
        self._file = KeptFile(state_folder() / "run-verdicts.json", _SCHEMA)
        self._known: dict[str, list[object]] | None = None

    def of(self, runs: Iterable[RunSummary], place: Path) -> dict[str, str]:
        """Those that are known, by the run's id. At most `_AT_ONCE` more are found out each time."""
        before = self._file.read() if self._known is None else self._known
        after: dict[str, list[object]] = {}
        found = 0
        for run in readable_soon(runs):
            stamp = file_stamp(str(place / run.id / STORE))
            kept = before.get(run.id)
            if (kept is None or kept[0] != stamp) and found < _AT_ONCE:
                kept, found = [stamp, _verdict(place / run.id / STORE)], found + 1
            if kept is not None:
                after[run.id] = kept
        if found:
            self._file.write(after)
        self._known = after
        return {run: str(verdict) for run, (_, verdict) in after.items()}


def _verdict(store: Path) -> str:
    # Imported late: it takes longer than to load the screen.
    from vmlab.report.run.run_verdict import brief_verdict, uncompared_words
    from vmlab.report.words import capital
    from vmlab.tui.feed.run_tables import document_of

    try:
        document = document_of(store)
        return brief_verdict(document.tables) or capital(uncompared_words(document))
    except VmlabError:
        return ""  # The list of runs shows the error.
