"""Figures that were made again from the raw texts of a run, after a parser was mended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from vmlab.analysis.cell_shape import RemadeDocument
from vmlab.analysis.record.timeline import CellTimeline
from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.cell_event import FiguresRemade


def remade_notices(cells: Iterable[CellTimeline]) -> Iterator[str]:
    """A line for each version of the program that made figures again, with the cells and the last time."""
    versions: dict[str, list[FiguresRemade]] = {}
    for event in sorted((event for cell in cells for event in cell.remade), key=lambda event: event.wall):
        versions.setdefault(event.version, []).append(event)
    for version, events in versions.items():
        numbers = ", ".join(map(str, sorted({event.cell for event in events})))
        names = ", ".join(dict.fromkeys(event.workload for event in events))
        when = f"{datetime.fromtimestamp(events[-1].wall, UTC):%Y-%m-%d %H:%M %Z}"
        yield (
            f"figures of {names} were made again from raw output by vmlab {version} on {when}, cells {numbers}; "
            "`vmlab show RUN:CELL` has the old ones"
        )


def changes_of(event: FiguresRemade) -> Iterator[RemadeDocument]:
    """Each figure that changed."""
    at = datetime.fromtimestamp(event.wall, UTC).isoformat(timespec="milliseconds")
    for metric, unit in event.units.items():
        yield RemadeDocument(
            workload=event.workload,
            tile=event.tile,
            guest=event.guest,
            metric=metric,
            was=finite(event.was.get(metric)),
            value=finite(event.values.get(metric)),
            unit=unit,
            version=event.version,
            at=at,
        )
