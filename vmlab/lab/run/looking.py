"""A planned look at what a run has recorded so far: whether more repeats may answer what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.published import beside_reference
from vmlab.model.scenarios.repetition import LooksAt
from vmlab.model.scenarios.table_words import TABLE
from vmlab.store.reader import RunReader

_DECIDED = (Verdict.PROVEN, Verdict.SAME, Verdict.ONE_A_SIDE)
"""More repeats prove no more of these; those of one snapshot a side have no verdict however many there are."""


@dataclass(frozen=True, slots=True)
class Look:
    """How many questions are `open`, which more repeats may answer, and the state of all in words."""

    open: int
    words: str


def look_at(what: LooksAt | None, store: Path) -> Look:
    """Look at a run's tables, or else its claims. Raises StoreError."""
    with RunReader(store) as reader:
        if what == TABLE:
            tables = run_document(reader).tables
            return _at_differences([one.difference for table in tables for *_, one in table.each() if one.difference])
        claims = beside_reference(reader).claims
    left = sum(claim.open for claim in claims)
    if left:
        return Look(left, f"{left} of {len(claims)} claims have no answer")
    return Look(0, "no claim is left that more repeats may answer")


def _at_differences(found: list[Difference]) -> Look:
    """Whether each difference of the tables is proven. What cannot be compared, or is the same amount, is not asked."""
    compared = [one for one in found if one.is_compared]
    left = sum(one.verdict not in _DECIDED for one in compared)
    if left:
        return Look(left, f"{left} of {len(compared)} differences are not proven")
    if compared and all(one.proven for one in compared):
        return Look(0, "every difference is proven")
    return Look(0, "no difference is left that more repeats may prove")
