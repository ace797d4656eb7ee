"""The page of a report: the answer and a picture first, then what every medium has, the cells, and the set-up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.figures.table_layout import in_written_order
from vmlab.analysis.record.accelerators import accelerator_of, accelerators_of
from vmlab.analysis.shape import RunDocument
from vmlab.integrity.long_work import current
from vmlab.model.errors import UsageError
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import jsonable
from vmlab.model.ordered import ordered_title, ordered_words
from vmlab.model.run import WARM_UP
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Chart, Heading, Notes, Section, Text
from vmlab.report.bound_text import cell_words
from vmlab.report.comparison_screen import candidate_verdicts, compared_limits
from vmlab.report.comparison_text import comparison_blocks, side_doubts, side_lines, side_names, side_title
from vmlab.report.heading import behind_words, heading
from vmlab.report.page.answer import answered_metrics, answers, comparison_answers, missed_words
from vmlab.report.page.gathered import Gathered, each_a_side
from vmlab.report.run.cell_text import cell_facts, cell_sections
from vmlab.report.run.latency_text import latency_sentence
from vmlab.report.run.recording_text import advice_section, recording_answer
from vmlab.report.run.run_page import doubts, run_sections
from vmlab.report.run.target_text import target_table
from vmlab.report.words import MARK, capital, order_words, plural
from vmlab.report.writers.html import html_page
from vmlab.report.writers.markdown import markdown_page

_CONFIGURED = ("size", "seed", "accelerator", "axes", "host")
_MOST_TIMELINES = 24
_MOST_DOUBTS = 5
"""Notes above the figures; a run with more has all of them below."""
_OF_CELLS = re.compile(rf"{re.escape(MARK)} |cells? \d")
_RAW_CHARACTERS = 300_000
_LONGEST_OUTPUT = 20_000
_NO_TIMELINE = "No further timeline has room on this page."
_NO_TABLES = "No further tables of cells have room on this page; `vmlab show RUN:CELL` has them."
_NO_SETTINGS = "No further settings have room on this page; `vmlab show RUN --json` has all of them."
_NO_OUTPUT = "More was printed than fits here; `vmlab show RUN --raw` has all of it."


def html_report(runs: Sequence[Gathered], sides: Sequence[Side] = ()) -> bytes:
    """The page of one run, or of several as `sides`, by default one a run, of which the first is the baseline."""
    title = " and ".join(run.document.run.scenario or "run" for run in runs[:2])
    return html_page(title, _blocks(runs, sides, drawn=True))


def markdown_report(runs: Sequence[Gathered], sides: Sequence[Side] = ()) -> bytes:
    """The same as Markdown, without charts."""
    return markdown_page(_blocks(runs, sides, drawn=False))


def _blocks(runs: Sequence[Gathered], sides: Sequence[Side], *, drawn: bool) -> list[Block]:
    sides = sides or each_a_side(runs)
    found = list(_several(sides, drawn=drawn)) if sides else []
    for run in runs:
        found += _run(run, _RAW_CHARACTERS // len(runs), drawn=drawn)
    return found


def _run(run: Gathered, characters: int, *, drawn: bool) -> Iterator[Block]:
    document = run.document
    recorded = document.recording is not None
    what, *rest = heading(document)
    told = doubts(document)
    first, more, host = _charts(document) if drawn else ([], [], [])
    yield Heading(run.summary or what)
    yield Notes([*([what] if run.summary else []), *rest], tone="sub")
    said = recording_answer(document) or answers(document)
    yield Section("", [Notes(said, tone="answer", stands_out=missed_words(document)), *first])
    yield target_table(in_written_order(document))
    yield Section("", [Notes(_first_doubts(told), tone="warn")])
    meaning = [] if recorded else [Text(_meaning(document), tone="note")]
    tables: list[Block] = [*meaning, *run_sections(document, told), *more]
    if recorded:
        # It has no answer but its figures.
        yield from (*tables, advice_section(document))
    else:
        yield Section("all metrics", tables, folded=True)
    if host:
        title = f"{'the host' if recorded else 'the host while the workloads ran'} ({plural(len(host), 'chart')})"
        yield Section(title, [_of_host(document), *host], folded=not recorded)
    if document.cells:
        yield Section(f"cells ({len(document.cells)})", list(_cells(run, drawn=drawn)), folded=True)
    notices = list(dict.fromkeys([*told, *document.run.notices]))
    if len(told) > _MOST_DOUBTS or len(notices) > len(told):
        yield Section("all notices", [Notes(notices)], folded=True)
    yield Section("configuration", list(_configuration(run)), folded=True)
    yield Section("what tools printed", list(_raw(run, characters)), folded=True)


def _charts(document: RunDocument) -> tuple[list[Chart], list[Chart], list[Chart]]:
    """The first picture, what else there is of results, and the host."""
    # Its library takes a second to load, and may be missing.
    from vmlab.report.page.content import axis_charts, host_charts, places_chart, result_charts

    charts, whole = result_charts(document.tables), places_chart(document.tables)
    first, more = ([whole], charts) if whole else (charts[:1], charts[1:])
    behind = behind_words(accelerators_of(document), ordered_words(document.run.host))
    host = host_charts(document)
    return _titled(first, behind), _titled([*more, *axis_charts(document)], behind), _titled(host, behind)


def _titled(charts: Iterable[Chart], behind: Sequence[str]) -> list[Chart]:
    """Charts with what stands behind their figures in their titles."""
    return [replace(chart, title=ordered_title(chart.title, behind)) for chart in charts]


def _first_doubts(told: Sequence[str]) -> list[str]:
    """Those that stand above the figures, first what is wrong with cells, and how many there are besides."""
    ordered = sorted(told, key=lambda one: not _OF_CELLS.match(one))
    if len(ordered) <= _MOST_DOUBTS:
        return ordered
    return [*ordered[: _MOST_DOUBTS - 1], f"{len(ordered) - _MOST_DOUBTS + 1} more are below, under All notices."]


def _meaning(document: RunDocument) -> str:
    repeats = max((cell.repeat for cell in document.cells), default=1)
    if repeats == 1:
        return "One measurement of each metric: no spread is known, and no difference is proven."
    return (
        f"Means over {plural(repeats, 'repeat')}; ± and bars are the half width of the 95 % confidence interval, "
        "brackets the interval of a difference."
    )


def _of_host(document: RunDocument) -> Text:
    recorded = document.recording is not None
    means = "Means over the time in which the workloads ran, and over repeats."
    means = "Means over the recording." if recorded else means
    saved = [cell.host["ksm_saved_bytes"].max for cell in document.cells if "ksm_saved_bytes" in cell.host]
    return Text(f"{means} KSM saved nothing." if saved and not any(saved) else means, tone="note")


def _cells(run: Gathered, *, drawn: bool) -> Iterator[Block]:
    cells = run.document.cells
    if cells:
        yield Text(_order(run.document), tone="note")
    work = current()
    work.begin(f"drawing the cells of {run.label}", len(cells), "cells")
    for place, cell in enumerate(cells):
        work.step(1)
        timeline = [_timeline(run, cell)] if drawn and place < _MOST_TIMELINES and cell.cell in run.courses else []
        ran_at = [] if cell.warm_up else [f"Block {cell.block}, place {cell.position}."]
        facts = [*cell.reasons, *ran_at, *cell_facts(cell)]
        latency = latency_sentence(cell)
        notes = Notes([*facts, *([latency] if latency else [])])
        tables = [replace(one, spare=_NO_TABLES) if one.folded else one for one in cell_sections(cell)]
        yield Section(f"{cell_words(cell)}: {cell.outcome}", [notes, *timeline, *tables])
    if drawn and len(cells) > _MOST_TIMELINES:
        yield Text(f"Timelines of the first {_MOST_TIMELINES} of {len(cells)} cells are shown.", tone="note")


def _order(document: RunDocument) -> str:
    """In how many blocks, in which order and by which seed the cells ran; they are listed in that order."""
    run, cells = document.run, document.cells
    blocks = {cell.block for cell in cells} - {WARM_UP}
    after = ", after a warm-up" if any(cell.warm_up for cell in cells) else ""
    what = "one block" if len(blocks) <= 1 else f"{len(blocks)} blocks, each of which is one repeat of all cells"
    how = order_words(run.order, run.seed)
    return f"The cells ran in {what}, {how}{after}; they are listed in the order in which they ran."


def _timeline(run: Gathered, cell: CellDocument) -> Chart:
    from vmlab.report.page.content import cell_chart

    of_run = run.document.run
    behind = behind_words([accelerator_of(of_run, [cell])], ordered_words(of_run.host))
    chart = cell_chart(run.courses[cell.cell], f"Cell {cell.cell} over time")
    return replace(chart, title=ordered_title(chart.title, behind), spare=_NO_TIMELINE)


def _configuration(run: Gathered) -> Iterator[Block]:
    document = run.document
    yield _folded("Host and run", _json({key: jsonable(getattr(document.run, key)) for key in _CONFIGURED}))
    yield from _settings([(cell.cell, cell.settings) for cell in document.cells if cell.settings])
    if run.scenario:
        yield _folded("Scenario", run.scenario)


def _settings(known: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Block]:
    """The settings of cells: what all have once, and besides what is a cell's own."""
    every = [settings for _, settings in known]
    if not every:
        return
    shared = _in_all(every) if any(one != every[0] for one in every) else {}
    if shared:
        yield _folded("Settings of all cells", _json(shared), _NO_SETTINGS)
    own = grouped((_json(_besides(settings, shared)), number) for number, settings in known)
    for text, cells in own.items():
        if text != "{}":
            what = f"{'cell' if len(cells) == 1 else 'cells'} {', '.join(map(str, cells))}"
            yield _folded(f"Settings of {what}{' besides' if shared else ''}", text, _NO_SETTINGS)


def _in_all(every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all of some settings have in common, key by key."""
    first, *others = every
    found: dict[str, Any] = {}
    for key, value in first.items():
        values = [value, *(one.get(key) for one in others)]
        if all(one == value for one in values):
            found[key] = value
        elif all(isinstance(one, dict) for one in values) and (inner := _in_all(values)):
            found[key] = inner
    return found


def _besides(settings: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """What settings have that is not `shared`."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in shared:
            found[key] = value
        elif value != shared[key]:
            found[key] = _besides(value, shared[key])
    return found


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)


def _folded(title: str, text: str, spare: str = "") -> Section:
    return Section(title, [Text(text, tone="pre")], folded=True, long=True, spare=spare)


def _raw(run: Gathered, characters: int) -> Iterator[Block]:
    """What tools printed, folded; what does not fit is only named."""
    left = characters
    for cell, output in run.outputs:
        title = f"cell {cell}, tile {output.tile}, {output.workload} on {output.guest}: {output.name}"
        shown = output.text[: min(left, _LONGEST_OUTPUT)]
        cut = len(output.text) - len(shown)
        left -= len(shown)
        if shown:
            tail = f"\n… {cut} more characters; `vmlab show RUN --raw` has them" if cut else ""
            yield _folded(title, f"{shown}{tail}", _NO_OUTPUT)
    if left <= 0:
        yield Text(_NO_OUTPUT, tone="note")


def _several(sides: Sequence[Side], *, drawn: bool) -> Iterator[Block]:
    """The sides against the first one: in a sentence for each place, a picture, the tables and the notes."""
    labels = visible_values([side.label for side in sides])
    yield Heading(side_title(labels))
    try:
        compared = visible_values(compare(sides))
    except UsageError as error:
        yield from (Notes(side_lines(labels), tone="sub"), Text(str(error), tone="warn"))
        return
    found = replace(compared, labels=tuple(side_names(labels)))
    charts: list[Chart] = []
    if drawn:
        from vmlab.report.page.content import comparison_charts

        charts = _titled(comparison_charts(found), behind_words(found.accelerators, found.ordered))
    told = side_doubts(found)
    sides_named, *figures = comparison_blocks(compared, answered_metrics(found), told)
    yield sides_named
    answer = [*candidate_verdicts(found), *comparison_answers(found), *map(capital, compared_limits(found))]
    yield Section("", [Notes(answer, tone="answer"), *charts])
    yield Section("", [Notes(told, tone="warn")])
    yield Section("all metrics", figures, folded=True)
