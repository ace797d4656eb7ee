"""Stores of a fleet's runs, made of what was really recorded on one host.

Three hosts each did it, and one of them is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.tui.conftest import RECORDED
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.event import (
    CellPlaced,
    CellWithdrawn,
    Event,
    HostJoined,
    HostLeftOut,
    HostProbed,
    RunEnded,
    RunnerFinished,
    RunStarted,
)
from vmlab.model.places import runs_folder
from vmlab.store.reader import RunReader, SampleRow
from vmlab.store.writer import FleetWriter, Source, TakenEvent

HOSTS = ("hv1", "hv2", "hv3")
LOST = "host hv3: the line was cut"
_OF_ITS_RUN = (RunStarted, HostProbed, RunnerFinished, RunEnded)


def fleet_store(store: Path, run: str, *, share: float = 1.0) -> Path:
    """Write it, up to this share of what was recorded. The first host has the recorded cells 1 and 2, the next 3 and 4,
    the third 5 and 6, whose host is lost in the first of them.
    """
    with RunReader(RECORDED) as reader:
        events = [event for _, event in reader.events()]
        rows = list(reader.sample_rows())
        layouts = reader.sample_layouts()
    end = events[0].mono + share * (events[-1].mono - events[0].mono)
    lost = next(event.mono for event in events if isinstance(event, CellEnded)) - 2.0
    writer = FleetWriter(store)
    known = {id: writer.sample_layout(one.names, one.units) for id, one in layouts.items()}
    sources = {name: writer.add_source(name, f"{run}-{name}", 0.0, 0.0) for name in HOSTS}
    for place, event in enumerate(one for one in events if one.mono <= end):
        match event:
            case RunStarted():
                writer.append(replace(event, run=run, cells=6))
            case HostProbed():
                writer.append(event)
                for name in HOSTS:
                    writer.append(_joined(event, name, f"{run}-{name}"))
            case RunEnded():
                writer.append(event)
            case _:
                for number, name in enumerate(HOSTS):
                    if name != "hv3" or event.mono < lost:
                        _take(writer, sources[name], place + 1, event, number)
    if end > lost:
        writer.withdraw(CellWithdrawn(cell=5, name="hv3", reason=LOST, wall=events[0].wall, mono=lost))
        writer.append(HostLeftOut(name="hv3", reason=LOST, wall=events[0].wall, mono=lost + 1))
    for name in HOSTS:
        own = [row for row in rows if row.mono <= (min(lost, end) if name == "hv3" else end)]
        writer.take_samples(sources[name], _numbered(own), known)
    writer.close()
    return store


def _joined(probed: HostProbed, name: str, run: str) -> HostJoined:
    return HostJoined(
        name=name,
        run=run,
        accelerator=probed.accelerator,
        facts=probed.host,
        offset_ms=0.1,
        uncertainty_ms=0.2,
        wall=probed.wall,
        mono=probed.mono,
    )


def _take(writer: FleetWriter, source: Source, row: int, event: Event, number: int) -> None:
    if isinstance(event, _OF_ITS_RUN):
        return
    changed: dict[str, Any] = {}
    if (cell := getattr(event, "cell", None)) is not None:
        changed["cell"] = cell + 2 * number
    if isinstance(event, CellStarted):
        writer.append(CellPlaced(cell=event.cell + 2 * number, name=source.host, wall=event.wall, mono=event.mono))
        changed["axes"] = {**event.axes, "host": source.host}
    writer.take_events(source, [TakenEvent(row, replace(event, **changed))], row)


def _numbered(rows: list[SampleRow]) -> list[SampleRow]:
    return [replace(row, id=number) for number, row in enumerate(rows, start=1)]


@contextmanager
def going_on(write: Callable[..., Path], run: str, share: float) -> Iterator[Path]:
    """The folder of a run of this state that goes on, whose store `write` has written up to this share."""
    folder = RunFolder(run, runs_folder() / run)
    folder.path.mkdir(parents=True)
    lock = folder.take_lock()
    write(folder.store, run, share=share)
    yield folder.path
    os.close(lock)
