"""A run beside its publication in plain text: the printed tables in their own shape, and the claims with answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from vmlab.analysis.reference.claims import AnsweredClaim
from vmlab.analysis.reference.published import AnsweredFigure, BesideReference
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.ordered import behind
from vmlab.model.scenarios.reference import Claim, PublishedFigure, Unasked
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Column, Notes, Section, Table, Text
from vmlab.report.figures import doubted, figure_text
from vmlab.report.heading import heading
from vmlab.report.run.run_notes import absent_notes
from vmlab.report.run.run_page import run_sections
from vmlab.report.run.shown_tables import metric_words
from vmlab.report.verdicts import look_notes
from vmlab.report.words import MARK, NOT_MEASURED, plural, relative_number
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH

_MINUTES = "m s"
"""The unit of figures such as ``115m25s``; the run's are in seconds beside them."""
_OUR_BOUND = "The bound is ours."
OF_EMULATION = "of emulation"
"""What stands before figures that answer nothing, as emulation alone decides them."""
_LEVELS = " / "
"""Separates the headings of a printed column, the outermost first."""


def answer_words(answer: str) -> str:
    """The answer to a claim in words that stand alone."""
    return "not reproduced" if answer == "not" else answer


def reference_text(beside: BesideReference, width: int = WIDTH) -> str:
    """The whole text; no line is wider than `width`."""
    beside = visible_values(beside)
    document, reference = beside.document, beside.reference
    lines = heading(document) if beside.has_run else [f"{document.run.scenario} · no run"]
    above: list[Block] = [
        Notes(lines) if beside.has_run else Text(lines[0][:width]),
        Text(f"published: {reference.source}"),
        *([Text(f"measured there on {reference.host}")] if reference.host else []),
        *([Text(f"here: {reference.here}")] if reference.here else []),
    ]
    sections: list[Block] = [*_departures(beside), *printed_tables(beside.figures, "yours" if beside.has_run else None)]
    if beside.has_run and not beside.figures:
        # Charts have no numbers: the run's own table stands for them.
        sections += run_sections(document)
    sections.append(Section("", [Notes(_notes(beside))]))
    sections.append(Section("claims", [one for answered in beside.claims for one in _claim(answered, beside.has_run)]))
    sections.append(Section("not asked here", [one for finding in reference.unasked for one in _unasked(finding)]))
    return "\n".join(text_lines([*above, *sections], width)) + "\n"


def printed_tables(figures: Sequence[AnsweredFigure], ours: str | None) -> Iterator[Section]:
    """Each printed table, in parts where it has rows and columns that have nothing to do with each other.

    `ours` is the heading of the run's figures, which stand beside the printed ones; None leaves them out.
    """
    for name, those in grouped((_place(one)[0], one) for one in figures).items():
        yield Section("", [Text(name), *(_part(part, ours) for part in _parts(those))])


def _departures(beside: BesideReference) -> Iterator[Section]:
    if beside.departures:
        words = "this run does not compare with what was published, since amounts differ; only relative values may"
        yield Section("", [Text(f"{MARK} {words}"), Notes([f"  {one}" for one in beside.departures], indent="    ")])


def _place(figure: AnsweredFigure) -> tuple[str, str, str]:
    """Table, row and column as they are printed; without them the place in the run's own tables."""
    parts = [part.strip() for part in figure.published.where.split("|")]
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    published = figure.published
    columns = axes_words(published.columns) if published.columns else metric_words(published.metric)
    return published.where, axes_words(published.rows), columns


def _parts(figures: Sequence[AnsweredFigure]) -> list[list[AnsweredFigure]]:
    """Figures that share rows or columns, with each other or by way of others, in the order of their first ones."""
    parts: list[tuple[set[str], set[str], list[AnsweredFigure]]] = []
    for figure in figures:
        _, row, column = _place(figure)
        joined = [part for part in parts if row in part[0] or column in part[1]]
        rows, columns, those = joined[0] if joined else (set[str](), set[str](), list[AnsweredFigure]())
        for other in joined[1:]:
            rows |= other[0]
            columns |= other[1]
            those += other[2]
            parts.remove(other)
        rows.add(row)
        columns.add(column)
        those.append(figure)
        if not joined:
            parts.append((rows, columns, those))
    order = {id(figure): number for number, figure in enumerate(figures)}
    return [sorted(those, key=lambda figure: order[id(figure)]) for _, _, those in parts]


def _part(figures: Sequence[AnsweredFigure], ours: str | None) -> Table:
    """Under each printed column theirs and ours, and ours in percent of theirs where they compare.

    A relative figure that was printed in one place with a measured one stands behind it in brackets.
    """
    at = grouped((_place(figure)[1:], figure) for figure in figures)
    rows, columns = dict.fromkeys(row for row, _ in at), dict.fromkeys(column for _, column in at)
    grids: list[Column] = []
    for column in columns:
        above = tuple(column.split(_LEVELS))
        cells = [at.get((row, column), []) for row in rows]
        grids.append(Column("theirs", [_joined(_theirs(one, column) for one in cell) for cell in cells], above=above))
        if ours is None:
            continue
        grids.append(Column(ours, [_joined(_ours(one) for one in cell) for cell in cells], above=above))
        percents = [next((one.percent for one in cell if one.percent is not None), None) for cell in cells]
        if any(percent is not None for percent in percents):
            texts = ["" if percent is None else f"{percent:.0f} %" for percent in percents]
            grids.append(Column("of theirs", texts, above=above))
    return Table("", list(rows), grids)


def _joined(texts: Iterator[str]) -> str:
    first, *others = list(texts) or [""]
    if first == NOT_MEASURED and all(text == NOT_MEASURED for text in others):
        return NOT_MEASURED
    return " ".join([first, *(f"({text})" for text in others)])


def _theirs(figure: AnsweredFigure, column: str) -> str:
    published = figure.published
    in_heading = f"({published.unit})" in column or column.endswith(published.unit)
    text = published.value if in_heading else _with_unit(published)
    return f"{text} {MARK}" if published.corrected is not None else text


def _with_unit(published: PublishedFigure) -> str:
    """The printed figure and its unit; minutes and seconds, such as ``115m25s``, have theirs within."""
    return published.value if published.unit in ("1", _MINUTES) else f"{published.value} {published.unit}"


def _ours(figure: AnsweredFigure) -> str:
    spread, relative = figure.ours.spread, figure.published.relative
    if spread is None:
        return NOT_MEASURED if figure.reason else figure_text(figure.ours)
    if relative is not None:
        text = doubted(relative_number(spread.mean, relative), figure.ours)
    elif figure.published.unit == _MINUTES:
        text = figure_text(figure.ours, "s", named=True)
    else:
        text = figure_text(figure.ours)
    words = behind(figure.accelerator, figure.ordered)
    return f"{text} {', '.join(words)}" if words else text


def error_notes(figures: Sequence[AnsweredFigure]) -> list[str]:
    """A sentence for each error of the publication: what is printed, what is right, and why."""
    notes = []
    for figure in figures:
        published = figure.published
        if published.corrected is not None:
            _, row, column = _place(figure)
            printed = _with_unit(published)
            notes.append(
                f"{MARK} {row}, {column}: {printed} is printed, {published.corrected} is right: {published.why}"
            )
    return notes


def _notes(beside: BesideReference) -> list[str]:
    """Errors of the publication, then why figures are missing, each reason once."""
    notes = error_notes(beside.figures)
    if not beside.has_run:
        return [*notes, *absent_notes(beside.document)]
    reasons = Counter(figure.reason for figure in beside.figures if figure.reason)
    notes += look_notes(beside.document.run)
    return [*notes, *(f"{plural(count, 'value')} without yours: {reason}" for reason, count in reasons.items())]


def _claim(answered: AnsweredClaim, has_run: bool) -> list[Block]:
    """A claim with its answer, what the publication says of it, and what the answer rests on or takes."""
    claim = answered.claim
    of_source = [words for words in (source_words(claim), contradicted_words(claim), restated_words(claim)) if words]
    if not has_run:
        return [Text(claim.say), _below([*of_source, _takes(answered)])]
    hint = _hint(answered)
    emulated = [f"{OF_EMULATION}: {one}" for one in answered.of_emulation]
    below = [*of_source, *answered.because, *emulated, *([hint] if hint else [])]
    return [Text(f"{answer_words(answered.answer)}: {claim.say}"), _below(below)]


def _below(texts: Sequence[str]) -> Notes:
    return Notes([f"    {text}" for text in texts], indent="      ")


def source_words(claim: Claim) -> str:
    """Where the publication makes a claim, what it says there, and whose the bound is; empty where nothing is said."""
    if claim.source == "ours":
        return "ours: the publication does not say so"
    said = ": ".join(part for part in (claim.where, claim.there) if part)
    return " ".join(part for part in (said, _OUR_BOUND if claim.bound == "ours" else "") if part)


def restated_words(claim: Claim) -> str:
    """Which claim it restates; empty for one that stands for itself."""
    other = claim.restates
    if other is None:
        return ""
    where = f" of {other.scenario}" if other.scenario else ""
    return f"restates, and counts with, the claim{where} {other.say!r}: {other.why}"


def contradicted_words(claim: Claim) -> str:
    """That the publication's own figures contradict a claim; empty where they do not."""
    return f"{MARK} contradicted by its own values: {claim.contradicted}" if claim.contradicted else ""


def _unasked(finding: Unasked) -> list[Block]:
    return [Text(finding.say), _below([f"{finding.where}; not asked: {finding.why}"])]


def _hint(answered: AnsweredClaim) -> str:
    """What the readings of a claim without an answer point to, and how many it takes; empty where neither is known."""
    parts = [f"it points to: {answer_words(answered.points_to)}"] if answered.points_to else []
    parts += [_takes(answered)] if answered.too_few else []
    return "; ".join(parts)


def _takes(answered: AnsweredClaim) -> str:
    needed = answered.readings_needed
    return f"an answer takes {needed} repeats at least (--repeats {needed})"
