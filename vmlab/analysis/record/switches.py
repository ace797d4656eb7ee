"""Cells that were changed while their workloads ran: what, when, and the host in each span between."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from vmlab.analysis.cell_shape import SpanDocument
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.disk_latency import latency_document, within
from vmlab.analysis.record.host_means import host_of
from vmlab.analysis.record.loops import loop_rows
from vmlab.model.cell_event import (
    CacheSwitched,
    KsmSwitched,
    TilesChanged,
)
from vmlab.model.sample import Sample


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
