"""Loops in words: a round as it ends, and throughput and latency of each workload by tile and over all tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.cell_shape import LoopRow
from vmlab.analysis.record.loops import loop_rows
from vmlab.model.cell_event import RoundEnded
from vmlab.model.quantities import written
from vmlab.model.run import Outcome
from vmlab.report.blocks import Column, Section, Table
from vmlab.report.figures import value_words
from vmlab.report.words import NOT_MEASURED, number

ROUNDS_RATE = "rounds/min"
"""The rate of a workload whose kind tells none: how often it was done."""
_OF_A_MINUTE = 60


def round_words(event: RoundEnded) -> str:
    """``tile 1 web round 3 passed: 12.3 1/s, latency_p95 0.25 s``; without figures where it has none."""
    text = f"tile {event.tile} {event.workload} round {event.round} {event.outcome}"
    if event.outcome != Outcome.PASSED:
        return text
    row = loop_rows([event])[0]
    rate, unit = _rate(row)
    return f"{text}: {rate} {unit}, {row.latency_metric} {value_words(row.latency_seconds, 's')}"


def loop_section(rows: Sequence[LoopRow], title: str = "") -> Section:
    """A row for each workload in each tile, and in all where there are more; empty for no row."""
    shown = list(_without_sums_of_one(rows))
    rates = [_rate(row) for row in shown]
    columns = [
        Column("tile", ["all" if row.tile is None else str(row.tile) for row in shown]),
        Column("rounds", [str(row.rounds) for row in shown], beside=True),
        Column("throughput", [rate for rate, _ in rates], beside=True),
        Column("in", [unit for _, unit in rates], beside=True),
        Column("latency", [value_words(row.latency_seconds, "s") for row in shown], beside=True),
        Column("which is", [row.latency_metric for row in shown], beside=True),
    ]
    return Section(title, [Table("loop", [row.workload for row in shown], columns)] if shown else [])


def _without_sums_of_one(rows: Sequence[LoopRow]) -> Iterator[LoopRow]:
    tiles = {row.tile for row in rows if row.tile is not None}
    return (row for row in rows if row.tile is not None or len(tiles) > 1)


def _rate(row: LoopRow) -> tuple[str, str]:
    if row.throughput is None:
        return NOT_MEASURED, ""
    if row.of_rounds:
        return number(row.throughput * _OF_A_MINUTE), ROUNDS_RATE
    form = written(row.unit)
    return number(row.throughput * form.factor), form.unit
