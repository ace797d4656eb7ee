"""Which settings of two-level levers are measured, so that few of them tell what each lever is worth.

The base design is that of Plackett and Burman (Biometrika 33, 1946): the cyclic shifts of one row and a row of levels
that are all the default's. For 2, 4 and 8 settings it is a regular fraction. It confuses effects with pairs of levers,
so each setting has its mirror image, in which every lever is at its other level: the fold-over of Box and Wilson
(Journal of the Royal Statistical Society B 13, 1951). With it a main effect is clear of all interactions of two levers
(resolution IV): Box, Hunter and Hunter, Statistics for Experimenters, 2nd edition (2005), chapters 6 and 7;
NIST/SEMATECH e-Handbook of Statistical Methods, 5.3.3.5 and 5.3.3.8.1.
"""

from __future__ import annotations

import math

_ROWS = {2: "+", 4: "++-", 8: "+++-+--", 12: "++-+++---+-"}
"""The first row of the base design of so many settings; one column more is that of the fold-over."""
FEWEST_LEVERS, MOST_LEVERS = 2, max(_ROWS)
_FREEDOM = 8
"""Degrees of freedom at the least, with which Student's t is 2.31, 18 % more than with any number."""
_LETTERS = "abcdefghijkl"

Levels = tuple[int, ...]
"""The level of each lever: -1 is the default, 1 the other one."""


def screening(levers: int) -> tuple[Levels, ...]:
    """The settings of the smallest design that holds so many levers, each different; the second half mirrors the first.

    Each lever is at each level in half of them, and any two levers are at each pair of levels in a quarter. Raises
    ValueError for fewer than `FEWEST_LEVERS` and more than `MOST_LEVERS`.
    """
    if not FEWEST_LEVERS <= levers <= MOST_LEVERS:
        raise ValueError(f"a screening takes {FEWEST_LEVERS} to {MOST_LEVERS} levers")
    size = next(one for one in _ROWS if one >= levers)
    row = [1 if sign == "+" else -1 for sign in _ROWS[size]]
    cyclic = [[*row[len(row) - shift :], *row[: len(row) - shift]] for shift in range(len(row))]
    base = [tuple([*one, -1][:levers]) for one in [*cyclic, [-1] * len(row)]]
    return (*base, *(mirrored(one) for one in base))


def mirrored(levels: Levels) -> Levels:
    """Every lever at its other level."""
    return tuple(-level for level in levels)


def usual_blocks(levers: int) -> int:
    """How often all settings are measured, so that the intervals of effects have enough degrees of freedom."""
    pairs = len(screening(levers)) // 2
    return 1 + math.ceil(_FREEDOM / pairs)


def setting_name(levels: Levels) -> str:
    """The letters of the levers that are at their other level, after Yates (1937); ``default`` for none."""
    return "".join(letter for letter, level in zip(_LETTERS, levels, strict=False) if level > 0) or DEFAULT


def letter_of(lever: int) -> str:
    """The letter of a lever, by its number from 0."""
    return _LETTERS[lever]


DEFAULT = "default"
"""The setting in which no lever is changed."""
