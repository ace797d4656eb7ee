"""Guests' figures, and guests that hang."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.telemetry.libvirt_stats import answer, domain
from vmlab.telemetry.guest_readings import (
    DATA_BLOCK,
    DISKS,
    QUICK,
    GuestAnswer,
    GuestAnswers,
    GuestRates,
    GuestStats,
    Part,
    Timed,
)
from vmlab.telemetry.guests import Answer, Deliver, Guests, Poller, asked_of_loop


class Rates:
    """Those of both parts of an answer."""

    def __init__(self) -> None:
        self.parts = {part: GuestRates(part) for part in (QUICK, DISKS)}


def named(rates: Rates, stats: GuestStats, mono: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for part, one in rates.parts.items():
        values = one.rates(GuestAnswers().counters(part, stats), mono)
        found |= dict(zip(one.names, values, strict=True))
    return found


def test_rates_are_over_the_time_between_two_answers() -> None:
    rates = Rates()
    first = named(rates, {"web": domain()}, 10.0)
    assert math.isnan(first["guest_cpu_percent[web]"])
    assert first["guest_memory_resident_bytes[web]"] == 300000 * 1024
    got = named(rates, {"web": domain(1)}, 12.0)
    assert got["guest_cpu_percent[web]"] == pytest.approx(25.0)
    assert got["guest_vcpu_delay_percent[web]"] == pytest.approx(5.0)
    assert got["guest_disk_read_bytes_per_second[web]"] == 102400
    assert got["guest_disk_writes_per_second[web]"] == 5
    assert got["guest_disk_read_await_ms[web]"] == pytest.approx(2.0)
    assert got["guest_disk_write_await_ms[web]"] == pytest.approx(3.0)
    assert got["guest_network_receive_bytes_per_second[web]"] == 2000
    assert got["guest_network_transmit_packets_per_second[web]"] == 30


def test_several_disks_vcpus_and_nics_are_added_up() -> None:
    def big(scale: int) -> dict[str, int]:
        stats = domain(scale)
        second = {key.replace("block.0", "block.1"): value for key, value in stats.items() if "block.0" in key}
        return {**stats, **second, "block.count": 2, "vcpu.current": 2, "vcpu.1.delay": scale * 100_000_000}

    rates = Rates()
    named(rates, {"web": big(0)}, 10.0)
    got = named(rates, {"web": big(1)}, 11.0)
    assert got["guest_disk_reads_per_second[web]"] == 100
    assert got["guest_disk_read_await_ms[web]"] == pytest.approx(2.0)
    assert got["guest_vcpu_delay_percent[web]"] == pytest.approx(20.0)


def with_data(scale: int, **changed: int) -> dict[str, int]:
    """A guest whose second disk is its data disk: three times as many requests of twice the time."""
    stats = domain(scale)
    more = {"rd.reqs": 150 * scale, "wr.reqs": 30 * scale, "rd.times": 600_000_000 * scale, "wr.times": 0}
    more |= {"rd.bytes": 0, "wr.bytes": 0}
    return {**stats, "block.count": 2, DATA_BLOCK: 1, **{f"block.1.{key}": n for key, n in more.items()}, **changed}


def test_a_data_disk_has_figures_of_its_own_besides() -> None:
    rates = Rates()
    named(rates, {"web": with_data(0), "mail": domain()}, 10.0)
    got = named(rates, {"web": with_data(1), "mail": domain(1)}, 11.0)
    assert got["guest_disk_reads_per_second[web]"] == 200
    data = {name: value for name, value in got.items() if name.startswith("guest_data_disk_")}
    assert data == {
        "guest_data_disk_reads_per_second[web]": 150,
        "guest_data_disk_writes_per_second[web]": 30,
        "guest_data_disk_read_await_ms[web]": pytest.approx(4.0),
        "guest_data_disk_write_await_ms[web]": 0.0,
    }
    # A guest that was passed over once has rates over the time since it was read before.
    assert "guest_data_disk_reads_per_second[web]" not in named(rates, {"web": domain(2), "mail": domain(2)}, 12.0)
    later = named(rates, {"web": with_data(3), "mail": domain(3)}, 13.0)
    assert later["guest_data_disk_reads_per_second[web]"] == 150
    anew = named(rates, {"web": with_data(1), "mail": domain(4)}, 14.0)
    assert math.isnan(anew["guest_data_disk_reads_per_second[web]"])


def test_a_guest_that_nowait_passed_over_costs_its_own_figures_only() -> None:
    rates = Rates()
    named(rates, {"web": domain(), "mail": domain()}, 10.0)
    partial = {key: value for key, value in domain(1).items() if key.startswith(("state.", "cpu."))}
    got = named(rates, {"web": domain(1), "mail": partial}, 11.0)
    assert got["guest_disk_reads_per_second[web]"] == 50
    assert got["guest_cpu_percent[mail]"] == pytest.approx(50.0)
    assert math.isnan(got["guest_disk_reads_per_second[mail]"])
    assert math.isnan(got["guest_memory_resident_bytes[mail]"])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("back", "unknown"),
    [
        ("cpu.time", ("cpu", "vcpu", "network")),
        ("vcpu.0.delay", ("vcpu",)),
        ("block.0.rd.bytes", ("disk",)),
        ("block.0.wr.times", ("disk",)),
        ("net.0.tx.bytes", ("network",)),
    ],
)
def test_a_guest_that_was_started_anew_has_no_rates_for_one_answer(
    whole: bool, back: str, unknown: tuple[str, ...]
) -> None:
    """The rule: a counter of a guest that went back began anew, and with it those that belong to the same thing."""
    rates = Rates()
    named(rates, {"web": {**domain(), back: 4_000_000_000}}, 10.0)
    again = domain(1) if whole else {key: value for key, value in domain(1).items() if key != "balloon.rss"}
    got = named(rates, {"web": again}, 11.0)
    of_rates = {name: value for name, value in got.items() if "_memory_" not in name}
    for name, value in of_rates.items():
        assert math.isnan(value) == name.startswith(tuple(f"guest_{one}_" for one in unknown)), name
    assert not math.isnan(named(rates, {"web": domain(2)}, 12.0)["guest_cpu_percent[web]"])


def test_guests_that_come_and_go_change_the_names() -> None:
    rates = Rates()
    named(rates, {"web": domain()}, 10.0)
    got = named(rates, {"web": domain(1), "mail": domain()}, 11.0)
    assert got["guest_cpu_percent[web]"] == pytest.approx(50.0)
    assert math.isnan(got["guest_cpu_percent[mail]"])
    assert len(named(rates, {"mail": domain(1)}, 12.0)) == len(QUICK.metrics) + len(DISKS.metrics)
    assert named(rates, {}, 13.0) == {}


class Hypervisor:
    """A source that hangs while it is told to, as libvirt does on a stuck guest."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.calls = 0
        self.scale = 0

    def __call__(self, deliver: Deliver, whole: bool) -> None:
        self.calls += 1
        if self.free.is_set():
            self._answer(deliver)
        else:
            threading.Thread(target=self._answer, args=(deliver,), daemon=True).start()

    def _answer(self, deliver: Deliver) -> None:
        if self.free.wait(600):
            self.scale += 1
            deliver(answer({"web": domain(self.scale)}))


@pytest.fixture
def hypervisor() -> Iterator[Hypervisor]:
    source = Hypervisor()
    yield source
    source.free.set()


def tick(guests: Guests) -> dict[str, float]:
    values = guests.read(0.0, 1.0)
    return dict(zip(guests.names, values, strict=True))


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_source_that_hangs_delays_no_tick_and_comes_back(hypervisor: Hypervisor) -> None:
    guests = Guests(hypervisor, 0.06)
    until(lambda: tick(guests).get("guest_cpu_percent[web]", 0) > 0)
    hypervisor.free.clear()
    until(lambda: math.isnan(tick(guests)["guest_cpu_percent[web]"]))
    began = time.monotonic()
    for _ in range(5):
        assert math.isnan(tick(guests)["guest_cpu_percent[web]"])
    assert time.monotonic() - began < 300
    hypervisor.free.set()
    until(lambda: not math.isnan(tick(guests)["guest_cpu_percent[web]"]))


def test_a_question_that_hangs_is_left_behind_and_asked_again(
    hypervisor: Hypervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmlab.telemetry.guests._PATIENCE_SECONDS", 0.05)
    guests = Guests(hypervisor, 0.06)
    until(lambda: tick(guests).get("guest_cpu_percent[web]", 0) > 0)
    hypervisor.free.clear()
    until(lambda: tick(guests).get("guest_questions_stuck") == 4)
    for _ in range(10):
        time.sleep(0.02)
        assert tick(guests)["guest_questions_stuck"] == 4, "four are the most that are left behind"
    asked = hypervisor.calls
    hypervisor.free.set()
    until(lambda: tick(guests)["guest_questions_stuck"] == 0)
    until(lambda: tick(guests)["guest_cpu_percent[web]"] > 0)
    assert hypervisor.calls > asked


def test_an_answer_that_is_late_for_its_tick_serves_the_next_one() -> None:
    asked: list[Deliver] = []
    poller = Poller(lambda deliver, whole: asked.append(deliver), GuestAnswers().cut)
    assert poller.answer(0.0) is None
    asked[0](third := answer({"web": domain(3)}))
    late = poller.answer(0.0)
    assert len(asked) == 2, "the next tick asks too, and gets what is there"
    assert late is not None and late.counters is not None
    assert late.counters.found == GuestAnswers().cut(third), "with the time at which it was read"
    asked[1](fourth := answer({"web": domain(4)}))
    newest = poller.answer(0.0)
    assert newest is not None and newest.counters is not None
    assert newest.counters.found == GuestAnswers().cut(fourth)


def test_no_rate_is_over_a_time_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer was held up for 0.9 s, so that the next one seems to follow it closely."""
    times = iter([(10.0, 10.0), (11.0, 11.9), (12.0, 12.0), (13.0, 13.0)])
    answers = [
        Answer(number, Timed(0.0, 0.0, GuestAnswers().cut(answer({"web": domain(number)}, *one))), None)
        for number, one in enumerate(times)
    ]
    guests = Guests(lambda deliver, whole: None, 1.0)
    monkeypatch.setattr(guests._poller, "answer", lambda seconds, anew: answers.pop(0))
    tick(guests)
    held_up, at_once, usual = (tick(guests)["guest_cpu_percent[web]"] for _ in range(3))
    assert held_up == pytest.approx(50 / 1.45)
    assert math.isnan(at_once)
    assert usual == pytest.approx(100 / 1.55)


def test_a_question_under_way_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.telemetry.guests._PATIENCE_SECONDS", 600.0)
    asked: list[Deliver] = []
    poller = Poller(lambda deliver, whole: asked.append(deliver), GuestAnswers().cut)
    assert [poller.answer(0.0) for _ in range(3)] == [None, None, None]
    assert len(asked) == 1
    assert poller.stuck == 0


def test_a_source_that_fails_says_why() -> None:
    with pytest.raises(ValueError, match="the connection is gone"):
        tick(Guests(lambda deliver, whole: deliver(RuntimeError("the connection is gone")), 0.06))

    def broken(deliver: Deliver, whole: bool) -> None:
        raise RuntimeError("the loop has ended")

    with pytest.raises(ValueError, match="the loop has ended"):
        tick(Guests(broken, 0.06))


async def answered(
    statistics: Callable[[bool], Coroutine[Any, Any, GuestAnswer[GuestStats]]], deadline: float = 30.0
) -> GuestAnswer[GuestStats] | Exception:
    """What this test's loop delivers for one question that another thread puts."""
    found: asyncio.Queue[GuestAnswer[GuestStats] | Exception] = asyncio.Queue()
    ask = asked_of_loop(statistics, asyncio.get_running_loop(), deadline)
    await asyncio.to_thread(ask, found.put_nowait, True)
    async with asyncio.timeout(120):
        return await found.get()


async def test_a_coroutine_is_asked_without_holding_its_loop() -> None:
    given = answer({"web": domain()})

    async def domain_stats(whole: bool) -> GuestAnswer[GuestStats]:
        await asyncio.sleep(0)
        assert whole, "as it was asked"
        return given

    assert await answered(domain_stats) is given


async def test_what_goes_wrong_with_a_coroutine_is_delivered() -> None:
    async def broken(whole: bool) -> GuestAnswer[GuestStats]:
        raise OSError("no such domain")

    async def hangs(whole: bool) -> GuestAnswer[GuestStats]:
        await asyncio.Event().wait()
        raise AssertionError

    async def given_up(whole: bool) -> GuestAnswer[GuestStats]:
        raise asyncio.CancelledError

    assert isinstance(await answered(broken), OSError)
    assert isinstance(await answered(hangs, deadline=0.01), TimeoutError)
    assert "given up" in str(await answered(given_up))


def test_a_loop_that_has_ended_is_told() -> None:
    async def domain_stats(whole: bool) -> GuestAnswer[GuestStats]:
        return answer({})

    loop = asyncio.new_event_loop()
    ask = asked_of_loop(domain_stats, loop)
    loop.close()
    with pytest.raises(ValueError, match="closed"):
        tick(Guests(ask, 0.06))


@pytest.mark.parametrize("part", [QUICK, DISKS])
def test_a_whole_answer_gives_what_each_value_gives_apart(part: Part) -> None:
    whole, apart = GuestRates(part), GuestRates(part)
    counters = GuestAnswers().counters
    for scale in (0, 1, 3, 2, 7):
        found = counters(part, {"web": domain(scale), "mail": domain(2 * scale)})
        pieces = {guest: counted._replace(whole=False) for guest, counted in found.items()}
        assert all(counted.whole for counted in found.values())
        got = whole.rates(found, 10.0 + scale)
        assert got == pytest.approx(apart.rates(pieces, 10.0 + scale), nan_ok=True, rel=1e-12)
        assert whole.names == apart.names


def test_a_value_that_comes_again_is_over_the_time_since_it_was_last_told() -> None:
    rates = Rates()
    named(rates, {"web": domain()}, 10.0)
    quick = {key: value for key, value in domain(1).items() if not key.startswith("block.")}
    assert math.isnan(named(rates, {"web": quick}, 11.0)["guest_disk_reads_per_second[web]"])
    got = named(rates, {"web": domain(2)}, 14.0)
    assert got["guest_disk_reads_per_second[web]"] == pytest.approx(2 * 50 / 4)
    assert got["guest_cpu_percent[web]"] == pytest.approx(50.0 / 3)
