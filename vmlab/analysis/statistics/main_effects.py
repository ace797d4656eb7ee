"""What each two-level lever of a folded design is worth: main effects, each with an interval.

A setting and its mirror image, in which every lever is at its other level, are a pair. The difference of their
readings is the sum of the levers' effects, each with the sign of its level: d = Σ x E + e. What both have in common
cancels, which is the block, since both are of one repeat, and all interactions of two levers. Interactions of three
remain. The effects are those of least squares over all pairs and blocks; where none is missing, that is the mean at one
level less the mean at the other: Box, Hunter and Hunter, Statistics for Experimenters, 2nd edition (2005), chapters 5
and 6; NIST/SEMATECH e-Handbook of Statistical Methods, 5.3.3.8.1 (fold-over) and 4.1.4.1 (least squares).

The error is pure error: how the difference of one pair varies from block to block, pooled over the pairs (Box, Hunter
and Hunter, chapter 5: replicated runs). It needs no lever to be without effect, and no interaction to be absent. With
all pairs in all blocks it is right on average also where settings have unequal spreads, as each effect has the same
weight of each pair. The interval is Student's, with a degree of freedom for each block beyond the first of each pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vmlab.analysis.statistics.descriptive import CONFIDENCE, compared, mean, student_t

_SINGULAR = 1e-9


@dataclass(frozen=True, slots=True)
class FoldedPair:
    """The levels of the levers in one setting (-1 and 1), and its reading less its mirror image's, block by block."""

    levels: Sequence[int]
    differences: Sequence[float]


@dataclass(frozen=True, slots=True)
class MainEffect:
    """How much larger readings are at a lever's other level, in their own unit; `error` is its standard error.

    It is None where no pair has two blocks, of which alone a spread is known.
    """

    effect: float
    error: float | None
    freedom: int

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """Student's interval of the effect; None where no spread is known."""
        if self.error is None:
            return None
        half = student_t(self.freedom, confidence) * self.error
        return self.effect - half, self.effect + half


def main_effects(pairs: Sequence[FoldedPair]) -> list[MainEffect] | None:
    """The effect of each lever; None where so many pairs are missing that levers cannot be told from each other."""
    known = [one for one in pairs if one.differences]
    levers = len(known[0].levels) if known else 0
    crossed = [[_crossed(known, row, column) for column in range(levers)] for row in range(levers)]
    inverse = _inverse(crossed)
    if not known or inverse is None:
        return None
    sums = [math.fsum(one.levels[lever] * math.fsum(one.differences) for one in known) for lever in range(levers)]
    freedom = sum(len(one.differences) - 1 for one in known)
    squares = math.fsum((value - mean(one.differences)) ** 2 for one in known for value in one.differences)
    largest = max(abs(value) for one in known for value in one.differences)
    # Equal differences are equal but for their last bits.
    variance = squares / freedom if freedom and compared(math.sqrt(squares), 0.0, largest) else 0.0
    return [
        MainEffect(
            math.fsum(weight * total for weight, total in zip(inverse[lever], sums, strict=True)),
            math.sqrt(variance * inverse[lever][lever]) if freedom else None,
            freedom,
        )
        for lever in range(levers)
    ]


def _crossed(pairs: Sequence[FoldedPair], one: int, other: int) -> float:
    return math.fsum(len(pair.differences) * pair.levels[one] * pair.levels[other] for pair in pairs)


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """By Gauss and Jordan, with the largest pivot of each column; None for a matrix that has no inverse."""
    size = len(matrix)
    rows = [[*row, *(float(place == number) for place in range(size))] for number, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < _SINGULAR:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            if row != column:
                factor = rows[row][column]
                rows[row] = [one - factor * other for one, other in zip(rows[row], rows[column], strict=True)]
    return [row[size:] for row in rows]
