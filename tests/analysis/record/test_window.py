"""The figures of a cell are those between two readings of all counters: as its workloads start, and have ended.

The rule: bytes belong to the moment at which they were moved, not to the tick in which libvirt's answer came; nothing
that was moved before the opening reading or after the closing one counts, and nothing between them is missing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from vmlab.analysis.cell_shape import TrafficDocument
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.coverage import Window
from vmlab.analysis.record.traffic import disk_traffic
from vmlab.model.cell_event import (
    CellStarted,
    CountersRead,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.sample import Sample, SampleNames
from vmlab.telemetry.guest_readings import GuestAnswer, GuestAnswers, GuestCounters, Timed
from vmlab.telemetry.guests import Answer, Guests

MIB = 2**20
STARTS, OPENED = 105.0, 104.975
Counter = Callable[[float], int]
Late = Callable[[float], tuple[float, float] | None]
"""Of an answer that comes at a tick: when CPU and disks were read. None where none came."""


def moved(*spans: tuple[float, float, float]) -> Counter:
    """Bytes that were read by a moment, in spans of so many MiB a second."""
    return lambda t: round(sum(rate * MIB * max(0.0, min(t, until) - since) for since, until, rate in spans))


def stored(samples: Sequence[Sample]) -> list[Sample]:
    """As a store gives them back, in which each value is a 32-bit float."""
    return [
        one._replace(values=struct.unpack(p := f"<{len(one.values)}f", struct.pack(p, *one.values))) for one in samples
    ]


class Told:
    """In place of the poller: gives the answer that the test has put there."""

    stuck = 0
    given: Answer[GuestAnswer[GuestCounters]] | None = None

    def answer(self, seconds: float, *, anew: bool = False) -> Answer[GuestAnswer[GuestCounters]] | None:
        return self.given


def recorded(ticks: Sequence[float], asked: set[float], host: Counter, guest: Counter, late: Late) -> list[Sample]:
    """The samples of a recorder whose host and guest have moved so much."""
    guests, told = Guests(lambda deliver, whole: None, 1.0), Told()
    guests._poller = told  # type: ignore[assignment]
    made = []
    for before, mono in pairwise(ticks):
        told.given, found = None, late(mono)
        if found is not None:
            quick, disks = ({"t1-vm": one} for one in figures(*found, guest))
            parts = GuestAnswer(Timed(found[0], found[0], quick), Timed(found[1], found[1], disks))
            told.given = Answer(1, Timed(0.0, 0.0, GuestAnswers().cut(parts)), None)
        if mono in asked:
            guests.ask_anew()
        values = guests.read(mono, mono - before)
        rate = (host(mono) - host(before)) / (mono - before)
        names = ("tick_length_seconds", "disk_read_bytes_per_second", *guests.names)
        made.append(Sample(mono, mono, mono - before, 0.0, SampleNames.of(names), (mono - before, rate, *values)))
    return stored(made)


def figures(quick: float, disks: float, guest: Counter) -> tuple[dict[str, int], dict[str, int]]:
    """libvirt's numbers at these two moments."""
    own = {"cpu.time": round(quick * 1e9), "vcpu.current": 1, "vcpu.0.delay": 0, "net.count": 1}
    own |= {f"net.0.{way}.{key}": 0 for way in ("rx", "tx") for key in ("bytes", "pkts")}
    block = {f"block.0.{way}.{key}": 0 for way in ("rd", "wr") for key in ("bytes", "reqs", "times")}
    return own, {**block, "balloon.rss": 1, "balloon.current": 1, "block.count": 1, "block.0.rd.bytes": guest(disks)}


def at_once(mono: float) -> tuple[float, float]:
    return mono + 0.002, mono + 0.006


def qemu_is_late(mono: float) -> tuple[float, float]:
    """What it was asked at a tick comes with the next one, but for the readings out of turn."""
    return mono + 0.002, mono - 0.99 if mono == round(mono) else mono + 0.006


def one_is_lost(mono: float) -> tuple[float, float] | None:
    return None if mono == 106.0 else at_once(mono)


def closing_is_late(mono: float) -> tuple[float, float] | None:
    """The answer to the closing reading comes with the tick after it."""
    if mono not in (106.31, 108.31, 115.31):
        return (mono - 0.685, mono - 0.68) if mono in (107.0, 109.0, 116.0) else at_once(mono)
    return None


@pytest.mark.parametrize("late", [at_once, qemu_is_late, one_is_lost, closing_is_late])
@pytest.mark.parametrize("seconds", [1, 3, 10])
def test_bytes_of_a_cell_are_those_between_its_two_readings(seconds: int, late: Late) -> None:
    ends = STARTS + seconds + 0.3
    closed = round(ends + 0.01, 2)
    # The guests' disks are prepared before, and verified after; the lab itself reads as soon as it may.
    works = (STARTS, ends, 64.0)
    guest = moved((100.0, 104.5, 300.0), works, (closed + 0.3, closed + 2.0, 100.0))
    host = moved((100.0, 104.5, 300.0), works, (closed, closed + 5.0, 700.0))
    turns = [float(t) for t in range(100, math.ceil(closed) + 4) if t != 105]
    ticks = sorted([*turns, OPENED, closed])
    samples = recorded(ticks, {OPENED, closed}, host, guest, late)
    read = [late(closed) or late(math.ceil(closed))]
    assert read[0] is not None
    opening = late(OPENED)
    assert opening is not None
    window = Window((OPENED, closed), (opening[0], read[0][0]), (opening[1], read[0][1]), float(math.ceil(closed)))
    found = disk_traffic(samples, window)
    assert found is not None and found.exact
    expected = pytest.approx(64 * MIB * (seconds + 0.3), abs=4096)
    assert found.read.host_bytes == expected
    assert found.read.guests_bytes == expected


def test_a_guest_that_starts_again_costs_the_time_around_it_alone() -> None:
    """Its counters begin at 0: what it moved between the last reading and that is not known, and never negative."""
    steady = moved((90.0, 120.0, 64.0))
    samples = recorded(
        [100.0, *range(101, 112)],
        set(),
        steady,
        lambda t: steady(t) if t < 105.5 else steady(t) - steady(105.5),
        at_once,
    )
    found = disk_traffic(samples, Window((101.0, 111.0), (101.002, 111.002), (101.006, 111.006), 111.0))
    assert found is not None
    assert found.read.guests_bytes == pytest.approx(640 * MIB, rel=1e-4)


def old_ticks(guest: Counter, count: int) -> list[Sample]:
    """As they were recorded before: what QEMU was asked at one tick was in the answer of the next one."""
    layout = SampleNames.of(["disk_read_bytes_per_second", "guest_disk_read_bytes_per_second[t1-vm]"])
    rates = [float(guest(t) - guest(t - 1)) for t in range(101, 101 + count)]
    late = [math.nan, *rates]
    return [
        Sample(mono, mono, 1.0, 0.0, layout, values)
        for mono, *values in zip(map(float, range(101, 101 + count)), rates, late, strict=False)
    ]


def traffic_of_old(guest: Counter, since: float, until: float) -> TrafficDocument:
    found = disk_traffic(old_ticks(guest, 12), Window.plain(since, until))
    assert found is not None
    return found


def test_a_record_without_times_is_read_as_it_was_made_one_answer_late() -> None:
    found = traffic_of_old(moved((104.0, 107.0, 64.0)), 104.0, 107.0)
    assert found.read.guests_bytes == found.read.host_bytes == 192 * MIB
    assert not found.exact, "its first and last tick may lie in part outside"
    before = traffic_of_old(moved((103.0, 104.0, 64.0)), 104.0, 107.0)
    assert before.read.guests_bytes == 0, "what was prepared is not the workloads'"


def test_the_span_of_a_cell_is_that_between_its_readings() -> None:
    cell = CellTimeline.of(CellStarted(mono=90.0, cell=1, axes={}, repeat=1, guests=1), "")
    assert cell.window is None
    ago = {"host_ago": 0.05, "guests_ago": 0.048, "guests_disks_ago": 0.044, "sample_ago": 0.05}
    for one in (
        PhaseStarted(mono=100.025, cell=1, phase="execute"),
        CountersRead(mono=100.05, cell=1, edge="start", **ago),
        CountersRead(mono=110.05, cell=1, edge="end", **{**ago, "sample_ago": -0.7}),
        PhaseEnded(mono=110.06, cell=1, phase="execute", seconds=10.0),
    ):
        cell.apply(one)
    window = cell.window
    assert window is not None and window.is_exact
    assert window.host == pytest.approx((100.0, 110.0))
    assert window.guests == pytest.approx((100.002, 110.002))
    assert window.guests_disks == pytest.approx((100.006, 110.006))
    assert window.sampled == pytest.approx(110.75)
    assert cell.execution == (100.025, 110.06)


def test_without_both_readings_it_is_the_execute_phase() -> None:
    cell = CellTimeline.of(CellStarted(mono=90.0, cell=1, axes={}, repeat=1, guests=1), "")
    for one in (
        PhaseStarted(mono=100.0, cell=1, phase="execute"),
        PhaseEnded(mono=110.0, cell=1, phase="execute", seconds=10.0),
    ):
        cell.apply(one)
    assert cell.window == Window.plain(100.0, 110.0)
    assert not Window.plain(100.0, 110.0).is_exact
