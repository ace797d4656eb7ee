"""The results of runs that were looked at, so that a cursor which comes back finds them at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vmlab.model.errors import VmlabError
from vmlab.store.kept_file import file_stamp

if TYPE_CHECKING:
    from vmlab.tui.feed.run_tables import ResultText

_MOST = 32


class KeptResults:
    """Reads results for a preview, and keeps those of runs that are over."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[object, ResultText]] = {}

    def of(self, store: Path, *, over: bool) -> ResultText:
        """The texts of the run at `store`, or one line with the reason why there are none. May take a moment."""
        stamp = file_stamp(str(store))
        if over and store in self._kept and self._kept[store][0] == stamp:
            return self._kept[store][1]
        # Imported late: it takes three quarters of the time to load the screen, which shows its runs without it.
        from vmlab.tui.feed.run_tables import ResultText, results_of

        try:
            found = results_of(store)
        except VmlabError as error:
            return ResultText.of_problem(str(error))
        if over:
            self._kept[store] = stamp, found
            if len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]
        return found
