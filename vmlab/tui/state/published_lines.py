"""What was published that a scenario measures again, as lines of pieces for the room that there is."""

from __future__ import annotations

from vmlab.model.scenarios.reference import Reference
from vmlab.system.text_width import wrapped
from vmlab.tui.state.load_map import Piece

_FEWEST = 4
"""So many claims are shown whatever the room."""


def published_lines(reference: Reference, width: int, room: int) -> list[list[Piece]]:
    """Its source, as many claims as fit into `room` lines of `width` columns, then what is different here.

    The first claims are shown in any case, and what is different here only where there is room for all of it.
    """
    said = list(dict.fromkeys(one.there or one.say for one in reference.claims if one.source == "publication"))
    lines: list[list[Piece]] = [[("Published", "title")]]
    lines += [[(text, "quiet")] for text in wrapped(reference.source, width)[:2]]
    shown = 0
    for claim in said:
        of_claim = _bullet(claim, width)
        more = shown + 1 < len(said)
        if shown >= _FEWEST and len(lines) + len(of_claim) + more > room:
            break
        lines += of_claim
        shown += 1
    if shown < len(said):
        return [*lines, [(f"  and {len(said) - shown} more claims", "quiet")]]
    here: list[list[Piece]] = [[("Different here", "title")]]
    here += [[(text, "quiet")] for text in wrapped(reference.here, width)]
    return [*lines, *here] if reference.here and len(lines) + len(here) <= room else lines


def _bullet(text: str, width: int) -> list[list[Piece]]:
    first, *others = wrapped(text, max(20, width - 2))
    return [[("- ", "accent"), (first, "plain")], *([("  ", "plain"), (text, "plain")] for text in others)]
