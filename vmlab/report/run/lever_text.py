"""What was set and what was delivered of it, below a run's tables and among the facts of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.cell_shape import CellDocument, LeverDocument
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.figures.undelivered import (
    amount_words,
    bound_words,
    by_lever,
    got_words,
    undelivered_of,
    undelivered_words,
)
from vmlab.report.blocks import Block, Column, Notes, Section, Table
from vmlab.report.run.notice_text import short_notices
from vmlab.report.words import MARK

_TITLE = "set and delivered"


def lever_section(cells: Sequence[CellDocument]) -> Section:
    """A row for each lever of each guest and workload, over the cells that count; one line where all were delivered.

    What was not measured has no row.
    """
    groups = by_lever(one for cell in cells if counts(cell) for one in cell.delivered if _has_row(one))
    if not groups:
        return Section("", [])
    if all(one.delivered for those in groups for one in those):
        names = ", ".join(dict.fromkeys(those[0].name for those in groups))
        return Section("", [Notes([f"{_TITLE}: {names}, each within its bound"])])
    columns = [
        Column("set", [amount_words(those[0].configured, those[0].unit) for those in groups]),
        Column("got", [got_words(those) for those in groups]),
        Column("bound", [bound_words(those[0]) for those in groups]),
        Column("delivered", [_verdict(those) for those in groups]),
    ]
    labels = [f"{those[0].where}: {those[0].name}" for those in groups]
    return Section(_TITLE, _with_reasons(Table("", labels, columns, wide=True), groups))


def _has_row(one: LeverDocument) -> bool:
    """Whether something was measured; what is proved or read back exactly fails the cell, or makes it invalid, else."""
    return one.got is not None and (one.within_percent > 0 or not one.delivered)


def _with_reasons(table: Table, groups: Sequence[Sequence[LeverDocument]]) -> list[Block]:
    reasons: dict[str, list[str]] = {}
    for those in groups:
        for because in dict.fromkeys(one.because for one in those if one.delivered is None):
            reasons.setdefault(because, []).append(f"{those[0].where}, {those[0].name}")
    told = (f"{'; '.join(named)}: {why}" for why, named in reasons.items())
    return [table, Notes([f"{MARK} cannot tell whether it was delivered: {text}" for text in told])]


def _verdict(those: Sequence[LeverDocument]) -> str:
    """``yes``, ``NO``, or how many readings say so."""
    told = [one.delivered for one in those]
    for answer, word in ((False, "NO"), (True, "yes")):
        if answer in told:
            count = told.count(answer)
            return word if count == len(told) else f"{word}, {count} of {len(told)}"
    return "cannot tell"


def undelivered_lines(cells: Sequence[CellDocument]) -> list[str]:
    """What was set and not delivered in cells that count, three or more of a kind as one line."""
    found = [(cell.cell, undelivered_words(undelivered_of([cell]))) for cell in cells if counts(cell)]
    lines = short_notices([f"cell {number}: not delivered: {words}" for number, words in found if words])
    return [f"{MARK} {line}" for line in lines]


def lever_lines(cell: CellDocument) -> Iterator[str]:
    """The levers of a cell that were measured, a line each."""
    for those in by_lever(filter(_has_row, cell.delivered)):
        one, why = those[0], "; ".join(dict.fromkeys(each.because for each in those if each.because))
        amounts = f"set {amount_words(one.configured, one.unit)}, got {got_words(those)}"
        told = _verdict(those)
        verdict = ", ".join(filter(None, [{"yes": "delivered", "NO": "NOT DELIVERED"}.get(told, told), why]))
        yield f"{one.where}, {one.name}: {amounts} (bound {bound_words(one)}): {verdict}"
