"""The least CPU time that work has ever taken on this host, in cells that passed: a small file in the state folder."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from vmlab.model.places import state_folder
from vmlab.store.kept_file import KeptFile

_SCHEMA = "vmlab.cpu-needs/1"
_MOST = 2000
"""Works that are kept; of more, those that were measured last."""


def needs_file() -> Path:
    """Where it is kept."""
    return state_folder() / "cpu-needs.json"


class CpuNeeds:
    """Seconds by what names a work. A file that was damaged is as none, and `damaged` until the next one is written."""

    def __init__(self, path: Path) -> None:
        self._file = KeptFile(path, _SCHEMA)
        self._known = self._read()
        self.damaged = not self._known and path.exists()

    def _read(self) -> dict[str, float]:
        try:
            kept = self._file.read()
        except (ValueError, RecursionError):
            return {}
        if not isinstance(kept, dict) or not all(type(one) is float and 0 < one < math.inf for one in kept.values()):
            return {}
        return dict(kept)

    def least(self, work: str) -> float | None:
        """The least CPU time in seconds that `work` has taken; None where it was never measured."""
        return self._known.get(work)

    def learn(self, works: Iterable[tuple[str, float]]) -> None:
        """These took so many seconds; what took less before stays."""
        for work, seconds in works:
            self._known[work] = min(seconds, self._known.pop(work, math.inf))
        if self._known:
            self._known = dict(list(self._known.items())[-_MOST:])
            self._file.write(self._known)
            self.damaged = False
