"""A picture of where the time of one cell went, from a run's record: ``python -m screenshots.cell_trace [RUN] [CELL]``.

RUN is as in ``vmlab show``, else the newest; CELL is a number, else the last. Writes cell-trace.svg of the docs:
the parts of the cell, its steps on the host and in each guest, and the CPU time of host and guests. Nothing is made up:
steps and samples are those of the store. Steps shorter than `SHORTEST` are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import accumulate, pairwise
from pathlib import Path

from lxml import etree

from vmlab.analysis.document import run_document
from vmlab.analysis.record.phases import CellTime, StepTime, run_time
from vmlab.model.cell_event import CellStarted
from vmlab.model.errors import UsageError, VmlabError
from vmlab.model.run import Part, Phase
from vmlab.model.sample import Series
from vmlab.report.page.drawing import Line, Span, Timeline, Track, timeline
from vmlab.report.page.theme import style_sheet
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run
from vmlab.store.samples import series

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "development" / "cell-trace.svg"
SHORTEST = 0.02
"""Seconds of a step that can still be seen."""
_PARTS = "parts of the cell"
_WIDTH = 11.0
_GUEST_CPU = "guest_cpu_percent["
_HOST_CPU = (("user", "cpu_user_percent"), ("system", "cpu_system_percent"), ("iowait", "cpu_iowait_percent"))
_PAGE = resources.files("vmlab.report.page").joinpath("page.css")
_COLOURS_END = "@media print"
"""The page's style sheet begins with its colours, for light and dark; a picture has nothing else of it."""


def spans_of(cell: CellTime, worked: Iterable[Span]) -> list[Span]:
    """The cell's parts in one row, a row for each step at each of its places, and `worked` where they began."""
    parts = [Span(_PARTS, since, until, name) for name, since, until in parts_of(cell) if name != Part.OTHER]
    steps = [
        Span(_row(step), step.began, step.began + step.seconds)
        for step in cell.steps
        if step.began is not None and step.seconds is not None and step.seconds >= SHORTEST
    ]
    return parts + sorted([*steps, *worked], key=lambda span: span.since)


def parts_of(cell: CellTime) -> Iterator[tuple[str, float, float]]:
    """Each part with its beginning and end, in seconds after the beginning of the cell."""
    ends = accumulate(cell.parts.values(), initial=0.0)
    for name, (since, until) in zip(cell.parts, pairwise(ends), strict=True):
        yield name, since, until


def _row(step: StepTime) -> str:
    return f"{_at(step.place, step.tile) or 'host'}: {step.step}"


def _at(place: str, tile: int) -> str:
    return f"{place} {tile}" if tile > 1 else place


def worked(reader: RunReader, cell: CellTime) -> Iterator[Span]:
    """Each workload from the common start to its end; that start is where the execute phase begins."""
    start = next((since for name, since, _ in parts_of(cell) if name == Phase.EXECUTE), None)
    (found,) = (one for one in run_document(reader).cells if one.cell == cell.cell)
    for one in found.workloads:
        if start is not None and one.began is not None and one.ended is not None:
            row = f"{_at(one.workload, one.tile)}: run"
            yield Span(row, start + one.began, start + one.ended)


def cpu_tracks(reader: RunReader, since: float, until: float) -> Iterator[Track]:
    """CPU time of the host, in percent of all its CPUs, and of each guest, in percent of one."""
    host = [(word, _known(series(reader, name, since, until), since)) for word, name in _HOST_CPU]
    if any(seconds for _, (seconds, _) in host):
        lines = [Line(word, values=values) for word, (_, values) in host]
        yield Track("host's CPU %", [seconds for _, (seconds, _) in host], lines, stacked=True, top=100.0)
    names = {name for layout in reader.sample_layouts().values() for name in layout.names}
    guests = [
        (name.removeprefix(_GUEST_CPU).rstrip("]"), _known(series(reader, name, since, until), since))
        for name in sorted(names)
        if name.startswith(_GUEST_CPU)
    ]
    known = [(name, seconds, values) for name, (seconds, values) in guests if seconds]
    if known:
        lines = [Line(name, values=values) for name, _, values in known]
        yield Track("guests' CPU %", [seconds for _, seconds, _ in known], lines)


def _known(read: Series, since: float) -> tuple[list[float], list[float]]:
    """Seconds and values of the ticks that have one."""
    known = [(mono - since, value) for mono, value in zip(read.mono, read.values, strict=True) if value == value]
    return [at for at, _ in known], [value for _, value in known]


def picture(reader: RunReader, number: int | None) -> etree._Element:
    """The cell `number` of a run as an SVG that stands alone. Raises UsageError, StoreError."""
    time = run_time(reader, number)
    if not time.cells:
        raise UsageError(f"run {time.run} has no cell")
    cell = time.cells[-1]
    starts = (event for _, event in reader.events(kinds=(CellStarted,)))
    began = next(event.mono for event in starts if isinstance(event, CellStarted) and event.cell == cell.cell)
    drawn = Timeline(spans_of(cell, worked(reader, cell)), list(cpu_tracks(reader, began, began + cell.seconds)))
    root = timeline(drawn, "trace-", width=_WIDTH)
    title = etree.SubElement(root, "{http://www.w3.org/2000/svg}title")
    title.text = f"cell {cell.cell} of run {time.run}: {cell.seconds:.1f} s"
    style = etree.SubElement(root, "{http://www.w3.org/2000/svg}style")
    colours = style_sheet(_PAGE.read_text(encoding="utf-8")).partition(_COLOURS_END)[0]
    style.text = colours + "text { font-family: sans-serif; }"
    return root


def main() -> None:
    """Write the picture."""
    words = sys.argv[1:]
    try:
        reader = RunReader(resolve_run(words[0] if words else "last"))
        made = picture(reader, int(words[1]) if len(words) > 1 else None)
    except VmlabError as error:
        sys.exit(str(error))
    PICTURE.write_bytes(etree.tostring(made, xml_declaration=True, encoding="utf-8"))
    sys.stdout.write(f"{PICTURE}\n")


if __name__ == "__main__":
    main()
