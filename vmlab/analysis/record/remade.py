"""Figures that were made again from the raw texts of a run, after a parser was mended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from vmlab.analysis.cell_shape import CellDocument, RemadeDocument
from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.cell_event import FiguresRemade
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import carried, time_of_day


def remade_notices(cells: Iterable[CellDocument]) -> Iterator[str]:
    """A line for each version of the program that made figures again, with the cells and the last time."""
    every = ((cell.cell, one) for cell in cells for one in cell.remade)
    in_order = sorted(every, key=lambda found: str(found[1].at))
    for version, changes in grouped((one.version, (number, one)) for number, one in in_order).items():
        numbers = ", ".join(map(str, sorted({number for number, _ in changes})))
        names = ", ".join(dict.fromkeys(one.workload for _, one in changes))
        when = f"{datetime.fromisoformat(str(changes[-1][1].at)):%Y-%m-%d %H:%M %Z}"
        yield (
            f"values of {names} were made again from raw output by vmlab {version} on {when}, cells {numbers}; "
            "`vmlab show RUN:CELL` has the old ones"
        )


def changes_of(event: FiguresRemade) -> Iterator[RemadeDocument]:
    """Each figure that changed."""
    for metric, unit in event.units.items():
        was, value = finite(event.was.get(metric)), finite(event.values.get(metric))
        at = time_of_day(event.wall)
        yield carried(RemadeDocument, event, metric=metric, was=was, value=value, unit=unit, at=at)
