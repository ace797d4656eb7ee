"""A comparison in one sentence: what is proven, and where nothing is, why."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.comparison import Comparison, Row
from vmlab.analysis.difference import Difference
from vmlab.report.compared_rows import row_name
from vmlab.report.heading import behind_words
from vmlab.report.verdicts import percent_text, untested_words
from vmlab.report.words import plural

_MOST_NAMED = 4


def headline(comparison: Comparison, metrics: Sequence[str] = ()) -> str:
    """One sentence on the rows of `metrics`, or on all, after what the figures were read under."""
    rows = [row for row in comparison.rows if (not metrics or row.metric in metrics) and row.differences]
    parts = [_of_side(rows, place, label) for place, label in enumerate(comparison.labels[1:])]
    told = "; ".join(part for part in parts if part)
    if not told:
        return "nothing is compared: no figure passed on both sides"
    how = ", ".join(behind_words(comparison.accelerators, comparison.ordered))
    return f"{how[0].upper()}{how[1:]}: {told}" if how else told


def _of_side(rows: Sequence[Row], place: int, label: str) -> str:
    found = [(row, row.differences[place]) for row in rows if row.differences[place].percent is not None]
    if not found:
        return ""
    proven = [(row, one) for row, one in found if one.proven]
    if not proven:
        return f"{label}: no difference is proven{_why(found)}"
    parts = [
        f"{word} {_named([(row, one) for row, one in proven if one.better is better])}"
        for word, better in (("better at", True), ("worse at", False), ("different at", None))
        if any(one.better is better for _, one in proven)
    ]
    rest = len(found) - len(proven)
    more = f"; of {plural(rest, 'other figure')} nothing is proven" if rest else ""
    return f"{label} is proven to be {' and '.join(parts)}{more}"


def _why(found: Sequence[tuple[Row, Difference]]) -> str:
    untested = [one for _, one in found if one.obstacle]
    return f" ({untested_words(max(untested, key=lambda one: one.family))})" if untested else ""


def _named(proven: Sequence[tuple[Row, Difference]]) -> str:
    named = [f"{row_name(row)} ({percent_text(one)})" for row, one in proven[:_MOST_NAMED]]
    rest = len(proven) - len(named)
    return ", ".join([*named, *([f"{rest} more"] if rest else [])])
