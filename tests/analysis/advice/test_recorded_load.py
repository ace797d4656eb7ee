"""A load falls into the phases that it had, with the rates of each; noise makes none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmlab.analysis.advice.recorded_load import LoadTick, load_ticks, phases_of
from vmlab.model.sample import Sample, SampleNames
from vmlab.telemetry.domains.domain_rates import OF_DISK, libvirt_rates
from vmlab.telemetry.sample_summary import summarise

Rates = tuple[float, int, float]
"""Requests in a second, bytes of each, and seconds that each takes."""
NOTHING: Rates = (0.0, 1, 0.0)


def span(seconds: int, reads: Rates, writes: Rates = NOTHING, flushes: float = 0.0, seed: int = 1) -> list[LoadTick]:
    """So many ticks of a second, each rate up to a fifth off."""
    drawn = random.Random(seed)
    found = []
    for _ in range(seconds):
        read, write = (rate * drawn.uniform(0.8, 1.2) for rate, _, _ in (reads, writes))
        moved = (read * reads[1], write * writes[1])
        found.append(LoadTick(1.0, read, write, *moved, flushes, read * reads[2], write * writes[2]))
    return found


def test_a_steady_load_is_one_phase_with_its_latency_by_littles_law() -> None:
    (phase,) = phases_of(span(300, (80.0, 4096, 0.005), (40.0, 16384, 0.02), 10.0)).values()
    assert phase.time == 300 and phase.reads is not None and phase.writes is not None
    assert (phase.reads.size, phase.writes.size) == (4096, 16384)
    assert phase.reads.rate == pytest.approx(80, rel=0.03)
    assert phase.reads.latency == pytest.approx(0.005)
    assert phase.writes.latency == pytest.approx(0.02)
    assert phase.flushes == pytest.approx(10)


@settings(max_examples=50)
@given(
    st.floats(5, 2000),
    st.floats(2.0, 20),
    st.integers(30, 200),
    st.integers(30, 200),
    st.booleans(),
    st.integers(0, 99),
)
def test_two_rates_are_two_phases(rate: float, factor: float, first: int, second: int, reads: bool, seed: int) -> None:
    low, high = (rate, 4096, 0.003), (rate * factor, 4096, 0.001)
    parts = [span(first, low, seed=seed), span(second, high, seed=seed + 1)]
    if not reads:
        parts = [span(first, NOTHING, low, seed=seed), span(second, NOTHING, high, seed=seed + 1)]
    phases = phases_of([*parts[0], *parts[1]])
    assert list(phases) == ["phase-1", "phase-2"]
    for phase, seconds, wanted in zip(phases.values(), (first, second), (low, high), strict=True):
        way = phase.reads if reads else phase.writes
        assert way is not None
        assert abs(phase.time - seconds) <= 2
        assert way.rate == pytest.approx(wanted[0], rel=0.1)
        assert way.latency == pytest.approx(wanted[2], rel=0.1)


@settings(max_examples=50)
@given(st.floats(5, 2000), st.integers(20, 900), st.integers(0, 99))
def test_noise_makes_no_phase(rate: float, seconds: int, seed: int) -> None:
    assert list(phases_of(span(seconds, (rate, 8192, 0.002), (rate / 3, 4096, 0.001), seed=seed))) == ["load"]


def test_another_size_at_the_same_rate_is_another_phase() -> None:
    phases = phases_of([*span(60, (50.0, 4096, 0.001)), *span(60, (50.0, 65536, 0.001), seed=2)])
    assert [phase.reads and phase.reads.size for phase in phases.values()] == [4096, 65536]


def test_a_load_that_comes_again_is_one_phase_and_idle_time_is_none() -> None:
    day, night = (100.0, 4096, 0.001), (20.0, 4096, 0.001)
    idle = [LoadTick(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)] * 60
    phases = phases_of([*idle, *span(60, day), *span(60, night, seed=2), *span(60, day, seed=3)])
    assert [round(phase.time / 10) for phase in phases.values()] == [12, 6]
    assert phases_of(idle) == {} == phases_of([])


def test_a_day_is_parted_in_a_moment_and_into_four_phases_at_most() -> None:
    rates = [10.0, 40.0, 160.0, 640.0, 2560.0, 10_240.0]
    ticks = [tick for rate in rates for tick in span(4 * 3600, (rate, 4096, 0.0001), seed=int(rate))]
    phases = phases_of(ticks)
    assert len(phases) == 4
    found = [phase.reads.rate for phase in phases.values() if phase.reads]
    assert found == pytest.approx(rates[2:], rel=0.1)


def queued(arrivals: Sequence[float], latency: float, places: int | None, seconds: int) -> list[LoadTick]:
    """What QEMU's counters say of requests, each counted as it ends; of `places` that each take the next at once where
    there are some, and else of those that come at `arrivals`.
    """
    ends: list[float] = []
    if places is None:
        ends = [one + latency for one in arrivals]
    else:
        for place in range(places):
            ends += [(each + (place + 1) / places) * latency for each in range(int(seconds / latency))]
    counts = [0] * seconds
    for one in ends:
        if one < seconds:
            counts[int(one)] += 1
    return [LoadTick(1.0, n, 0.0, n * 4096.0, 0.0, 0.0, n * latency, 0.0) for n in counts]


@pytest.mark.parametrize("places", [1, 4, 10, 32, 128])
@pytest.mark.parametrize("latency", [0.002, 0.04, 0.3])
def test_a_number_of_requests_that_a_guest_keeps_is_found(places: int, latency: float) -> None:
    (phase,) = phases_of(queued((), latency, places, 300)).values()
    assert phase.reads is not None and phase.reads.in_flight == places


@pytest.mark.parametrize("latency", [0.005, 0.04])
@pytest.mark.parametrize("depth", [0.95, 1.0, 2.0, 3.9, 9.6, 12.0, 12.75, 30.0])
def test_requests_that_come_by_themselves_keep_no_number_however_near_to_one_their_mean_is(
    depth: float, latency: float
) -> None:
    drawn, arrivals, now = random.Random(7), [], 0.0
    while now < 300:
        now += drawn.expovariate(depth / latency)
        arrivals.append(now)
    (phase,) = phases_of(queued(arrivals, latency, None, 300)).values()
    assert phase.reads is not None and phase.reads.depth == pytest.approx(depth, rel=0.03)
    assert phase.reads.in_flight is None


def test_few_large_requests_are_a_load_too() -> None:
    (phase,) = phases_of(span(60, (100.0, 512, 0.001), (1.0, 2**24, 0.1))).values()
    assert phase.writes is not None and phase.writes.size == 2**24
    (alone,) = phases_of(span(60, NOTHING, (0.5, 2**23, 0.1))).values()
    assert alone.writes is not None and alone.writes.rate == pytest.approx(0.5, rel=0.1)
    assert phases_of(span(60, NOTHING, (0.5, 4096, 0.1))) == {}


def test_a_phase_of_few_large_requests_is_none_of_the_smallest() -> None:
    rates = [100.0, 200.0, 400.0, 800.0]
    small = [tick for rate in rates for tick in span(60, (rate, 512, 0.0001), seed=int(rate))]
    phases = phases_of([*small, *span(60, (5.0, 2**23, 0.01))])
    assert len(phases) == 4 and [phase.reads.size for phase in phases.values() if phase.reads][-1] == 2**23


def test_a_way_with_too_few_requests_for_a_cell_is_left_out() -> None:
    """A cell lasts a minute at most, and half of it is looked at."""
    (phase,) = phases_of(span(300, (3.0, 4096, 0.001), (0.07, 4096, 0.001))).values()
    assert phase.reads is not None and phase.writes is None


def test_a_tick_that_catches_up_counts_by_its_seconds() -> None:
    slow, fast = span(30, (100.0, 4096, 0.001)), span(2, (500.0, 4096, 0.001))
    stalled = replace(fast[0], seconds=28.0, reads=500.0, read_bytes=500.0 * 4096)
    phases = phases_of([*slow, fast[0], stalled, fast[1]])
    assert [phase.time for phase in phases.values()] == [30, 30]
    assert [phase.reads.rate for phase in phases.values() if phase.reads] == pytest.approx([100, 500], rel=0.05)


def test_one_piece_of_a_load_that_varies_as_much_anyway_is_no_phase() -> None:
    tick = replace(span(1, (100.0, 4096, 0.001))[0], seconds=12.0)
    values = [*([40.0, 160.0] * 50), 170.0]
    ticks = [replace(tick, reads=one, read_bytes=one * 4096, read_depth=one / 1000) for one in values]
    assert list(phases_of(ticks)) == ["load"]
    steady = [replace(tick, reads=one, read_bytes=one * 4096) for one in [*([99.0, 101.0] * 50), 300.0]]
    assert [phase.time for phase in phases_of(steady).values()] == [1200, 12]


def counters(second: int, rates: Sequence[float]) -> dict[str, Any]:
    """libvirt's answer after so many seconds of constant rates."""
    reads, writes, flushes, read_ms, write_ms, flush_ms = rates
    found: dict[str, Any] = {"block.count": 1, "block.0.name": "vda"}
    for key, rate, size, ms in (("rd", reads, 4096, read_ms), ("wr", writes, 8192, write_ms)):
        found |= {f"block.0.{key}.reqs": rate * second, f"block.0.{key}.bytes": rate * size * second}
        found |= {f"block.0.{key}.times": rate * ms * 1_000_000 * second}
    return found | {"block.0.fl.reqs": flushes * second, "block.0.fl.times": flushes * flush_ms * 1_000_000 * second}


def test_from_libvirts_counters_to_a_phase() -> None:
    names = SampleNames.of([f"{metric}[db/vda]" for metric in OF_DISK])
    samples = []
    for second in range(1, 31):
        rates = (80, 40, 10, 5, 20, 3)
        _, disks = libvirt_rates(counters(second, rates), counters(second - 1, rates), 1.0)
        samples.append(Sample(float(second), float(second), 1.0, 0.0, names, disks["vda"]))
    (phase,) = phases_of(load_ticks(samples, "db", "vda")).values()
    assert phase.reads is not None and phase.writes is not None
    assert (phase.reads.rate, phase.reads.size, phase.writes.rate, phase.writes.size) == (80, 4096, 40, 8192)
    assert phase.reads.latency == pytest.approx(0.005)
    assert phase.writes.latency == pytest.approx(0.02)
    assert phase.flushes == 10
    assert load_ticks(samples, "db", "vdb") == []


def test_a_rate_counts_for_the_seconds_that_it_describes() -> None:
    """libvirt was late while the disk was slow: its rates stand for a tick, and the next ones are over two."""
    names = SampleNames.of([*(f"{metric}[db/vda]" for metric in OF_DISK), "domain_read_length_seconds[db]"])
    samples: list[Sample] = []
    slow = (2, 0, 0, 500, 0, 0)
    totals = [counters(0, slow)]
    for second in range(1, 61):
        grown = counters(1, slow if second in (20, 21) else (80, 0, 0, 5, 0, 0))
        same = {"block.count": 1, "block.0.name": "vda"}
        totals.append({key: value + totals[-1][key] for key, value in grown.items() if key not in same} | same)
        late, length = second == 20, 2.0 if second == 21 else 1.0
        _, disks = libvirt_rates(totals[second], totals[second - round(length)], length)
        values = [*samples[-1].values[:-1], 0.0] if late else [*disks["vda"], length]
        samples.append(Sample(float(second), float(second), 1.0, 0.0, names, values))
    (phase,) = phases_of(load_ticks(samples, "db", "vda")).values()
    assert phase.reads is not None and phase.time == 60
    assert phase.reads.rate * phase.time == pytest.approx(totals[-1]["block.0.rd.reqs"])
    assert phase.reads.rate * phase.time * phase.reads.latency == pytest.approx(totals[-1]["block.0.rd.times"] / 1e9)
    found = summarise(samples, 0.0, 60.0, instances=True)
    assert found["domain_disk_reads_per_second[db/vda]"].mean == pytest.approx(phase.reads.rate)
    assert found["domain_disk_await_ms[db/vda]"].mean == pytest.approx(1000 * phase.reads.latency)


def test_ticks_of_older_recordings_have_no_load() -> None:
    old = [f"{metric}[db/vda]" for metric in OF_DISK[:6]]
    sample = Sample(1.0, 1.0, 1.0, 0.0, SampleNames.of(old), [1.0] * len(old))
    assert load_ticks([sample], "db", "vda") == []
