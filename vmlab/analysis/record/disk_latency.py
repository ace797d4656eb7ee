"""Percentiles of the latency of guests' disks, from the histograms that were read while workloads ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmlab.analysis.cell_shape import (
    DiskLatencyDocument,
    OneDiskLatency,
    PercentilesDocument,
)
from vmlab.model.cell_event import DiskLatencyRead
from vmlab.telemetry.latency_bins import OPERATIONS, LatencyBins, Packed, bins_of

Place = tuple[int, str, str]
"""Tile, guest and disk."""


def latency_document(readings: Sequence[DiskLatencyRead]) -> DiskLatencyDocument | None:
    """The percentiles over several readings, of one scale; None without any."""
    if not readings:
        return None
    bins = bins_of(*readings[-1].scale)
    places = counted(readings)
    over = [percentiles(bins, operation, _of(places.values(), operation)) for operation in OPERATIONS]
    return DiskLatencyDocument(
        error_percent=bins.error_percent,
        least_ms=bins.least_ms,
        most_ms=bins.most_ms,
        over_disks=over,
        disks=list(_disks(bins, places)),
    )


def within(
    readings: Iterable[DiskLatencyRead], begin: float, end: float, *, last: bool = False
) -> list[DiskLatencyRead]:
    """The readings of a span of the monotonic clock; of the `last` one, those too that were taken after its end."""
    return [one for one in readings if begin < one.mono and (last or one.mono <= end)]


def counted(readings: Sequence[DiskLatencyRead]) -> dict[Place, dict[str, list[Packed]]]:
    """What the readings counted, by disk and operation; those of another scale than the last one are left out."""
    found: dict[Place, dict[str, list[Packed]]] = {}
    for one in readings:
        if one.scale == readings[-1].scale:
            for disk, operations in one.counts.items():
                of_disk = found.setdefault((one.tile, one.guest, disk), {})
                for operation, counts in operations.items():
                    of_disk.setdefault(operation, []).append(counts)
    return dict(sorted(found.items()))


def percentiles(bins: LatencyBins, operation: str, packed: Iterable[Packed]) -> PercentilesDocument:
    """The percentiles of what was counted of one operation."""
    counts = bins.total(packed)
    return PercentilesDocument(
        operation=operation,
        requests=sum(counts),
        p50_ms=bins.percentile_ms(counts, 50),
        p95_ms=bins.percentile_ms(counts, 95),
        p99_ms=bins.percentile_ms(counts, 99),
    )


def _of(disks: Iterable[dict[str, list[Packed]]], operation: str) -> Iterator[Packed]:
    for operations in disks:
        yield from operations.get(operation, ())


def _disks(bins: LatencyBins, places: dict[Place, dict[str, list[Packed]]]) -> Iterator[OneDiskLatency]:
    for (tile, guest, disk), operations in places.items():
        for operation in OPERATIONS:
            if operation in operations:
                yield OneDiskLatency(guest, tile, disk, percentiles(bins, operation, operations[operation]))
