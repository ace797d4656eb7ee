"""Throughput and latency of workloads in a loop, over rounds that were verified, for each tile and over all tiles.

All rounds of a workload are the same amount of work, so their common rate is the harmonic mean of their rates. Rates
of tiles add up. A percentile of latency cannot be put together from others: over rounds it is their median, over tiles
that of the slowest tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from vmlab.analysis.cell_shape import LoopRow
from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.cell_event import RoundEnded
from vmlab.model.grouping import grouped
from vmlab.model.run import RUN_TIME, Outcome


def loop_rows(rounds: Iterable[RoundEnded], newest: int | None = None) -> list[LoopRow]:
    """The rows of each workload, its tiles first and all of them last, in the order of their names.

    Only rounds that passed, and of each workload and tile only the `newest`, all for None.
    """
    of = grouped((one.workload, one) for one in rounds if one.outcome == Outcome.PASSED)
    return [row for name in sorted(of) for row in _rows(of[name], newest)]


def _rows(rounds: Sequence[RoundEnded], newest: int | None) -> Iterator[LoopRow]:
    tiles = grouped((one.tile, one) for one in rounds)
    each = [_row(tiles[tile][-newest if newest else 0 :], len(tiles[tile])) for tile in sorted(tiles)]
    yield from each
    rates = [row.throughput for row in each if row.throughput is not None]
    latencies = [row.latency_seconds for row in each if row.latency_seconds is not None]
    yield replace(
        each[0],
        tile=None,
        rounds=sum(row.rounds for row in each),
        throughput=finite(sum(rates)) if len(rates) == len(each) else None,
        latency_seconds=finite(max(latencies)) if len(latencies) == len(each) else None,
    )


def _row(rounds: Sequence[RoundEnded], count: int) -> LoopRow:
    first = rounds[0]
    rates = [rate for one in rounds if (rate := _rate(one)) is not None and rate > 0]
    latencies = [value for one in rounds if (value := one.values.get(one.latency)) is not None]
    return LoopRow(
        workload=first.workload,
        tile=first.tile,
        rounds=count,
        throughput=finite(len(rates) / sum(1 / rate for rate in rates)) if rates else None,
        unit="1/s" if first.throughput == RUN_TIME else first.units.get(first.throughput, ""),
        of_rounds=first.throughput == RUN_TIME,
        latency_seconds=finite(_median(latencies)) if latencies else None,
        latency_metric=first.latency,
    )


def _rate(one: RoundEnded) -> float | None:
    """What the round did in a second; rounds in a second where only its run time is known."""
    value = one.values.get(one.throughput)
    if value is None or one.throughput != RUN_TIME:
        return value
    return 1 / value if value > 0 else None


def _median(values: Sequence[float]) -> float:
    # That of the standard library, whose import would delay the console's first picture, is the same.
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
