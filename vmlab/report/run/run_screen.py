"""A run on one screen: the answer, its table, why, the host, what to mind, and what to do next.

The page that has all of a run is `run_page`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from vmlab.analysis.figures.table_layout import TableLayout, axis_title, layout_of
from vmlab.analysis.record.accelerators import accelerators_of
from vmlab.analysis.record.bound import idle_disk_words
from vmlab.analysis.shape import RunDocument, RunPart
from vmlab.model.axes import axes_words
from vmlab.model.places import shipped_scenarios
from vmlab.model.quantities import format_seconds
from vmlab.model.run import Outcome
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Notes, Section
from vmlab.report.bound_text import bound_counts, limit_words
from vmlab.report.run.host_rows import shown_groups
from vmlab.report.run.latency_text import host_beside
from vmlab.report.run.mind_text import PREFIX, legend_lines, mind_lines
from vmlab.report.run.run_verdict import needed_repeats, run_verdicts
from vmlab.report.run.score_rows import knees
from vmlab.report.run.shown_tables import block_section
from vmlab.report.run.target_text import missed_sentence
from vmlab.report.run.tiles_text import brief, climb_of
from vmlab.report.run.together_text import together_section
from vmlab.report.words import capital, moment, plural
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH, width_of

WHY = "Why   "
_NEXT_WIDTH = 34
_MOST_WHY = 4
_MOST_BLOCKS = 1
"""Of more blocks the host's figures are left to `run_page`."""


def run_screen(document: RunDocument, name: str = "last") -> str:
    """The plain text, in lines of at most `WIDTH` columns; `name` is how commands call the run."""
    document = visible_values(document)
    return "\n".join(text_lines(_blocks(document, name))) + "\n"


def _blocks(document: RunDocument, name: str) -> Iterator[Block]:
    layout, run = layout_of(document), document.run
    yield Notes([" · ".join(_result(document))])
    yield Notes([" · ".join(_where(run))], cut=True)
    yield Notes([*([f"note: {run.note}"] if run.note else []), *([f"tags: {', '.join(run.tags)}"] if run.tags else [])])
    yield Section("", [Notes(list(answer_lines(document)))])
    for block in layout.blocks:
        yield block_section(document, layout, block)
    yield together_section(document)
    yield Section("", [Notes([f"{WHY}{text}" for text in why_sentences(document)], indent=" " * len(WHY))])
    if len(layout.blocks) <= _MOST_BLOCKS:
        for block in layout.blocks:
            yield host_beside(axis_title(document, layout.main_axis), shown_groups(document, layout, block))
    minded = [f"{PREFIX}{text}" for text in mind_lines(document)]
    signs = [f"Signs {text}" for text in legend_lines(document, layout) if text]
    yield Section("", [Notes([*minded, *signs], indent=" " * len(PREFIX))])
    yield Section("", [Notes(list(next_lines(document, name)), indent=" " * (_NEXT_WIDTH + 2))])


def _result(document: RunDocument) -> Iterator[str]:
    """What ran, how it ended, and under what."""
    run = document.run
    passed = sum(cell.outcome == Outcome.PASSED for cell in document.cells)
    took = _seconds(run)
    within = f" in {format_seconds(took)}" if took is not None else ""
    yield f"{run.scenario or 'a run without a name'}: {passed} of {plural(run.cells_planned, 'cell')} passed{within}"
    if run.outcome != Outcome.PASSED:
        yield f"{run.outcome}: {run.reason}" if run.reason else run.outcome
    if run.control:
        yield "control run"
    yield f"size {run.size}"
    known = accelerators_of(document)
    yield "bare metal" if known and set(known) == {None} else (run.accelerator or "accelerator unknown").upper()


def _seconds(run: RunPart) -> float | None:
    if run.started is None or run.ended is None:
        return None
    return (datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.started)).total_seconds()


def _where(run: RunPart) -> Iterator[str]:
    yield f"run {run.id}"
    yield moment(run.started)
    if cpu := run.host.get("cpu"):
        yield f"{run.host.get('cpus', '?')} x {cpu}"


def answer_lines(document: RunDocument) -> Iterator[str]:
    """What the run answers: missed targets, how many tiles were carried, and what is proven of each candidate."""
    if missed := missed_sentence(document.cells):
        yield f"{capital(missed)}."
    climb = climb_of(document)
    if climb is not None and climb.places:
        yield f"{capital(brief(climb))}."
        yield from run_verdicts(document.tables)
    else:
        found = {told: knees(document, [told]) if document.cells else [] for told in (True, False)}
        yield from (*found[True], *run_verdicts(document.tables), *found[False])


def why_sentences(document: RunDocument) -> Iterator[str]:
    """Which resource was at its limit, by the values that are compared, in one sentence for blocks that are alike."""
    places: dict[str, list[str]] = {}
    layout = layout_of(document)
    for block in layout.blocks:
        groups = shown_groups(document, layout, block)
        words = limit_words({_with_axis(layout, name): bound_counts(cells) for name, cells in groups.items()})
        if words:
            places.setdefault(words, []).append(axes_words(block.axes))
    for words, those in [*places.items()][:_MOST_WHY]:
        place = f"{'; '.join(those)}: " if len(places) > 1 else ""
        each = f", in each of {len(those)} configurations" if len(those) > 1 else ""
        yield f"{place}{words}{each}."
    if len(places) > _MOST_WHY:
        yield f"{len(places) - _MOST_WHY} more are in the tables."
    if note := idle_disk_words(document.cells):
        yield f"{note}."


def _with_axis(layout: TableLayout, name: str) -> str:
    """The value of the axis that is compared; a number or a boolean has the name of the axis before it."""
    return f"{layout.main_axis} {name}" if re.fullmatch(r"-?[\d.]+|true|false", name) else name


def next_lines(document: RunDocument, name: str) -> Iterator[str]:
    """What to do next, each with what it is for."""
    run = document.run
    needed = needed_repeats(document.tables)
    if needed is not None and run.scenario:
        known = (shipped_scenarios() / f"{run.scenario}.yaml").exists()
        size = "" if run.size == "demo" else f" --size {run.size}"
        command = f"vmlab run {run.scenario if known else 'FILE'}{size} --repeats {needed}"
        yield next_line(command, "enough to prove a difference")
    yield next_line(f"vmlab show {name} --explain", "every metric, note and proof")
    yield next_line(f"vmlab report {name} -o run.html", "to share")
    yield next_line("vmlab", "open it in the console")


def next_line(command: str, words: str) -> str:
    """A command with what it is for, which a long one says for itself."""
    line = f"{command:<{_NEXT_WIDTH}}  {words}"
    return line if width_of(line) <= WIDTH else command
