"""A run in order: the one place that says which sections stand where, and the notes below its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.figures.table_layout import TableLayout, layout_of
from vmlab.analysis.shape import RunDocument
from vmlab.model.run import OF_HOST
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Notes, Section, Text
from vmlab.report.bound_text import limits_section, replaced_lines, unpassed_lines
from vmlab.report.heading import heading
from vmlab.report.headline import explanation
from vmlab.report.run.host_rows import host_section
from vmlab.report.run.latency_text import latency_section
from vmlab.report.run.lever_text import lever_section, undelivered_lines
from vmlab.report.run.notice_text import short_notices
from vmlab.report.run.recording_text import recording_answer, recording_sections
from vmlab.report.run.run_notes import absent_notes, meanings, odd_cells
from vmlab.report.run.run_screen import answer_lines
from vmlab.report.run.score_rows import score_notes, score_section
from vmlab.report.run.shown_tables import block_section, intervals_shown, named_differences, named_figures
from vmlab.report.run.target_text import missed_sentence, target_section
from vmlab.report.run.tiles_text import tiles_section
from vmlab.report.run.together_text import together_notes, together_section
from vmlab.report.verdicts import difference_notes, look_notes, outlier_notes
from vmlab.report.words import MARK
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH


def run_table(document: RunDocument, width: int = WIDTH, *, answered: bool = False) -> str:
    """The plain text of all that is known of a run; no line is wider than `width`, which should be 60 or more.

    A run that has no cell yet is its heading alone. Where it is to be `answered`, what it answers is below its name.
    """
    document = visible_values(document)
    what, *where = heading(document)
    said = list(answer_lines(document)) if answered else [missed_sentence(document.cells)]
    above: list[Block] = [Notes([what, *said, *where])] if answered else [Notes([what, *where]), *map(Text, said)]
    above.append(Section("", [Notes(recording_answer(document), tone="")]))
    return "\n".join(text_lines([*above, *run_sections(document)], width)) + "\n"


def tables_alone(document: RunDocument, width: int = WIDTH) -> str:
    """The tables of a run's results as plain text, and nothing else; a recording has its own."""
    document = visible_values(document)
    layout = layout_of(document)
    if document.run.size == OF_HOST:
        sections = list(recording_sections(document))
    else:
        sections = [block_section(document, layout, block) for block in layout.blocks]
    return "\n".join(text_lines(sections, width)).lstrip("\n") + "\n"


def run_sections(document: RunDocument, told: Collection[str] = ()) -> Iterator[Section]:
    """What every medium has of a run below its heading; every text of the document has to be visible.

    `told` are notes that stand elsewhere on the page.
    """
    layout = layout_of(document)
    if document.run.size == OF_HOST:
        yield from recording_sections(document)
        yield _noted(short_notices(document.run.notices), told)
        return
    for block in layout.blocks:
        yield block_section(document, layout, block)
        yield host_section(document, layout, block)
        yield latency_section(document, layout, block)
    yield together_section(document)
    yield tiles_section(document)
    yield target_section(document.cells)
    yield lever_section(document.cells)
    yield score_section(document)
    yield limits_section(document.cells)
    yield _noted(
        [*_notes(document, layout), *doubts(document), *together_notes(document), *score_notes(document)], told
    )
    yield Section("", [Notes(_answers(document, layout), tone="")])


def _noted(notes: Sequence[str], told: Collection[str]) -> Section:
    return Section("", [Notes([note for note in dict.fromkeys(notes) if note not in told])])


def _answers(document: RunDocument, layout: TableLayout) -> list[str]:
    """What differs between the values of the first axis, and what the host was short of; [] without repeats."""
    if not layout.simple or all(cell.repeat <= 1 for cell in document.cells):
        return []
    sides = sides_by_axis(document)
    return explanation(compare(sides)) if len(sides) > 1 else []


def doubts(document: RunDocument) -> list[str]:
    """What makes a run doubtful: cells that did not pass or get what was set, values without cells, and notices."""
    unpassed = (f"{MARK} {line}" for line in unpassed_lines(document.cells))
    again, undelivered = replaced_lines(document.cells), undelivered_lines(document.cells)
    return [*unpassed, *undelivered, *again, *absent_notes(document), *short_notices(document.run.notices)]


def _notes(document: RunDocument, layout: TableLayout) -> Iterator[str]:
    tables = document.tables
    yield from meanings(document, layout)
    if any(cell.repeat > 1 for cell in document.cells) and layout.best_of is None:
        yield "±: half width of the 95 % confidence interval of the mean over the repeats"
    yield from look_notes(document.run)
    yield from difference_notes(named_differences(tables), intervals=intervals_shown(layout))
    yield from outlier_notes(named_figures(tables))
    yield from odd_cells(document)
