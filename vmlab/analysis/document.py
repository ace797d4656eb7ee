"""Makes the document of a run, ``vmlab.run/1``, from its store; of a recording that of the host's own guests, each with
its means, and of the host's disks below their files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.result_table import result_tables
from vmlab.analysis.figures.counted_cells import was_switched
from vmlab.analysis.figures.intent import (
    absent_of,
    axes_of,
    entries_of,
    kinds_of,
    stored_scenario,
    table_of,
    targets_said,
    until_of,
    written_of,
)
from vmlab.analysis.figures.over_tiles import Directions
from vmlab.analysis.record.bound import COMPARED_FIGURES, bound_by, vcpus_of
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.coverage import Window
from vmlab.analysis.record.fleet_hosts import host_documents, host_notices
from vmlab.analysis.record.host_means import host_of, signs_of_stages, span_documents, stages_of
from vmlab.analysis.record.levers import CpuSeen, judged_over_repeats, lever_documents
from vmlab.analysis.record.remade import remade_notices
from vmlab.analysis.record.timeline import RunTimeline, demand_cell
from vmlab.analysis.record.traffic import disk_traffic
from vmlab.analysis.shape import (
    BesideDocument,
    DomainDiskDocument,
    DomainDocument,
    ExtensionDocument,
    RecordingDocument,
    RunDocument,
    RunPart,
)
from vmlab.analysis.speed_spans import SpeedTrace
from vmlab.analysis.statistics.sample_size import level_divisor
from vmlab.analysis.tiles.knee import SHARE_PERCENT
from vmlab.analysis.tiles.over_hosts import together_documents
from vmlab.analysis.tiles.scores import scores_of
from vmlab.analysis.tiles.target_results import target_documents
from vmlab.analysis.tiles.throughput import throughput_metrics
from vmlab.model.cell_event import (
    DiskLatencyRead,
    DiskSilent,
    GuestStateChanged,
    SnapshotMade,
    SnapshotProgressed,
    StepEnded,
    WorkloadProgressed,
)
from vmlab.model.domain import Domain
from vmlab.model.event import (
    AnotherRunSeen,
    CellsReplanned,
    CommandReceived,
    CommonStartSet,
    Event,
    RepeatsEnded,
    StartAwaited,
)
from vmlab.model.jsonable import carried, common_fields, fields_of, time_of_day
from vmlab.model.results import Summary
from vmlab.model.run import OF_HOST, RUNNING, Outcome
from vmlab.model.sample import Sample, split_name
from vmlab.store.life import is_alive, note_of
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE, tags_of
from vmlab.store.samples import HostReaders
from vmlab.telemetry.domains.domain_rates import METRICS, OF_DISK
from vmlab.telemetry.domains.traced_disks import OF_TRACE
from vmlab.telemetry.host.disk import METRICS as OF_HOST_DISK
from vmlab.telemetry.sample_summary import seconds_within, summarise

_UNTOLD = (
    CellsReplanned,
    CommandReceived,
    CommonStartSet,
    DiskSilent,
    GuestStateChanged,
    SnapshotMade,
    SnapshotProgressed,
    StartAwaited,
    StepEnded,
    WorkloadProgressed,
)
"""Most of a run's events are of these kinds, and no document needs them."""


def run_document(reader: RunReader) -> RunDocument:
    """Everything that is known of a run, whether it ended, still runs or broke off.

    Raises StoreError for a damaged store.
    """
    document, timeline = _document(reader, _UNTOLD)
    signs, speed = signs_of_stages(reader), defaultdict[str, SpeedTrace](SpeedTrace)
    cells, recording = list(document.cells), None
    with HostReaders(reader) as readers:
        for place, known, window in _executed(timeline):
            cell, of_host = cells[place], readers.of(known.host)
            samples = window.samples(of_host)
            speed[known.host].add(window.ticks(samples))
            if document.run.size == OF_HOST:
                recording = recording_document(samples, timeline.domains.values(), *window.host)
            if was_switched(cell):
                seen = replace(cell, spans=list(span_documents(known, samples)), disk_latency=None)
            else:
                seen = _watched(cell, samples, window)
            # A loop's stages come again and again, and are of no one span.
            stages = [] if cell.looped else list(stages_of(of_host, known, signs.get(cell.cell, ())))
            delivered = lever_documents(seen, CpuSeen.of(seen, known, samples, window))
            cells[place] = replace(seen, stages=stages, delivered=delivered)
    return laid_out(
        _with_speed(replace(document, cells=judged_over_repeats(cells), recording=recording), timeline, speed)
    )


def stored_document(store: Path) -> RunDocument:
    """The `run_document` of the run in a store. Raises UsageError where there is none, StoreError for a damaged one."""
    with RunReader(store) as reader:
        return run_document(reader)


def compared_document(reader: RunReader) -> RunDocument:
    """As `run_document`, with what a comparison of runs reads, which is a fifth of the work.

    Of the host's figures it has `COMPARED_FIGURES` alone, and it has no stages, no traffic, no latency
    of disks, no bounds and no tables.
    """
    document, timeline = _document(reader, (*_UNTOLD, DiskLatencyRead))
    cells, speed = list(document.cells), defaultdict[str, SpeedTrace](SpeedTrace)
    with HostReaders(reader) as readers:
        for place, known, window in _executed(timeline):
            if not was_switched(cells[place]):
                every = window.samples(readers.of(known.host))
                delivered = lever_documents(cells[place], CpuSeen.of(cells[place], known, every, window))
                samples = list(window.ticks(every))
                speed[known.host].add(samples)
                host = host_of(samples, *window.host, COMPARED_FIGURES)
                cells[place] = replace(cells[place], host=host, delivered=delivered)
    return _with_speed(replace(document, cells=judged_over_repeats(cells)), timeline, speed)


def _executed(timeline: RunTimeline) -> Iterator[tuple[int, CellTimeline, Window]]:
    """The cells whose workloads ran, each with its place among all, and the span of its figures."""
    for place, known in enumerate(timeline.cells.values()):
        if (window := known.window) is not None:
            yield place, known, window


def _with_speed(document: RunDocument, timeline: RunTimeline, traces: defaultdict[str, SpeedTrace]) -> RunDocument:
    """The document with the speed of each cell by the trace of its host, and that of a run that had one host."""
    run = document.run
    if not run.hosts:
        run = replace(run, speed=traces[""].document([window.host for _, _, window in _executed(timeline)]))
    # An ordered host has the last CPUs of those that there are.
    cpus = (run.host.get("ordered") or {}).get("cpus")
    cells = [
        _cell_with_speed(cell, known, traces[known.host], cpus)
        for cell, known in zip(document.cells, timeline.cells.values(), strict=True)
    ]
    return replace(document, run=run, cells=cells)


def _cell_with_speed(cell: CellDocument, known: CellTimeline, trace: SpeedTrace, cpus: int | None) -> CellDocument:
    workloads, speed = [], None
    for one in cell.workloads:
        span = known.workloads[one.tile, one.workload].span
        workloads.append(one if span is None else replace(one, speed_percent=trace.mean_percent(*span, cpus)))
    if known.execution is not None and (wall := cell.wall_seconds) is not None and not cell.looped:
        began = min((one.first.mono for one in known.workloads.values() if one.first is not None), default=None)
        if began is not None:
            speed = trace.mean_percent(began, began + wall, cpus)
    return replace(cell, workloads=workloads, speed_percent=speed)


def _document(reader: RunReader, untold: tuple[type[Event], ...]) -> tuple[RunDocument, RunTimeline]:
    """The document as far as events of other kinds than `untold` tell it, and the timeline of the run."""
    # Checked before the events are read: a run that ends in between is then shown as its last event says.
    alive = is_alive(reader.path.parent)
    timeline = RunTimeline.read(reader, tuple(kind for kind in Event.registry.values() if kind not in untold))
    unended = RUNNING if alive and timeline.ended is None else str(Outcome.ABORTED)
    texts = reader.documents()
    said = stored_scenario(texts)
    directions, targets = Directions(kinds_of(said), entries_of(said)), targets_said(said)
    cells = []
    block: Counter[int] = Counter()
    asked = _asked(said, timeline.repeats_ended)
    looks = asked["until"].table_looks if asked["until"] else 1
    divisor = level_divisor(len(timeline.extensions), looks)
    for known in timeline.cells.values():
        cell = known.document(unended, directions)
        block[cell.block] += 1
        told = target_documents(cell, targets)
        cells.append(replace(cell, position=block[cell.block], targets=told, level_divisor=divisor))
    run = _run_part(reader.path.parent.name, timeline, cells, asked, unended)
    run = replace(run, written=written_of(texts), **_labels(reader.path))
    return RunDocument(run=run, cells=cells, together=together_documents(timeline, cells)), timeline


def _labels(store: Path) -> dict[str, Any]:
    """What users said of a run, by the names of `RunPart`; nothing of a store that lies outside of its folder."""
    if store.name != STORE:
        return {}
    folder, tags = store.absolute().parent, list[str]()
    # Whoever may not read the names reads the run all the same.
    with suppress(OSError):
        tags = tags_of(folder)
    return {"note": note_of(folder), "tags": tags}


def unrun_document(scenario: str, texts: Mapping[str, str]) -> RunDocument:
    """The document of a scenario without a run: its axes and its table, and no cell. `texts` are as a run stores them.

    Its id is empty, and it has no outcome.
    """
    return RunDocument(run=RunPart(id="", scenario=scenario, **_asked(stored_scenario(texts), None)))


def _asked(said: Mapping[str, Any], ended: RepeatsEnded | None) -> dict[str, Any]:
    """What the stored scenario says of a run, by the names of `RunPart`, and what came of its repeats."""
    return {
        "until": until_of(said, ended),
        "axes": axes_of(said),
        "absent": absent_of(said),
        "table": table_of(said),
        "throughput": throughput_metrics(kinds_of(said)),
    }


def _watched(cell: CellDocument, samples: Sequence[Sample], window: Window) -> CellDocument:
    """The cell with what the recorder saw while its workloads ran."""
    return replace(
        cell,
        host=host_of(samples, *window.host),
        disk_traffic=disk_traffic(samples, window),
        bound_by=bound_by(samples, window, vcpus_of(cell.settings)),
    )


def laid_out(document: RunDocument, share_percent: float = SHARE_PERCENT) -> RunDocument:
    """The document with the tables and the scores of the cells that it has.

    The knee of the scores is where a further tile adds less than `share_percent` of one tile's throughput.
    """
    scores = {"share_percent": share_percent, "places": scores_of(document, share_percent)}
    return replace(document, tables=result_tables(document), scores=scores)


def only_cell(document: RunDocument, cell: int) -> RunDocument:
    """The document with one of its cells, by its number. Raises UsageError where there is none of that number."""
    demand_cell(document.run.id, [one.cell for one in document.cells], cell)
    chosen = [one for one in document.cells if one.cell == cell]
    return laid_out(replace(document, cells=chosen), document.scores["share_percent"])


def raw_document(reader: RunReader, cell: int | None = None) -> dict[str, Any]:
    """The document ``vmlab.raw/1``: what tools printed in one cell, or in all. Raises StoreError."""
    bodies = [
        {"cell": number, **fields_of(output), "text": output.text.encode("utf-8", "replace").decode()}
        for number, output in reader.raw_outputs(cell)
    ]
    return {"schema": "vmlab.raw/1", "outputs": bodies}


def _run_part(
    name: str, known: RunTimeline, cells: Sequence[CellDocument], asked: dict[str, Any], unended: str
) -> RunPart:
    """The run itself; `name` is that of its folder, `asked` what its scenario says of it."""
    started, probed, ended = known.started, known.probed, known.ended
    named: Any = {"scenario": ""} if started is None else common_fields(RunPart, started)
    return RunPart(
        **named,
        **asked,
        id=started.run if started else name,
        outcome=str(ended.outcome) if ended else unended,
        started=time_of_day(started.wall if started else None),
        ended=time_of_day(ended.wall if ended else None),
        accelerator=probed.accelerator if probed else None,
        image=known.image.image if known.image else None,
        added_images=dict(known.added_images),
        host=probed.host if probed else {},
        hosts=host_documents(known),
        reason=known.finished.reason if known.finished else "",
        exit_code=ended.exit_code if ended else None,
        cells_planned=_planned(known),
        extended=[ExtensionDocument(one.repeats, time_of_day(one.wall)) for one in known.extensions],
        notices=[
            *host_notices(known),
            *(notice.text for notice in known.notices if notice.level != "info"),
            *map(_beside, known.others),
            *remade_notices(cells),
        ],
        measured_beside=[carried(BesideDocument, other, seen=time_of_day(other.wall)) for other in known.others],
    )


def _planned(known: RunTimeline) -> int:
    if known.repeats_ended is not None:
        return known.repeats_ended.cells
    if known.extensions:
        return known.extensions[-1].cells
    return known.started.cells if known.started else 0


def _beside(other: AnotherRunSeen) -> str:
    since = datetime.fromtimestamp(other.wall, UTC).strftime("%H:%M:%S %Z")
    return f"run {other.run} of {other.user} measured on this host at the same time (seen {since})"


Found = Mapping[str, Summary]


def recording_document(
    samples: Sequence[Sample], domains: Iterable[Domain], since: float, until: float
) -> RecordingDocument:
    """Every domain that was seen from `since` to `until` on the monotonic clock, by name, and the host's disks.

    `seconds` are those of the samples that are there: the oldest of a long recording are dropped.
    """
    domains = list(domains)
    found = summarise(samples, since, until, instances=True, names=_Wanted(domains))
    return RecordingDocument(
        seconds=sum(seconds for one in samples if (seconds := seconds_within(one, since, until)) > 0),
        domains=[_domain(one, found) for one in sorted(domains, key=lambda one: one.name)],
        disks={below: _figures(found, OF_HOST_DISK, below) for below in _below(domains)},
    )


class _Wanted:
    """The names of values that are about domains, or about the host's disks below their files."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self._below = _below(domains)

    def __contains__(self, name: object) -> bool:
        metric, instance = split_name(str(name))
        return metric.startswith("domain_") or (metric in OF_HOST_DISK and instance in self._below)


def _below(domains: Iterable[Domain]) -> list[str]:
    return sorted({disk.below for domain in domains for disk in domain.disks if disk.below})


def _domain(domain: Domain, found: Found) -> DomainDocument:
    disks = [
        carried(
            DomainDiskDocument, disk, figures=_figures(found, (*OF_DISK, *OF_TRACE), f"{domain.name}/{disk.target}")
        )
        for disk in domain.disks
    ]
    figures = _figures(found, METRICS, domain.name)
    return carried(DomainDocument, domain, shares=list(domain.shares), figures=figures, disks=disks)


def _figures(found: Found, metrics: Iterable[str], instance: str) -> dict[str, Summary]:
    """By metric without ``domain_``; what was never read is left out."""
    known = {metric: found[name] for metric in metrics if (name := f"{metric}[{instance}]") in found}
    return {metric.removeprefix("domain_"): one for metric, one in known.items()}
