"""The notices of a cell that doubt its figures for noise: each form writes its line and recognises it in a record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import NamedTuple

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"


def notice_of_cell(cell: int, text: str) -> str:
    """A line on one cell, as it stands in the run's record; cells count from 1."""
    return f"cell {cell}: {text}"


class Recognised(NamedTuple):
    """What a recorded notice says: which cell it is about, by how many percent, and the limit it names, as printed."""

    cell: int
    percent: int
    limit: str


@dataclass(frozen=True)
class NoiseNotice:
    """One form of such a notice: `text` has the places of its figures, as `str.format` takes them, `percent` among
    them.

    `summary` is the line that takes the place of many, with places for ``among``, ``cells`` and ``limit``. Records of
    earlier versions have the same `text`: where it is changed, the old one stays in `NOISE_NOTICES`.
    """

    text: str
    summary: str

    def write(self, **figures: float) -> str:
        """The line without its cell; see `notice_of_cell`."""
        return self.text.format(**figures)

    def recognise(self, notice: str) -> Recognised | None:
        """What a recorded line of this form says; None for any other line."""
        match = self._pattern.fullmatch(notice)
        if match is None:
            return None
        found = match.groupdict()
        return Recognised(int(found["cell"]), int(found["percent"]), found.get("limit", ""))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        line = notice_of_cell(0, "").replace("0", "{cell}", 1) + self.text
        parts = (
            re.escape(literal) + ("" if name is None else f"(?P<{name}>{_NUMBER})")
            for literal, name, _, _ in Formatter().parse(line)
        )
        return re.compile("".join(parts))


_SPEED = "the host's speed moved by {percent:.0f} %; {limit:g} % is the limit"
_SPEEDS = "the host's speed, by the yardstick, moved by {among} around {cells}; {limit} % is the limit"
MOVED_OVER_CELL = NoiseNotice(
    f"the yardstick took {{before:.3f}} s before the cell and {{after:.3f}} s after it: {_SPEED}", _SPEEDS
)
MOVED_FROM_OTHERS = NoiseNotice(
    f"the yardstick took {{around:.3f}} s around it, {{usual:.3f}} s around others: {_SPEED}", _SPEEDS
)
OTHER_WORK = NoiseNotice(
    "the host's other work took {percent:.0f} % of the CPUs while the workloads ran",
    "the host's other work took {among} of the CPUs while the workloads of {cells} ran",
)
NOISE_NOTICES = (MOVED_OVER_CELL, MOVED_FROM_OTHERS, OTHER_WORK)
