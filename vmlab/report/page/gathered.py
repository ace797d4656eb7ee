"""What a report needs of a run's store, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.intent import stored_scenario, summary_of
from vmlab.analysis.record.cell_timeline import PhaseSpan
from vmlab.analysis.record.timeline import RunSpans
from vmlab.analysis.shape import RunDocument
from vmlab.model.ordered import of_emulated_disk, ordered_words
from vmlab.model.results import RawOutput
from vmlab.model.run import Phase
from vmlab.model.visible import visible, visible_line, visible_values
from vmlab.report.run.recording_text import domains_of
from vmlab.store.reader import RunReader
from vmlab.store.samples import HostReaders, series

_OF_GUESTS = (("guests' CPU %", "domain_cpu_percent"), ("guests' await ms", "domain_disk_await_ms"))
_MOST_GUESTS = 7
"""Of more guests those that used least CPU time have no line."""
_MOST_TICKS = 150
"""Ticks of a longer cell are averaged to so many: a chart is not wider."""


@dataclass(frozen=True, slots=True)
class Course:
    """One value over a cell: seconds since the cell began, and the values."""

    seconds: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CellCourse:
    """A cell over time: its phases and workloads as name, beginning and end in seconds, and courses by name.

    `marks` are moments at which it was changed, with what it was changed to. `guests` are figures of the host's own
    guests in a recording, each with its label and the course of each guest.
    """

    phases: tuple[tuple[str, float, float], ...]
    workloads: tuple[tuple[str, float, float], ...]
    values: Mapping[str, Course]
    marks: tuple[tuple[float, str], ...] = ()
    guests: tuple[tuple[str, Mapping[str, Course]], ...] = ()


@dataclass(frozen=True, slots=True)
class Gathered:
    """A run for a report; every text in it is visible, so that no terminal and no page obeys it."""

    label: str
    document: RunDocument
    summary: str
    scenario: str
    outputs: tuple[tuple[int, RawOutput], ...]
    courses: Mapping[int, CellCourse]


def gather(label: str, reader: RunReader, names: Sequence[str]) -> Gathered:
    """Read a run, with the courses of the values called `names`. Raises StoreError for a damaged store."""
    texts, read = reader.documents(), run_document(reader)
    document = visible_values(read)
    return Gathered(
        label=visible_line(label),
        document=document,
        summary=visible_line(summary_of(stored_scenario(texts))),
        scenario=visible(texts.get("scenario.yaml", "")),
        outputs=tuple((cell, _visible_output(one)) for cell, one in reader.raw_outputs()),
        courses=_courses(reader, document, names, [one.name for one in domains_of(read)[:_MOST_GUESTS]]),
    )


def each_a_side(runs: Sequence[Gathered]) -> list[Side]:
    """Each of several runs as a side of its own; none for one run alone."""
    return [Side.of(run.label, run.document) for run in runs] if len(runs) > 1 else []


def _visible_output(one: RawOutput) -> RawOutput:
    """Its names on one line each, its text with its line breaks."""
    workload, guest, name = map(visible_line, (one.workload, one.guest, one.name))
    return RawOutput(workload, one.tile, guest, name, visible(one.text))


def _courses(
    reader: RunReader, document: RunDocument, names: Sequence[str], guests: Sequence[str]
) -> dict[int, CellCourse]:
    """Of a visible `document`; `guests` of the host's own have the names that their values are kept by."""
    ordered = ordered_words(document.run.host)
    found = {}
    with HostReaders(reader) as readers:
        every = {one: RunSpans.read(one).phases for one in readers.all()}
        for cell in document.cells:
            of_host = readers.of(cell.hypervisor or "")
            own = [span for span in every.get(of_host, ()) if span.cell == cell.cell]
            if own:
                began = own[0].since
                found[cell.cell] = CellCourse(
                    phases=tuple((visible_line(span.phase), span.since - began, span.until - began) for span in own),
                    workloads=tuple(_worked(cell, own)),
                    values={name: _course(of_host, name, began, _span(name, own, ordered)) for name in names},
                    marks=tuple(_marks(cell, own)),
                    guests=tuple(_guests(of_host, guests, began, (own[0].since, own[-1].until))),
                )
    return found


def _guests(
    reader: RunReader, guests: Sequence[str], began: float, span: tuple[float, float]
) -> Iterator[tuple[str, Mapping[str, Course]]]:
    """The courses of those guests of the host's own that used most CPU time; nothing where none is recorded."""
    for label, metric in _OF_GUESTS:
        courses = {visible_line(name): _course(reader, f"{metric}[{name}]", began, span) for name in guests}
        if known := {name: course for name, course in courses.items() if course.seconds}:
            yield label, known


def _span(name: str, spans: Sequence[PhaseSpan], ordered: Sequence[str]) -> tuple[float, float]:
    """Begin and end of what is drawn of a host's figure; one of an emulated disk counts only while workloads run."""
    if of_emulated_disk(name, ordered):
        spans = [span for span in spans if span.phase == Phase.EXECUTE]
    return (spans[0].since, spans[-1].until) if spans else (0.0, 0.0)


def _marks(cell: CellDocument, spans: Sequence[PhaseSpan]) -> Iterator[tuple[float, str]]:
    """Switches on the cell's clock."""
    start = _start(spans)
    for one in cell.switches:
        if start is not None:
            yield start + one.seconds, f"{one.what} {one.after}"


def _start(spans: Sequence[PhaseSpan]) -> float | None:
    """The common start on the cell's clock."""
    return next((span.since - spans[0].since for span in spans if span.phase == Phase.EXECUTE), None)


def _worked(cell: CellDocument, spans: Sequence[PhaseSpan]) -> Iterator[tuple[str, float, float]]:
    """Workloads on the cell's clock; theirs begins with the common start, which the execute phase begins with."""
    start = _start(spans)
    for one in cell.workloads:
        if start is not None and one.began is not None and one.ended is not None:
            yield f"{one.workload} {one.tile}", start + one.began, start + one.ended


def _course(reader: RunReader, name: str, began: float, span: tuple[float, float]) -> Course:
    read = series(reader, name, *span)
    known = [(mono - began, value) for mono, value in zip(read.mono, read.values, strict=True) if value == value]
    size = max(1, -(-len(known) // _MOST_TICKS))
    parts = [known[place : place + size] for place in range(0, len(known), size)]
    return Course(
        tuple(sum(at for at, _ in part) / len(part) for part in parts),
        tuple(sum(value for _, value in part) / len(part) for part in parts),
    )
