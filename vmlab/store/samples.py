"""Samples in a run's store: one packed row a tick, its names once, and single series read back in milliseconds.

A row's body is little-endian 32-bit floats, one for each name of its layout. That keeps seven significant figures, more
than any of the kernel's counters yields in a tick, at four bytes a value; NaN is a value that could not be read. A run
of a fleet has a view of its store for each host.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import TracebackType
from typing import Self

from vmlab.integrity.long_work import current
from vmlab.model.errors import StoreError
from vmlab.model.sample import Sample, SampleNames, Series, is_offset, read_with, split_name, unit_of
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter

_VALUE = struct.Struct("<f")
_LENGTH, _LATENESS = "tick_length_seconds", "tick_lateness_seconds"


@lru_cache(maxsize=64)
def _row(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}f")


class SampleWriter:
    """Packs samples into the store of `writer`; a sink for the recorder. Raises what `RunWriter` raises."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._ids: dict[tuple[str, ...], int] = {}
        self._layout: SampleNames | None = None
        self._layout_id = 0
        self._pack: Callable[..., bytes] = struct.Struct("").pack

    def __call__(self, sample: Sample) -> None:
        """Keep `sample`."""
        if sample.layout is not self._layout:
            self._layout_id = self._id(sample.layout)
            self._pack = _row(len(sample.layout.names)).pack
            self._layout = sample.layout
        self._writer.sample(self._layout_id, sample.wall, sample.mono, self._pack(*sample.values))

    def _id(self, layout: SampleNames) -> int:
        known = self._ids.get(layout.names)
        if known is None:
            known = self._ids[layout.names] = self._writer.sample_layout(layout.names, layout.units)
        return known


def samples(
    reader: RunReader,
    since: float = float("-inf"),
    until: float = float("inf"),
    after: int = 0,
    layouts: dict[int, SampleNames] | None = None,
) -> Iterator[tuple[int, Sample]]:
    """Row id and sample of every tick that ended from `since` to `until` (monotonic seconds), after row `after`.

    To follow a live run, ask again with the last row id, and with the same `layouts`, in which those that were read
    are kept. Each is a step of the current work.
    """
    work = current()
    layouts = {} if layouts is None else layouts
    for row in reader.sample_rows(since, until, after):
        if row.layout not in layouts and (one := reader.sample_layouts().get(row.layout)) is not None:
            layouts[row.layout] = one
        layout = layouts.get(row.layout)
        if layout is None or not {_LENGTH, _LATENESS} <= layout.position.keys():
            raise StoreError(f"cannot read {reader.path}: sample {row.id} has no known layout")
        if len(row.body) != len(layout.names) * _VALUE.size:
            raise StoreError(f"cannot read {reader.path}: sample {row.id} is not as long as its layout")
        values = _row(len(layout.names)).unpack(row.body)
        work.step(1)
        length, lateness = (values[layout.position[name]] for name in (_LENGTH, _LATENESS))
        yield row.id, Sample(row.wall, row.mono, length, lateness, layout, values)


def read_samples(reader: RunReader, since: float, until: float) -> Iterator[Sample]:
    """The samples that describe the span from `since` to `until` (monotonic seconds), in order.

    A tick is stored under its end, so the last one is the first that ends after `until`.
    """
    for _, sample in samples(reader, since):
        yield sample
        if sample.mono >= until:
            return


def series(
    reader: RunReader, name: str, since: float = float("-inf"), until: float = float("inf"), after: int = 0
) -> Series:
    """One value over time, without unpacking the others; ticks that do not have it are left out.

    Each stands at the time at which it was read, which for a guest's is not that of the tick. The span is one of ticks.
    """
    source = read_with(split_name(name)[0])
    rows, times, values = array("q"), array("d"), array("f")
    layouts = {key: one.position for key, one in reader.sample_layouts().items() if name in one.position}
    for key, places in layouts.items():
        late = _sliced(reader, key, places[source[0]], since, until, after) if source and source[0] in places else None
        for page in _sliced(reader, key, places[name], since, until, after):
            rows.extend(row for row, _, _ in page)
            times.extend(mono for _, mono, _ in page)
            values.extend(_unpacked(page))
            if late is not None:
                # Of a store that is written to, the later page may have more.
                begun = len(times) - len(page)
                for place, offset in enumerate(_unpacked(next(late))[: len(page)], begun):
                    times[place] += offset if is_offset(offset) else 0.0
    if len(layouts) > 1:
        order = sorted(range(len(rows)), key=rows.__getitem__)
        times, values = array("d", map(times.__getitem__, order)), array("f", map(values.__getitem__, order))
    return Series(name, unit_of(name), times, values)


_Page = list[tuple[int, float, bytes]]


def _sliced(reader: RunReader, layout: int, place: int, since: float, until: float, after: int) -> Iterator[_Page]:
    return reader.sample_slices(layout, place * _VALUE.size, _VALUE.size, since, until, after)


def _unpacked(page: _Page) -> tuple[float, ...]:
    return _row(len(page)).unpack(b"".join(body for _, _, body in page))


class HostReaders:
    """Gives the reader that has the samples of a host, by its name, and "" where there is no fleet; use ``with``."""

    def __init__(self, reader: RunReader) -> None:
        self._whole = reader
        self._open: dict[str, RunReader] = {}

    def of(self, host: str) -> RunReader:
        """The reader of one host. It is closed with the others; that of a run of one host stays open."""
        if not host:
            return self._whole
        if host not in self._open:
            self._open[host] = self._whole.of_host(host)
        return self._open[host]

    def all(self) -> list[RunReader]:
        """A reader for each host, which together have every sample."""
        return [self.of(host) for host in self._whole.hosts() or ("",)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for reader in self._open.values():
            reader.close()
