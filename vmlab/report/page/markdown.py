"""The report as Markdown, for an issue or a wiki: the answer, the tables, what bound the cells, the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vmlab.analysis.advice.advice import advise
from vmlab.analysis.comparison.compare import Side, compare
from vmlab.analysis.comparison.result_table import Entry, ResultTable, result_tables
from vmlab.analysis.figures.table_layout import in_written_order
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError
from vmlab.model.visible import visible_values
from vmlab.report.bound_text import cell_words
from vmlab.report.comparison_text import behind_sides, index_notes, side_lines, side_names, side_title
from vmlab.report.figures import struck_parts
from vmlab.report.heading import heading
from vmlab.report.page.answer import (
    answers,
    comparison_answers,
    comparison_row,
    comparison_tables,
    difference_words,
)
from vmlab.report.page.gathered import Gathered, each_a_side
from vmlab.report.run.cell_text import cell_lines, order_sentence
from vmlab.report.run.notice_text import at_best_notes, short_notices
from vmlab.report.run.recording_text import (
    ADVICE_TITLE,
    GUESTS_TITLE,
    NO_ADVICE,
    NO_GUEST,
    Grid,
    disk_grid,
    domain_grid,
    domains_of,
    host_grid,
    limits_of,
)
from vmlab.report.run.score_rows import score_notes, score_tables
from vmlab.report.run.table_heads import TableHeads
from vmlab.report.run.target_text import target_table
from vmlab.report.run.tiles_text import TILES_TITLE, tiles_answer
from vmlab.report.run.together_text import TOGETHER_TITLE, together_notes, together_table
from vmlab.report.writers.text import UNCUT

_MARKS = re.compile(r"([\\`*_\[\]<>#|~&$@])|^(\s*)([-+=])|^(\s*\d+)([.)])(?=\s|$)")
"""Signs that Markdown, or a site's own additions to it such as mentions, would obey; some only at the beginning."""


def markdown_report(runs: Sequence[Gathered], sides: Sequence[Side] = ()) -> bytes:
    """The text of one run, or of several as `sides`, by default one a run, of which the first is the baseline."""
    sides = sides or each_a_side(runs)
    lines = list(_several(sides)) if sides else []
    for run in runs:
        lines += _run(run)
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "replace")


def escaped(text: str) -> str:
    """Text of a run, with nothing that Markdown would obey."""
    return _MARKS.sub(_escape, text)


def _marked(text: str) -> str:
    """Escaped, with the figures of invalid cells struck through."""
    return "".join(
        f"~~{escaped(part)}~~" if place % 2 else escaped(part) for place, part in enumerate(struck_parts(text))
    )


def _escape(found: re.Match[str]) -> str:
    if found[1] == "<":
        # Not every page that shows Markdown knows the backslash before it.
        return "&lt;"
    return f"{found[2] or found[4] or ''}\\{found[1] or found[3] or found[5]}"


def _run(run: Gathered) -> Iterator[str]:
    document = run.document
    what, *rest = heading(document, UNCUT)
    yield from (f"# {escaped(run.summary or what)}", "")
    if run.summary:
        yield from (escaped(what), "")
    for line in rest:
        yield from (escaped(line), "")
    if document["recording"] is None:
        first, *others = answers(document)
        yield from (f"**{_marked(first)}**", "")
        yield from (f"- {_marked(text)}" for text in others)
        yield ""
    notices = document["run"]["notices"]
    for notice in short_notices(notices):
        yield f"> {escaped(notice)}"
    places, rows = target_table(in_written_order(document))
    if rows:
        yield from ("", "## Targets", "")
        yield from (_row(["what each tile must deliver", *places]), _row(["---"] * (len(places) + 1), plain=True))
        yield from map(_row, rows)
    yield ""
    if document["recording"] is None:
        yield from ("## Figures", "")
        for table in result_tables(document):
            yield from _table(table)
    else:
        yield from _recorded(document)
    yield from _together(document)
    yield from _scores(run)
    if document["recording"] is None:
        yield from _cells(document)
    if short_notices(notices) != notices:
        yield from ("", "All notices:", "", *(f"- {escaped(one)}" for one in notices))
    yield ""


def _cells(document: RunDocument) -> Iterator[str]:
    yield from ("## Cells", "")
    if document["cells"]:
        yield from (escaped(order_sentence(document)), "")
    for cell in document["cells"]:
        reasons = f": {'; '.join(cell['reasons'])}" if cell["reasons"] else ""
        yield f"- {escaped(f'{cell_words(cell)}: ')}{cell['outcome']}{escaped(reasons)}"
        yield from (f"  - {escaped(line)}" for line in cell_lines(cell))


def _recorded(document: RunDocument) -> Iterator[str]:
    """The host's means, its own guests, their disks, and advice."""
    for cell in document["cells"]:
        yield from ("## The host", "", *_grid(host_grid(cell)))
        yield from (*(f"- {escaped(text)}" for text in (*limits_of(cell["bound_by"]), *cell["reasons"])), "")
    domains = domains_of(document)
    yield from (f"## {GUESTS_TITLE}", "")
    if not domains:
        yield from (NO_GUEST, "")
        return
    yield from (*_grid(domain_grid(domains)), *_grid(disk_grid(domains)), f"## {ADVICE_TITLE}", "")
    advised = advise(document)
    for one in advised.advice:
        yield from (f"{escaped(f'{one.subject}: {one.matters}')}", "")
        yield from (f"- {escaped(why)}" for why in one.why)
        yield from (f"- measure it: {escaped(one.run)}", "")
    if not advised.advice:
        yield from (NO_ADVICE, "")
    yield from (f"- no advice for {escaped(f'{one.subject}: {one.matters}')}" for one in advised.none)
    yield ""


def _grid(grid: Grid) -> Iterator[str]:
    if not grid.names:
        return
    heads = [grid.head, *(column.heading for column in grid.columns)]
    yield from (_row(heads), _row(["---", *(["---:"] * len(grid.columns))], plain=True))
    for place, name in enumerate(grid.names):
        yield _row([name, *(column.texts[place] for column in grid.columns)])
    yield ""


def _table(table: ResultTable) -> Iterator[str]:
    heads = TableHeads(table)
    columns = range(len(table.columns))
    yield from (f"### {escaped(heads.caption())}", "")
    yield from (_row(["", *map(heads.column, columns)]), _row(["---", *(["---:"] * len(columns))], plain=True))
    for row, line in enumerate(table.entries):
        absent = table.absent.get(row)
        texts = [_entry(line[at], heads.text(row, at)) if absent is None else absent for at in columns]
        yield _row([heads.row(row), *texts])
    yield ""


def _together(document: RunDocument) -> Iterator[str]:
    """Sums over the hosts of a fleet that ran together, and the worst host."""
    if not document["together"]:
        return
    heads, rows = together_table(document)
    yield from (f"## {TOGETHER_TITLE}", "", _row(["", *heads]), _row(["---", *(["---:"] * len(heads))], plain=True))
    yield from (_row(row) for row in rows)
    yield from ("", *(f"- {escaped(note)}" for note in together_notes(document)), "")


def _scores(run: Gathered) -> Iterator[str]:
    """How many tiles the host carries, and the scores over tiles; nothing for a run of single tiles."""
    answer, tables = tiles_answer(run.document), score_tables(run.document)
    if answer or tables:
        yield from (f"## {TILES_TITLE}", "")
    for text in answer:
        yield from (escaped(text), "")
    for table in tables:
        yield from (f"### {escaped(table.caption)}", "")
        yield from (_row(["", *table.heads]), _row(["---", *(["---:"] * len(table.heads))], plain=True))
        yield from (_row([label, *texts]) for label, texts in zip(table.labels, table.rows, strict=True))
        yield ""
    for note in score_notes(run.document):
        yield f"- {escaped(note)}"
    yield ""


def _entry(entry: Entry, text: str) -> str:
    if entry.difference is None or entry.figure.spread is None:
        return text
    return f"{text}, {difference_words(entry.difference)}"


def _row(texts: Sequence[str], *, plain: bool = False) -> str:
    return "| " + " | ".join(text if plain else _marked(text) for text in texts) + " |"


def _several(sides: Sequence[Side]) -> Iterator[str]:
    labels = visible_values([side.label for side in sides])
    names = side_names(labels)
    yield from (f"# {escaped(side_title(labels))}", "")
    if names != labels:
        yield from (part for line in side_lines(labels) for part in (escaped(line), ""))
    try:
        found = replace(visible_values(compare(sides)), labels=tuple(names))
    except UsageError as error:
        yield from (f"> {escaped(str(error))}", "")
        return
    yield from (f"- {_marked(text)}" for text in comparison_answers(found))
    yield ""
    yield from (f"> {escaped(warning)}" for warning in short_notices(found.warnings))
    yield from ("", *(f"- {escaped(note)}" for note in index_notes(found, found.labels[0])), "")
    for title, rows in comparison_tables(found):
        labels = ["axes", "figure", "unit", *found.labels]
        yield from ((f"## {escaped(title)}", "") if title else ())
        yield from (_row(labels), _row(["---"] * len(labels), plain=True))
        yield from (_row(comparison_row(row)) for row in rows)
        yield ""
    for note in (*behind_sides(found), *at_best_notes(found.speed, found.rows)):
        yield from (escaped(note), "")
