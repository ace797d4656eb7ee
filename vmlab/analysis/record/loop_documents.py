"""Loops in the document of a run: each round, and the rows over rounds."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.analysis.record.loops import loop_rows
from vmlab.analysis.record.timeline import CellTimeline
from vmlab.analysis.shape import LoopDocument, RoundDocument
from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.event import RoundEnded


def loop_documents(rounds: Iterable[RoundEnded]) -> list[LoopDocument]:
    """The rows over all of these rounds."""
    return [
        {
            "workload": row.workload,
            "tile": row.tile,
            "rounds": row.rounds,
            "throughput": finite(row.throughput),
            "unit": row.unit,
            "of_rounds": row.of_rounds,
            "latency_seconds": finite(row.latency),
            "latency_metric": row.latency_metric,
        }
        for row in loop_rows(rounds)
    ]


def round_documents(cell: CellTimeline) -> list[RoundDocument]:
    """The rounds of a looped cell, in the order in which they ended."""
    began = cell.executed[0] if cell.executed else cell.start.mono
    return [
        {
            "workload": one.workload,
            "tile": one.tile,
            "guest": one.guest,
            "round": one.round,
            "outcome": str(one.outcome),
            "reason": one.reason,
            "verified": one.mono - began,
            "seconds": finite(one.seconds),
            "figures": {
                name: {"value": finite(value), "unit": one.units.get(name, "")} for name, value in one.values.items()
            },
        }
        for one in cell.rounds
    ]
