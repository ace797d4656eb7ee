"""What to mind of a run's figures, at most a line each; `run_page` has each of these in full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.figures.table_layout import TableLayout
from vmlab.analysis.record.accelerators import accelerators_of
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.sample_size import ALPHA
from vmlab.model.ordered import EMULATED_DISK, LIMITED_HOST, ORDERED_HOST, ordered_words
from vmlab.model.run import EMULATED
from vmlab.report.bound_text import replaced_lines, unpassed_lines
from vmlab.report.run.lever_text import undelivered_lines
from vmlab.report.run.notice_text import brief_notices
from vmlab.report.run.run_notes import absent_notes, meanings, odd_cells
from vmlab.report.run.shown_tables import intervals_shown, named_figures
from vmlab.report.run.together_text import together_notes
from vmlab.report.verdicts import UNPROVEN, UNTESTED, look_notes, outlier_notes
from vmlab.report.words import MARK
from vmlab.system.text_width import WIDTH, shortened, width_of

_MOST = 8
PREFIX = "Mind  "
_CELLS = re.compile(r"cells ((?:\d+, )*\d+ and \d+): ")


def mind_lines(document: RunDocument) -> list[str]:
    """The caveats; why cells did not pass is whole, all others are cut to a line."""
    found = [
        *environment_lines(accelerators_of(document), ordered_words(document.run.host)),
        *(line.removeprefix(f"{MARK} ") for line in undelivered_lines(document.cells)),
        *replaced_lines(document.cells),
        *absent_notes(document),
        *brief_notices(document.run.notices),
        *together_notes(document),
        *look_notes(document.run),
        *outlier_notes(named_figures(document.tables)),
        *odd_cells(document),
    ]
    return [*unpassed_lines(document.cells), *brief_lines(found)]


def brief_lines(found: Iterable[str]) -> list[str]:
    """Each caveat cut to a line behind `PREFIX`; of many the first, and how many more there are."""
    room = WIDTH - len(PREFIX)
    shown = [first_clauses(_with_count(text, room), room) for text in dict.fromkeys(found)]
    more = len(shown) - _MOST
    return [*shown[:_MOST], f"{more} more: see --explain"] if more > 1 else shown


def _with_count(text: str, room: int) -> str:
    """A caveat on several cells that does not fit, with their number in place of the list: what it says is not cut."""
    cells = _CELLS.match(text)
    if cells is None or width_of(text) <= room:
        return text
    return f"{len(re.findall(r'[0-9]+', cells[1]))} cells: {text[cells.end() :]}"


def first_clauses(text: str, width: int) -> str:
    """As many clauses of a sentence as fit; of a first one that does not fit its beginning, with an ellipsis."""
    ends = [found.start() for found in re.finditer(r"[:;,] | \(", text) if found.start() <= width]
    if width_of(text) <= width or not ends or ends[-1] < width // 3:
        return shortened(text, width)
    return text[: ends[-1]]


def environment_lines(accelerators: Sequence[str | None], ordered: Sequence[str]) -> Iterator[str]:
    """What stands behind all figures, in one line."""
    parts = []
    if EMULATED in accelerators:
        parts.append("guests emulated (TCG)" if len({*accelerators}) == 1 else "some guests emulated (TCG)")
    parts += ["emulated disk"] if EMULATED_DISK in ordered else []
    parts += [LIMITED_HOST] if ORDERED_HOST in ordered else []
    if parts:
        yield f"{', '.join(parts)}: compare, do not quote"


def legend_lines(document: RunDocument, layout: TableLayout) -> Iterator[str]:
    """What the signs of the tables mean."""
    found = [
        entry.difference
        for table in document.tables
        for *_, entry in table.each()
        if entry.difference is not None and entry.difference.percent is not None
    ]
    half = any(cell.repeat > 1 for cell in document.cells) and layout.best_of is None
    yield signs_line(found, half=half, intervals=intervals_shown(layout))
    yield from meanings(document, layout)


def signs_line(found: Sequence[Difference], *, half: bool, intervals: bool) -> str:
    """``± and (…): 95 %, Wilcoxon signed rank, Holm over 4 · ~ not proven``."""
    parts = ["±: 95 %"] if half else []
    tested = [one for one in found if one.interval and one.verdict != Verdict.SAME]
    if tested and intervals:
        least = f"{100 * (1 - ALPHA / max(one.level_divisor for one in tested)):.4g} %"
        tests = " or ".join(dict.fromkeys(str(one.test) for one in tested))
        family = max(one.family for one in tested)
        corrected = f", Holm over {family}" if family > 1 else ""
        before = "± and " if half and least == "95 %" else ""
        parts = [*([] if before else parts), f"{before}(…): {least}, {tests}{corrected}"]
    if any(one.verdict == Verdict.NOT_PROVEN for one in found):
        parts.append(f"{UNPROVEN} not proven")
    if any(one.obstacle for one in found):
        parts.append(f"{UNTESTED} too few measurements")
    return " · ".join(parts)
