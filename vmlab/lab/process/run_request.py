"""The request for a run, as it is kept in the run's folder. In one that was imported it is anybody's text."""

from __future__ import annotations

import json
from dataclasses import dataclass

from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.checked import made
from vmlab.model.errors import StoreError, UsageError
from vmlab.model.jsonable import jsonable
from vmlab.plan.terms import Overrides
from vmlab.system.given_file import read_given

_MOST_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for a run. `source` is the scenario's path; its text is stored beside it.

    A run that is `held` begins each cell when that is released, and ends where none was for so many seconds.
    """

    run: str
    source: str
    overrides: Overrides
    seed: int
    held: float | None = None

    def to_json(self) -> str:
        """For `request.json` in the run's folder."""
        return json.dumps(jsonable(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> RunRequest:
        """The inverse of `to_json`. Raises ValueError, with one line, for anything else."""
        try:
            body = json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
        if not isinstance(body, dict) or not isinstance(body.get("overrides"), dict):
            raise ValueError("it is no request for a run")
        return made(cls, body)

    @classmethod
    def of(cls, folder: RunFolder) -> RunRequest:
        """The one that is kept in `folder`. Raises UsageError, with one line, where it is none, StoreError where the
        disk does not give it.
        """
        try:
            return cls.from_json(read_given(folder.request, _MOST_BYTES).decode("utf-8"))
        except UsageError as error:
            if isinstance(error.__cause__, OSError):
                raise StoreError(str(error)) from error
            raise
        except ValueError as error:
            raise UsageError(f"run {folder.id}: its {folder.request.name} cannot be read: {error}") from error
