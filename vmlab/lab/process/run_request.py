"""The request for a run, as it is kept in the run's folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from vmlab.lab.process.run_folder import RunFolder
from vmlab.plan.terms import Half, Overrides


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for a run. `source` is the scenario's path; its text is stored beside it.

    A run that is `held` begins each cell when that is released, and ends where none was for so many seconds. Of a plan
    whose guests are on two hosts it has those of one `half`, see `plan.other_host`.
    """

    run: str
    source: str
    overrides: Overrides
    seed: int
    held: float | None = None
    half: Half | None = None

    def to_json(self) -> str:
        """For `request.json` in the run's folder."""
        return json.dumps({**asdict(self), "overrides": self.overrides.to_json()}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> RunRequest:
        """The inverse of `to_json`."""
        body = json.loads(text)
        return cls(**{**body, "overrides": Overrides.from_json(body["overrides"])})

    @classmethod
    def of(cls, folder: RunFolder) -> RunRequest:
        """The one that is kept in `folder`. Raises OSError."""
        return cls.from_json(folder.request.read_text(encoding="utf-8"))
