"""Cells whose cache mode was switched while their workloads ran: when, and the host in each span between."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from vmlab.analysis.host import host_of
from vmlab.analysis.loop_documents import loop_documents
from vmlab.analysis.shape import SpanDocument, SwitchDocument
from vmlab.analysis.statistics import finite
from vmlab.analysis.timeline import CellTimeline
from vmlab.model.moments import time_of_day
from vmlab.model.sample import Sample


def switch_documents(cell: CellTimeline) -> list[SwitchDocument]:
    """The switches of a cell, in order."""
    began = cell.executed[0] if cell.executed else cell.start.mono
    return [
        {
            "at": time_of_day(one.wall),
            "seconds": one.mono - began,
            "origin": one.origin,
            "before": one.before,
            "after": one.after,
            "pauses_ms": {guest: finite(pause) for guest, pause in one.pauses_ms.items()},
            "drained_seconds": finite(one.drained_seconds),
            "drained_bytes": one.drained_bytes,
        }
        for one in cell.switches
    ]


def span_documents(cell: CellTimeline, samples: Sequence[Sample]) -> Iterator[SpanDocument]:
    """The spans before, between and after the switches of a cell that executed, with the host's figures in each.

    A sample in which a switch lies counts in both spans, for its part in each.
    """
    since, until = cell.execution or (0.0, 0.0)
    edges = [since, *(min(max(since, one.mono), until) for one in cell.switches), until]
    modes = [*(one.before for one in cell.switches), *(one.after for one in cell.switches[-1:])]
    for (begin, end), mode in zip(itertools.pairwise(edges), modes, strict=True):
        rounds = [one for one in cell.rounds if begin < one.mono <= end]
        yield {
            "since": begin - since,
            "until": end - since,
            "cache": mode,
            "host": host_of(samples, begin, end),
            "loop": loop_documents(rounds),
        }
