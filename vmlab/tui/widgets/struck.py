"""Figures of invalid cells as the console shows them: struck through, with the word for it beside."""

from __future__ import annotations

from vmlab.report.figures import struck_parts
from vmlab.tui.widgets.painted import Piece

_STRUCK = "struck"


def struck_pieces(text: str, tone: str) -> list[Piece]:
    """`text` in its `tone`, with the figures of invalid cells struck through."""
    return [(part, _STRUCK if place % 2 else tone) for place, part in enumerate(struck_parts(text))]
