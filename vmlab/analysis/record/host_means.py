"""The host's figures while a cell's workloads ran: over the whole, in each stage of them, and between changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from vmlab.analysis.cell_shape import SpanDocument, StageDocument
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.disk_latency import latency_document, within
from vmlab.analysis.record.loops import loop_rows
from vmlab.model.cell_event import CacheSwitched, KsmSwitched, TilesChanged, WorkloadProgressed
from vmlab.model.event import CellWithdrawn
from vmlab.model.grouping import grouped
from vmlab.model.results import Summary
from vmlab.model.run import DONE, SETTLING
from vmlab.model.sample import OWN_NAMES, Sample
from vmlab.store.reader import RunReader
from vmlab.store.samples import read_samples
from vmlab.telemetry.host.host_figures import headlines
from vmlab.telemetry.sample_summary import summarise

Signs = Mapping[int, Sequence[WorkloadProgressed]]
"""Progress events that name a stage, by cell, in order."""
_AFTER = (SETTLING, DONE)
"""Stages that the lab itself names after a client has ended. The workload's own last stage ends there."""


def host_during(reader: RunReader, since: float, until: float) -> dict[str, Summary]:
    """Mean, maximum, 95th percentile and area of every host figure from `since` to `until`; {} without samples.

    The headlines come first, in their order; others follow by name, the recorder's own apart.
    Both moments are on the monotonic clock. See `telemetry.summary.summarise` for what each is. Raises StoreError for
    a damaged store.
    """
    return host_of(read_samples(reader, since, until), since, until)


def host_of(
    samples: Iterable[Sample], since: float, until: float, names: Container[str] | None = None
) -> dict[str, Summary]:
    """As `host_during`, of samples that were read already; only of the figures called `names`, if given."""
    found = summarise(samples, since, until, names=names)
    # Damaged bytes may be read as infinity, which is not a figure.
    found = {
        name: one for name, one in found.items() if all(map(math.isfinite, (one.mean, one.max, one.p95, one.area)))
    }
    first = [figure.name for figure in headlines() if figure.name in found]
    ordered = [*first, *sorted(found.keys() - {*first, *OWN_NAMES})]
    return {name: found[name] for name in ordered}


def signs_of_stages(reader: RunReader) -> Signs:
    """The first progress of each workload in each stage that it names, of cells that count.

    Raises StoreError for a damaged store.
    """
    found: dict[int, dict[tuple[str, int, str], WorkloadProgressed]] = {}
    for _, event in reader.events(kinds=(WorkloadProgressed, CellWithdrawn)):
        if isinstance(event, CellWithdrawn):
            found.pop(event.cell, None)
        elif isinstance(event, WorkloadProgressed) and event.stage:
            found.setdefault(event.cell, {}).setdefault((event.workload, event.tile, event.stage), event)
    return {cell: list(signs.values()) for cell, signs in found.items()}


def stages_of(reader: RunReader, cell: CellTimeline, signs: Sequence[WorkloadProgressed]) -> Iterator[StageDocument]:
    """The stages of each workload of a cell.

    A stage lasts from its first event to that of the next one, the last to the client's end.
    Raises StoreError for a damaged store.
    """
    ends = {(ended.workload, ended.tile): ended.mono for ended in cell.ended_workloads}
    whole = cell.execution
    for key, own in grouped(((sign.workload, sign.tile), sign) for sign in signs).items():
        first = {sign.stage: sign.mono for sign in reversed(own)}
        began = sorted(first.items(), key=lambda one: one[1])
        last = ends.get(key, whole[1] if whole else own[-1].mono)
        until = [mono for _, mono in began[1:]] + [last]
        for (stage, since), end in zip(began, until, strict=True):
            if stage in _AFTER:
                break
            yield StageDocument(
                workload=key[0],
                tile=key[1],
                stage=stage,
                seconds=max(0.0, end - since),
                host=host_during(reader, since, end) if end > since else {},
            )


def span_documents(cell: CellTimeline, samples: Sequence[Sample]) -> Iterator[SpanDocument]:
    """The spans before, between and after the changes of a cell that executed, with the host's figures in each.

    A sample in which a change lies counts in both spans, for its part in each.
    """
    since, until = cell.execution or (0.0, 0.0)
    changes = sorted(cell.changes, key=lambda one: one.mono)
    edges = [since, *(min(max(since, one.mono), until) for one in changes), until]
    cache, ksm, tiles = _at_first(cell)
    for place, (begin, end) in enumerate(itertools.pairwise(edges)):
        if place:
            match changes[place - 1]:
                case CacheSwitched(after=mode):
                    cache = mode
                case KsmSwitched(after=state):
                    ksm = state
                case TilesChanged(after=count):
                    tiles = count
        rounds = [one for one in cell.rounds if begin < one.mono <= end]
        yield SpanDocument(
            since=begin - since,
            until=end - since,
            cache=cache,
            ksm=ksm,
            tiles=tiles,
            host=host_of(samples, begin, end),
            disk_latency=latency_document(within(cell.latency, begin, end, last=end == until)),
            loop=loop_rows(rounds),
        )


def _at_first(cell: CellTimeline) -> tuple[str | None, str | None, int | None]:
    """The cache mode, KSM and the number of tiles before the first change."""
    settings = cell.told.settings
    said = {**settings, **cell.told.axes, "ksm": settings.get("host", {}).get("ksm")}
    # The first change of each thing is the last one here that says what it was.
    said.update({one.what: one.before for one in reversed(cell.switches)})
    cache, ksm, tiles = said.get("cache"), said["ksm"], said.get("tiles")
    if cell.tile_changes:
        tiles = cell.tile_changes[0].before
    return (
        cache if isinstance(cache, str) else None,
        ksm if isinstance(ksm, str) else None,
        tiles if isinstance(tiles, int) else None,
    )
