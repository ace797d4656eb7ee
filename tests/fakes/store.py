"""A store on a disk that is full when a test wants it: the real writer, refusing to write meanwhile."""

from __future__ import annotations

from typing import Any

from vmlab.model.errors import StoreError
from vmlab.store.writer import RunWriter

FULL = "database or disk is full"


class FillableWriter(RunWriter):
    """`full` refuses whatever is written; `refused` counts it."""

    full = False
    refused = 0

    def _insert(self, statement: str, values: tuple[Any, ...]) -> int:
        if self.full:
            self.refused += 1
            raise StoreError(f"cannot write {self.path}: {FULL}")
        return super()._insert(statement, values)
