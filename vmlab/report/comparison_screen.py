"""A comparison on one screen: the answer, its tables, why, the host on each side, what to mind, and what to do next.

The figures are those that the scenario asks for, or that a user chose; `comparison_text` has all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Verdict
from vmlab.analysis.comparison.meetings import Side
from vmlab.model.axes import axes_words
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Notes, Section
from vmlab.report.bound_text import limit_words
from vmlab.report.comparison_text import (
    compared_sections,
    neighbour_notes,
    row_name,
    side_doubts,
    side_lines,
    side_names,
)
from vmlab.report.figures import mark_words
from vmlab.report.run.latency_text import host_beside
from vmlab.report.run.mind_text import PREFIX, brief_lines, environment_lines, signs_line
from vmlab.report.run.run_screen import WHY, next_line
from vmlab.report.run.run_verdict import Found, verdict_sentence
from vmlab.report.verdicts import difference_notes
from vmlab.report.words import MARK, plural
from vmlab.report.writers.text import text_lines


def comparison_screen(comparison: Comparison, sides: Sequence[Side], named: str) -> str:
    """The plain text, in lines of at most `WIDTH` columns; `named` are the sides as a command names them.

    Without `sides` nothing is said of the hosts.
    """
    comparison, sides = visible_values(comparison), [visible_values(side) for side in sides]
    return "\n".join(text_lines(_blocks(comparison, sides, named))) + "\n"


def _blocks(comparison: Comparison, sides: Sequence[Side], named: str) -> Iterator[Block]:
    names = side_names(comparison.labels)
    asked, every = _asked(comparison), comparison.told()
    yield Notes(side_lines(comparison.labels))
    yield Section("", [Notes(list(candidate_verdicts(comparison)))])
    yield from compared_sections(comparison, metrics={row.metric for row in asked})
    left_out = len(every) - len(asked)
    yield Notes([f"{plural(left_out, 'further metric')}: see --explain"] if left_out else [])
    why = [f"{WHY}{text}" for text in compared_limits(comparison)]
    yield Section("", [Notes(why, indent=" " * len(WHY))])
    corner, heads = _heads(names)
    own = ([cell for part in side.parts for cell in part.cells] for side in sides)
    yield host_beside(corner, dict(zip(heads, own, strict=bool(sides))))
    signs = _signs(comparison, asked)
    yield Section("", [Notes([*_minded(comparison), *signs], indent=" " * len(PREFIX))])
    lines = [
        next_line(f"vmlab compare {named} --explain", "every metric and note"),
        next_line(f"vmlab report {named} -o compared.html", "to share"),
    ]
    yield Section("", [Notes(lines)])


def _heads(names: Sequence[str]) -> tuple[str, list[str]]:
    """The axis that all names of sides begin with, and what follows it in each; without one the names themselves."""
    axes = {name.partition(" ")[0] for name in names if " " in name}
    if len(axes) != 1 or not all(" " in name for name in names):
        return "", list(names)
    return axes.pop(), [name.partition(" ")[2] for name in names]


def _asked(comparison: Comparison) -> list[Row]:
    return comparison.told(comparison.asked) or comparison.told()


def compared_limits(comparison: Comparison) -> Iterator[str]:
    """Which resource was at its limit on each side, as a sentence; nothing where that is not known."""
    names = side_names(comparison.labels)
    if words := limit_words({name: Counter(bound) for name, bound in zip(names, comparison.bound, strict=False)}):
        yield f"{words}."


def candidate_verdicts(comparison: Comparison) -> Iterator[str]:
    """What is known of each candidate, by the figures that the scenario asks for."""
    names, rows = side_names(comparison.labels), _asked(comparison)
    several = len({str(row.axes) for row in rows}) > 1
    for place, name in enumerate(names[1:]):
        found = [
            Found(
                f"{row_name(row)} at {axes_words(row.axes)}" if several else row_name(row),
                row.unit,
                row.differences[place],
            )
            for row in rows
        ]
        yield (
            verdict_sentence(name, names[0], found)
            or f"NOTHING IS COMPARED for {name}: no metric passed on both sides."
        )


def _minded(comparison: Comparison) -> Iterator[str]:
    """The caveats, at most a line each."""
    found = [
        *environment_lines(comparison.accelerators, comparison.ordered),
        *(text.removeprefix(f"{MARK} ") for text in side_doubts(comparison)),
        *neighbour_notes(comparison, side_names(comparison.labels), brief=True),
        *_undelivered(comparison),
    ]
    yield from (f"{PREFIX}{text}" for text in brief_lines(found))


def _undelivered(comparison: Comparison) -> list[str]:
    found = [
        (row_name(row), one)
        for row in comparison.told()
        for one in row.differences
        if one.verdict == Verdict.NOT_DELIVERED
    ]
    return list(difference_notes(found))


def _signs(comparison: Comparison, rows: Sequence[Row]) -> list[str]:
    found = [one for row in rows for one in row.differences if one.percent is not None]
    half = any(figure.spread and figure.spread.half_width is not None for row in rows for figure in row.figures)
    text = signs_line(found, half=half, intervals=True)
    noise = f" · up to the noise of {comparison.noise.run}" if comparison.noise else ""
    words = mark_words(figure for row in rows for figure in row.figures)
    return [f"Signs {line}" for line in (f"{text}{noise}" if text else "", *words) if line]
