"""What was set and not delivered in cells, in the words that stand wherever a figure of them has no verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vmlab.analysis.cell_shape import CellDocument, LeverDocument
from vmlab.model.grouping import grouped
from vmlab.model.quantities import format_bit_rate, format_bytes


def undelivered_of(cells: Iterable[CellDocument]) -> tuple[LeverDocument, ...]:
    """The levers of cells of which less or more was got than their bounds allow."""
    return tuple(one for cell in cells for one in cell.delivered if one.delivered is False)


def amount_words(value: float | str | None, unit: str) -> str:
    """``0.667``, ``30 Mbit/s``: what was set or got of a lever, in its unit."""
    if value is None or isinstance(value, str):
        return value or "?"
    match unit:
        case "bit/s":
            return format_bit_rate(round(value)) if value >= 1 else "0 bit/s"
        case "B":
            return format_bytes(value)
        case "1/s":
            return f"{value:.3g}/s"
        case _:
            return f"{value:.3g} {unit}".rstrip()


def got_words(alike: Sequence[LeverDocument]) -> str:
    """What was got of one lever, from the least to the most; ``?`` where that is not known."""
    known = [one.got for one in alike if one.got is not None]
    amounts = sorted(one for one in known if not isinstance(one, str))
    ends = amounts[:1] + amounts[-1:] if len(amounts) == len(known) else known
    return " to ".join(dict.fromkeys(amount_words(one, alike[0].unit) for one in ends)) or "?"


def bound_words(one: LeverDocument) -> str:
    """``5 %``, or ``5 %, 15 % in a cell``."""
    if one.cell_within_percent == one.within_percent:
        return f"{one.within_percent:g} %"
    return f"{one.within_percent:g} %, {one.cell_within_percent:g} % in a cell"


def lever_words(alike: Sequence[LeverDocument]) -> str:
    """``web pace 12/s to 14/s of 20/s configured (bound 5 %)``: one lever of one place, over cells."""
    one = alike[0]
    configured = amount_words(one.configured, one.unit)
    bound = f"bound {bound_words(one)}" if one.within_percent else "no other will do"
    return f"{one.where} {one.name or one.lever} {got_words(alike)} of {configured} configured ({bound})"


def by_lever(levers: Iterable[LeverDocument]) -> list[list[LeverDocument]]:
    """Those of one lever, one place and one setting together, whatever their tile."""
    return list(grouped(((one.lever, one.where, one.configured), one) for one in levers).values())


def undelivered_words(levers: Iterable[LeverDocument]) -> str:
    """All of them; empty for none."""
    return "; ".join(map(lever_words, by_lever(levers)))
