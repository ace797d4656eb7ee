"""The report as one HTML file: no script, nothing from the network, and every text of a run escaped by the tree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lxml import etree

from vmlab.analysis.comparison.compare import Side, compare
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.result_table import Entry, ResultTable, result_tables
from vmlab.analysis.figures.table_layout import in_written_order
from vmlab.analysis.record.accelerators import accelerator_of, accelerators_of
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.integrity.long_work import current
from vmlab.model.errors import UsageError
from vmlab.model.ordered import ordered_words
from vmlab.model.visible import visible_values
from vmlab.report.bound_text import cell_words, unpassed_lines
from vmlab.report.comparison_text import behind_sides, index_notes, side_lines, side_names, side_title
from vmlab.report.figures import unit_word, value_text
from vmlab.report.heading import behind_words, heading
from vmlab.report.page.answer import (
    TARGETS_MISSED,
    answers,
    comparison_answers,
    comparison_row,
    comparison_tables,
    difference_words,
)
from vmlab.report.page.content import (
    Chart,
    axis_charts,
    cell_chart,
    comparison_charts,
    host_charts,
    places_chart,
    result_charts,
)
from vmlab.report.page.elements import Part, chart_figure, chart_grid, el, marked
from vmlab.report.page.gathered import Gathered, each_a_side
from vmlab.report.page.recorded import recorded_parts
from vmlab.report.page.theme import style_sheet
from vmlab.report.run.cell_text import cell_lines, order_sentence
from vmlab.report.run.notice_text import at_best_notes, short_notices
from vmlab.report.run.score_rows import score_notes, score_tables
from vmlab.report.run.table_heads import TableHeads
from vmlab.report.run.tables import table_lines
from vmlab.report.run.target_text import target_table
from vmlab.report.run.tiles_text import TILES_TITLE, tiles_answer
from vmlab.report.run.together_text import TOGETHER_TITLE, together_notes, together_table
from vmlab.report.words import network_words, plural
from vmlab.report.writers.text import UNCUT

MOST_BYTES = 2_000_000
"""The largest report; what does not fit of timelines and raw output is left out, and the page says so."""
_MOST_TIMELINES = 24
_RAW_CHARACTERS = 300_000
_LONGEST_OUTPUT = 20_000
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_report(runs: Sequence[Gathered], sides: Sequence[Side] = ()) -> bytes:
    """The page of one run, or of several as `sides`, by default one a run, of which the first is the baseline."""
    sides = sides or each_a_side(runs)
    timelines, characters = _MOST_TIMELINES, _RAW_CHARACTERS
    while True:
        page = _page(runs, sides, timelines, characters)
        text = etree.tostring(page, method="html", doctype="<!DOCTYPE html>", encoding="utf-8")
        if len(text) <= MOST_BYTES or timelines == characters == 0:
            return text
        timelines, characters = timelines // 2, characters // 2 if characters > 1000 else 0


def _page(runs: Sequence[Gathered], sides: Sequence[Side], timelines: int, characters: int) -> etree._Element:
    title = " and ".join(run.document["run"]["scenario"] or "run" for run in runs[:2])
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{title} - vmlab"),
        el("style", style_sheet(Path(__file__).with_name("page.css").read_text(encoding="utf-8"))),
    )
    body = el("body")
    if sides:
        body.extend(_several(sides))
    for place, run in enumerate(runs):
        body.extend(_run(run, f"n{place}-", timelines, characters // len(runs)))
    return el("html", head, body, lang="en")


def _run(run: Gathered, prefix: str, timelines: int, characters: int) -> Iterator[etree._Element]:
    document = run.document
    words = behind_words(accelerators_of(document), ordered_words(document["run"]["host"]))
    what, *rest = heading(document, UNCUT)
    charts = result_charts(document, prefix)
    whole = places_chart(document, f"{prefix}w-")
    first, more = ([whole], charts) if whole else (charts[:2], charts[2:])
    said = el("div", *(_said(text) for text in _answers(document)), class_="answer")
    yield el("h1", run.summary or what)
    yield el("p", what, class_="sub") if run.summary else el("span")
    for line in rest:
        yield el("p", line, class_="sub")
    yield el("div", said, chart_grid(first, words), class_="first")
    yield from _targets(run)
    yield from _validity(run)
    if document["recording"] is not None:
        yield from recorded_parts(document)
    else:
        yield el("h2", "Figures")
        yield el("p", _meaning(run), class_="note")
        yield from (_table(table) for table in result_tables(document))
    more = [*more, *axis_charts(document, prefix)]
    if more:
        yield chart_grid(more, words)
    yield from _together(document)
    yield from _scores(run)
    hosts = host_charts(document, prefix)
    if hosts:
        recorded = document["recording"] is not None
        yield el("h2", "The host" if recorded else "The host while the workloads ran")
        means = "Means over the time in which the workloads ran, and over repeats."
        means = "Means over the recording." if recorded else means
        saved = [
            cell["host"]["ksm_saved_bytes"]["max"] for cell in document["cells"] if "ksm_saved_bytes" in cell["host"]
        ]
        yield el("p", f"{means} KSM saved nothing." if saved and not any(saved) else means, class_="note")
        yield chart_grid(hosts, words)
    yield el("h2", "Cells")
    yield from _cells(run, prefix, timelines)
    notices = document["run"]["notices"]
    if short_notices(notices) != notices:
        yield el(
            "details", el("summary", f"All {len(notices)} notices"), *(el("p", one, class_="note") for one in notices)
        )
    yield el("h2", "Configuration")
    yield from _configuration(run)
    yield from _raw(run, characters)


def _answers(document: RunDocument) -> Iterable[str]:
    """What the run says; a recording compares nothing."""
    return () if document["recording"] is not None else answers(document)


def _said(text: str) -> etree._Element:
    """A sentence of the answer; one on missed targets stands out."""
    return el("p", *marked(text), **({"class_": "missed"} if text.startswith(TARGETS_MISSED) else {}))


def _targets(run: Gathered) -> Iterator[etree._Element]:
    """What each tile must deliver, and what it came to at each place; nothing without targets."""
    places, rows = target_table(in_written_order(run.document))
    if not rows:
        return
    yield el("h2", "Targets")
    top = el("tr", el("th", "what each tile must deliver"), *(el("th", place) for place in places))
    body = [el("tr", el("th", words), *map(_target, texts)) for words, *texts in rows]
    yield el("div", el("table", el("thead", top), el("tbody", *body)), class_="scroll")


def _together(document: RunDocument) -> Iterator[etree._Element]:
    """Sums over the hosts of a fleet that ran together, and the worst host."""
    if not document["together"]:
        return
    heads, rows = together_table(document)
    top = el("tr", el("th", ""), *(el("th", head) for head in heads))
    body = [el("tr", el("th", label), *(el("td", text) for text in texts)) for label, *texts in rows]
    yield el("h2", TOGETHER_TITLE)
    yield el("div", el("table", el("thead", top), el("tbody", *body)), class_="scroll")
    yield from (el("p", note, class_="note") for note in together_notes(document))


def _target(text: str) -> etree._Element:
    return el("td", text, **({"class_": "missed"} if text.startswith("missed") else {}))


def _meaning(run: Gathered) -> str:
    repeats = max((cell["repeat"] for cell in run.document["cells"]), default=1)
    if repeats == 1:
        return "One reading of each figure: no spread is known, and no difference is proven."
    return (
        f"Means over {plural(repeats, 'repeat')}; ± and bars are the half width of the 95 % confidence interval, "
        "brackets the interval of a difference."
    )


def _validity(run: Gathered) -> Iterator[etree._Element]:
    """What makes the run doubtful: notices, and cells that did not pass."""
    for notice in short_notices(run.document["run"]["notices"]):
        yield el("p", notice, class_="warn")
    for line in unpassed_lines(run.document["cells"]):
        yield el("p", line, class_="warn")


def _table(table: ResultTable) -> etree._Element:
    """A table of the run's layout, each figure with what it is to the baseline."""
    heads = TableHeads(table)
    columns = range(len(table.columns))
    top = el("tr", el("th", ""), *(el("th", heads.column(place)) for place in columns))
    made = el("table", el("caption", heads.caption()), el("thead", top))
    body = etree.SubElement(made, "tbody")
    for row, line in enumerate(table.entries):
        name = el("th", heads.row(row))
        if row in table.absent:
            body.append(el("tr", name, el("td", table.absent[row], colspan=str(len(line)))))
        else:
            body.append(el("tr", name, *(_entry(line[at], heads.text(row, at)) for at in columns)))
    return el("div", made, class_="scroll")


def _scores(run: Gathered) -> Iterator[etree._Element]:
    """How many tiles the host carries, and the scores over tiles; nothing for a run of single tiles."""
    answer, tables = tiles_answer(run.document), score_tables(run.document)
    if answer or tables:
        yield el("h2", TILES_TITLE)
    for text in answer:
        yield el("p", text)
    for table in tables:
        top = el("tr", *(el("th", text) for text in ("", *table.heads)))
        rows = [
            el("tr", el("th", label), *(el("td", *marked(text)) for text in texts))
            for label, texts in zip(table.labels, table.rows, strict=True)
        ]
        made = el("table", el("caption", table.caption), el("thead", top), el("tbody", *rows))
        yield el("div", made, class_="scroll")
    for note in score_notes(run.document):
        yield el("p", note, class_="note")


def _entry(entry: Entry, text: str) -> etree._Element:
    parts = marked(text)
    if entry.difference is not None and entry.figure.spread is not None:
        parts.append(el("small", difference_words(entry.difference)))
    return el("td", *parts)


def _cells(run: Gathered, prefix: str, timelines: int) -> Iterator[etree._Element]:
    cells, of_run = run.document["cells"], run.document["run"]
    if cells:
        yield el("p", order_sentence(run.document), class_="note")
    shown = []
    work = current()
    work.begin(f"drawing the cells of {run.label}", len(cells), "cells")
    for place, cell in enumerate(cells):
        work.step(1)
        parts: list[Part] = [el("h3", f"{cell_words(cell)}: {cell['outcome']}")]
        parts += [el("p", line, class_="note") for line in (*cell["reasons"], *cell_lines(cell))]
        course = run.courses.get(cell["cell"])
        if course is not None and place < timelines:
            svg = cell_chart(course, f"{prefix}t{cell['cell']}-")
            phases = ", ".join(f"{name} {until - since:.1f} s" for name, since, until in course.phases)
            behind = behind_words([accelerator_of(of_run, [cell])], ordered_words(of_run["host"]))
            parts.append(chart_figure(Chart(f"Cell {cell['cell']} over time", svg, f"{phases}."), behind))
        words = f"{plural(len(cell['measurements']), 'figure')} of this cell"
        parts.append(el("details", el("summary", words), _measured(cell)))
        shown.append(el("section", *parts, class_="cell"))
    yield el("div", *shown, class_="cells")
    if len(cells) > timelines:
        yield el("p", f"Timelines of the first {timelines} of {len(cells)} cells are shown.", class_="note")


def _measured(cell: CellDocument) -> etree._Element:
    top = el("tr", *(el("th", text) for text in ("workload", "tile", "guest", "metric", "value", "unit")))
    rows = [
        el(
            "tr",
            *(el("td", text) for text in (one["workload"], str(one["tile"]), one["guest"], one["metric"])),
            el("td", *marked(value_text(one["value"], one["unit"], cell["outcome"]))),
            el("td", unit_word(one["unit"], one["value"])),
        )
        for one in cell["measurements"]
    ]
    return el("div", el("table", el("thead", top), el("tbody", *rows)), class_="scroll")


def _configuration(run: Gathered) -> Iterator[etree._Element]:
    document = run.document
    facts = {key: document["run"][key] for key in ("size", "seed", "accelerator", "axes", "host")}
    yield _folded("Host and run", _json(facts))
    settings: dict[str, list[int]] = {}
    for cell in document["cells"]:
        settings.setdefault(_json(cell["settings"]), []).append(cell["cell"])
    for text, cells in settings.items():
        if text != "{}":
            yield _folded(f"Settings of {'cell' if len(cells) == 1 else 'cells'} {', '.join(map(str, cells))}", text)
    for cell in document["cells"]:
        proofs = [f"{one['guest']}: {one['file']}: {_proof(one)}" for one in cell["cache_proof"]]
        if proofs:
            yield _folded(f"Cache modes proved in cell {cell['cell']}", "\n".join(proofs))
        if cell["network_proof"]:
            carried = "\n".join(map(network_words, cell["network_proof"]))
            yield _folded(f"Networks proved in cell {cell['cell']}", carried)
    if run.scenario:
        yield _folded("Scenario", run.scenario)
    yield _folded("All tables as text", "\n".join(table_lines(document, UNCUT)))


def _proof(proof: Any) -> str:
    verdict = "as asked" if proof["agrees"] else "NOT as asked"
    return f"{proof['expected']} {verdict}, O_DIRECT {'on' if proof['o_direct'] else 'off'}"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)


def _folded(title: str, text: str, class_: str = "") -> etree._Element:
    return el("details", el("summary", title), el("pre", text), **({"class_": class_} if class_ else {}))


def _raw(run: Gathered, characters: int) -> Iterator[etree._Element]:
    """What tools printed, folded; what does not fit is only named."""
    left = characters
    if run.outputs:
        yield el("h2", "What tools printed", class_="raw")
    for cell, output in run.outputs:
        title = f"cell {cell}, tile {output.tile}, {output.workload} on {output.guest}: {output.name}"
        shown = output.text[: min(left, _LONGEST_OUTPUT)]
        cut = len(output.text) - len(shown)
        left -= len(shown)
        if shown:
            tail = f"\n… {cut} more characters; `vmlab show RUN --raw` has them" if cut else ""
            yield _folded(title, f"{shown}{tail}", "raw")
    if left <= 0:
        yield el("p", "More was printed than fits here; `vmlab show RUN --raw` has all of it.", class_="note raw")


def _several(sides: Sequence[Side]) -> Iterator[etree._Element]:
    """The sides against the first one: in a sentence for each place, a picture, a table and the warnings."""
    labels = visible_values([side.label for side in sides])
    names = side_names(labels)
    yield el("h1", side_title(labels))
    if names != labels:
        yield from (el("p", line, class_="sub") for line in side_lines(labels))
    try:
        found: Comparison = replace(visible_values(compare(sides)), labels=tuple(names))
    except UsageError as error:
        yield el("p", str(error), class_="warn")
        return
    said = [el("p", *marked(text)) for text in comparison_answers(found)]
    charts = chart_grid(comparison_charts(found, "c-"), behind_words(found.accelerators, found.ordered))
    yield el("div", el("div", *said, class_="answer"), charts, class_="first")
    for note in (*behind_sides(found), *at_best_notes(found.speed, found.rows)):
        yield el("p", note, class_="note")
    for warning in short_notices(found.warnings):
        yield el("p", warning, class_="warn")
    for note in index_notes(found, found.labels[0]):
        yield el("p", note, class_="note")
    for title, compared in comparison_tables(found):
        if title:
            yield el("h2", title)
        top = el("tr", *(el("th", text) for text in ("axes", "figure", "unit", *found.labels)))
        rows = [el("tr", *(el("td", *marked(text)) for text in comparison_row(row))) for row in compared]
        yield el("div", el("table", el("thead", top), el("tbody", *rows)), class_="scroll")
