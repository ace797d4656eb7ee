"""Samples in a store and back."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from vmlab.model.sample import GUESTS_READ, Sample, SampleNames
from vmlab.store.reader import RunReader
from vmlab.store.samples import SampleWriter, read_samples, samples, series
from vmlab.store.writer import RunWriter

OWN = ("tick_length_seconds", "tick_lateness_seconds")


def sample(tick: int, layout: SampleNames) -> Sample:
    rest = [float(tick * 1000 + place) for place in range(len(layout.names) - 2)]
    return Sample(1000.0 + tick, float(tick), 1.0, 0.25, layout, (1.0, 0.25, *rest))


def keep(path: Path, ticks: list[Sample]) -> None:
    writer = RunWriter(path)
    sink = SampleWriter(writer)
    for one in ticks:
        sink(one)
    writer.close()


def test_samples_come_back_as_they_went_in(tmp_path: Path) -> None:
    first, second = SampleNames.of([*OWN, "a_ms", "b_bytes"]), SampleNames.of([*OWN, "a_ms", "c_percent[x]", "b_bytes"])
    went = [sample(1, first), sample(2, first), sample(3, second), sample(4, first)]
    keep(tmp_path / "run.db", went)
    with RunReader(tmp_path / "run.db") as reader:
        assert [one for _, one in samples(reader)] == went
        assert len(reader.sample_layouts()) == 2, "names are kept once"
        rows = [row for row, _ in samples(reader)]
        assert [one.mono for _, one in samples(reader, after=rows[1])] == [3.0, 4.0]


def test_who_follows_a_run_reads_each_layout_once(tmp_path: Path) -> None:
    first, second = SampleNames.of([*OWN, "a_ms"]), SampleNames.of([*OWN, "a_ms", "b_bytes"])
    keep(tmp_path / "run.db", [sample(1, first), sample(2, second), sample(3, first)])
    layouts: dict[int, SampleNames] = {}
    with RunReader(tmp_path / "run.db") as reader:
        ((row, one),) = samples(reader, until=1.0, layouts=layouts)
        _, three = (late for _, late in samples(reader, after=row, layouts=layouts))
    assert three.layout is one.layout
    assert [known.names for known in layouts.values()] == [first.names, second.names]


def test_seven_figures_are_kept_and_nan_stays_nan(tmp_path: Path) -> None:
    layout = SampleNames.of([*OWN, "memory_used_bytes", "disk_await_ms"])
    keep(tmp_path / "run.db", [Sample(1, 1, 1.0, 0.0, layout, (1.0, 0.0, 25276502016.0, math.nan))])
    with RunReader(tmp_path / "run.db") as reader:
        ((_, back),) = samples(reader)
    assert back.get("memory_used_bytes") == pytest.approx(25276502016, rel=6e-8)
    assert math.isnan(back.get("disk_await_ms"))


def test_a_span_is_covered_to_its_end(tmp_path: Path) -> None:
    layout = SampleNames.of([*OWN, "a_ms"])
    keep(tmp_path / "run.db", [sample(tick, layout) for tick in range(1, 10)])
    with RunReader(tmp_path / "run.db") as reader:
        assert [one.mono for one in read_samples(reader, 2.5, 4.5)] == [3, 4, 5]
        assert [one.mono for one in read_samples(reader, 2.5, 4.0)] == [3, 4]
        assert [one.mono for one in read_samples(reader, 8.5, 99)] == [9]


def test_a_series_is_one_value_over_time(tmp_path: Path) -> None:
    first, second = SampleNames.of([*OWN, "a_ms", "b_bytes"]), SampleNames.of([*OWN, "b_bytes"])
    keep(tmp_path / "run.db", [sample(1, first), sample(2, second), sample(3, first)])
    with RunReader(tmp_path / "run.db") as reader:
        b = series(reader, "b_bytes")
        assert (b.unit, list(b.mono), list(b.values)) == ("B", [1, 2, 3], [1001, 2000, 3001])
        assert list(series(reader, "a_ms").mono) == [1, 3]
        assert list(series(reader, "nothing_ms").values) == []
        assert list(series(reader, "b_bytes", since=2, until=2).values) == [2000]


def test_ten_minutes_cost_few_bytes_and_read_back_at_once(tmp_path: Path) -> None:
    """The targets with some room, as a busy machine reads slower; bench/telemetry.py measures them."""
    layout = SampleNames.of([*OWN, *(f"value_ms[{number}]" for number in range(271))])
    keep(tmp_path / "run.db", [sample(tick, layout) for tick in range(600)])
    assert (tmp_path / "run.db").stat().st_size / 600 / 273 < 9
    with RunReader(tmp_path / "run.db") as reader:
        best = min(timed(reader) for _ in range(10))
    assert best < 0.05


def timed(reader: RunReader) -> float:
    # The processor's time alone: what else a machine does is no part of it.
    began = time.thread_time()
    assert len(series(reader, "value_ms[150]").values) == 600
    return time.thread_time() - began


@pytest.mark.parametrize("offset", [math.inf, -math.inf, 1e30, 1e6])
def test_an_offset_that_none_can_be_is_passed_over(offset: float, tmp_path: Path) -> None:
    """As guests' values of a stranger's store may have it: no time of day follows from it."""
    layout = SampleNames.of([*OWN, *GUESTS_READ, "guest_cpu_percent[t1-web]"])
    keep(tmp_path / "run.db", [Sample(1000.0, 7.0, 1.0, 0.0, layout, (1.0, 0.0, offset, 1.0, 50.0))])
    with RunReader(tmp_path / "run.db") as reader:
        ((_, back),) = samples(reader)
        assert back.span_of("guest_cpu_percent") == (6.0, 7.0)
        assert list(series(reader, "guest_cpu_percent[t1-web]").mono) == [7.0]
