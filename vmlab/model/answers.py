"""What a run answers to commands, as JSON values."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from vmlab.model.checked import Reading
from vmlab.model.event_fields import Axes, CellToCome


class CellLeft(TypedDict):
    """A cell that will run."""

    index: int
    axes: Axes
    repeat: int


class ComingAnswer(TypedDict):
    """As `coming` every cell to come, as `cells` those that are not skipped."""

    cells: list[CellLeft]
    coming: list[CellToCome]


class SwitchAnswer(TypedDict):
    """The fields of a `Switched` event and what was switched; of KSM without pauses and drained pages."""

    cell: int
    what: str
    before: str
    after: str
    pauses_ms: NotRequired[dict[str, Reading]]
    drained_seconds: NotRequired[Reading]
    drained_bytes: NotRequired[int | None]


class TilesAnswer(TypedDict):
    """The change of a loop's tiles that has begun."""

    cell: int
    before: int
    after: int


class LoopEndAnswer(TypedDict):
    """The loop of this cell ends."""

    cell: int
    ended: bool
