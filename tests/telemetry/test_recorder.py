"""The recorder as a whole, on a recorded host and on this one."""

from __future__ import annotations

import itertools
import math
import threading
import time
from pathlib import Path

import pytest

from tests.telemetry.libvirt_stats import answer, domain
from tests.telemetry.recorded import DISKSTATS, RecordedHost
from tests.waiting import until
from vmlab.model.names import BRIDGE
from vmlab.model.sample import OWN_NAMES, Sample
from vmlab.telemetry.guests import Deliver
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import ReadTimes, Recorder
from vmlab.telemetry.recorder_clock import HostClocks, take_precedence


class Sink(list[Sample]):
    """Collects samples; `enough` waits for so many."""

    def enough(self, count: int) -> list[Sample]:
        limit = time.monotonic() + 120
        while len(self) < count:
            assert time.monotonic() < limit, f"{len(self)} samples"
            time.sleep(0.01)
        return list(self)


class CountedClocks(HostClocks):
    """Those of this host; `twelve` is set when the recorder waits for its twelfth tick."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 12
        self.twelve = threading.Event()

    def sleep(self, seconds: float) -> bool:
        self._left -= 1
        if self._left == 0:
            self.twelve.set()
        return super().sleep(seconds)


def recorder(host: RecordedHost, sink: Sink, told: list[str], **others: object) -> Recorder:
    host.proc("self/mountinfo", "")
    watched = Watched(host.roots, network=BRIDGE, notify=told.append)
    return Recorder(0.02, sink.append, watched, **others)  # type: ignore[arg-type]


def test_each_tick_is_a_sample_with_its_length_and_lateness(host: RecordedHost) -> None:
    sink, told = Sink(), list[str]()
    one = recorder(host, sink, told)
    one.start()
    samples = sink.enough(5)
    one.stop()
    for before, after in itertools.pairwise(samples):
        assert after.length == pytest.approx(after.mono - before.mono)
        assert after.layout is before.layout
    assert samples[0].layout.names[: len(OWN_NAMES)] == OWN_NAMES
    assert samples[0].get("tick_length_seconds") == samples[0].length
    assert samples[0].get("memory_cached_bytes") == 6_000_000 * 1024
    assert samples[0].instances("disk_await_ms").keys() == {"sda", "sdb"}
    assert math.isnan(samples[0].get("no_such_value"))
    assert all(sample.lateness >= 0 for sample in samples)


def test_what_is_missing_is_left_out_with_one_notice_each(host: RecordedHost) -> None:
    for name in ("proc/pressure/cpu", "sys/kernel/mm/ksm/run", "proc/4194305/comm"):
        (host.root / name).unlink()
    sink, told = Sink(), list[str]()
    one = recorder(host, sink, told)
    one.start()
    names = sink.enough(3)[-1].layout.names
    one.stop()
    assert not [name for name in names if name.startswith(("ksm", "pressure", "power"))]
    assert "memory_used_bytes" in names
    for word in ("KSM here", "pressure (PSI)", "ksmd's CPU"):
        assert len([line for line in told if word in line]) == 1, told
    assert not [line for line in told if "RAPL" in line]


def test_a_file_that_breaks_later_costs_its_own_group_and_comes_back(host: RecordedHost) -> None:
    sink, told = Sink(), list[str]()
    one = recorder(host, sink, told)
    one.start()
    sink.enough(2)
    host.proc("meminfo", "nonsense\n")
    while not math.isnan(sink.enough(len(sink) + 1)[-1].get("memory_used_bytes")):
        pass
    broken = sink[-1]
    assert broken.get("cpu_count") == 2
    assert broken.get("ksm_saved_bytes") > 0
    host.proc("meminfo", "MemTotal: 1000 kB\nMemFree: 400 kB\nCached: 100 kB\n")
    while math.isnan(sink.enough(len(sink) + 1)[-1].get("memory_used_bytes")):
        pass
    one.stop()
    assert len([line for line in told if "memory" in line and "for now" in line]) == 1
    assert sink[-1].get("memory_used_bytes") == 500 * 1024


def test_a_layout_that_was_there_before_comes_back(host: RecordedHost) -> None:
    sink, told = Sink(), list[str]()
    one = recorder(host, sink, told)
    one.start()
    first = sink.enough(1)[-1].layout
    host.proc("diskstats", "\n".join(DISKSTATS.split("\n")[:3]) + "\n")
    while sink.enough(len(sink) + 1)[-1].layout is first:
        pass
    assert "disk_await_ms[sdb]" not in sink[-1].layout.names
    host.proc("diskstats", DISKSTATS)
    while sink.enough(len(sink) + 1)[-1].layout is not first:
        pass
    one.stop()


def test_a_sink_that_is_slow_or_fails_loses_no_tick(host: RecordedHost) -> None:
    kept: list[Sample] = []
    told: list[str] = []
    release = threading.Event()

    def sink(sample: Sample) -> None:
        if not release.wait(240):
            raise TimeoutError
        kept.append(sample)
        if len(kept) == 2:
            raise OSError("the disk is full")

    clocks = CountedClocks()
    one = recorder(host, sink=Sink(), told=told, clocks=clocks)
    one._sink = sink
    one.start()
    assert clocks.twelve.wait(120), "it goes on while nobody takes what it has"
    release.set()
    one.stop()
    assert len(kept) > 10
    for before, after in itertools.pairwise(kept):
        assert after.length == pytest.approx(after.mono - before.mono), "none is missing between them"
    assert [line for line in told if "the disk is full" in line] == ["a sample was lost: the disk is full"]


def test_guests_stand_beside_the_host(host: RecordedHost) -> None:
    sink, told = Sink(), list[str]()
    steps = iter(range(10_000))
    one = recorder(host, sink, told, guests=lambda deliver, whole: deliver(answer({"web": domain(next(steps))})))
    one.start()
    sample = sink.enough(4)[-1]
    one.stop()
    assert sample.get("guest_cpu_percent[web]") > 0
    assert sample.get("guest_questions_stuck") == 0


async def test_counters_are_read_when_somebody_asks_and_samples_begin_and_end_there(host: RecordedHost) -> None:
    """Also where the guests' answer comes late: it is said once their counters are of that moment."""
    sink, told, read = Sink(), list[str](), list[ReadTimes]()
    steps = iter(range(10_000))
    held: list[Deliver] = []

    def ask(deliver: Deliver, whole: bool) -> None:
        if whole and not held:
            held.append(deliver)
        else:
            deliver(answer({"web": domain(next(steps))}))

    one = recorder(host, sink, told, guests=ask, clocks=HostClocks(plain=0.0))
    one.start()
    sink.enough(2)
    asked = time.monotonic()
    one.read_at(asked, read.append)
    await until(lambda: bool(read), "the first reading")
    one.read_at(time.monotonic() + 0.05, read.append)
    await until(lambda: len(read) == 2, "the second reading")
    one.stop()
    assert held, "all guests are asked for"
    ends = {sample.mono for sample in sink}
    for found in read:
        assert {found.host, found.sampled} <= ends
        assert min(found.guests, found.guests_disks) >= found.host
    assert read[0].host >= asked
    span = [sample for sample in sink if read[0].host < sample.mono <= read[1].host]
    assert sum(sample.length for sample in span) == pytest.approx(read[1].host - read[0].host)


async def test_without_guests_the_hosts_counters_are_all(host: RecordedHost) -> None:
    sink, read = Sink(), list[ReadTimes]()
    one = recorder(host, sink, [], clocks=HostClocks(plain=0.0))
    one.read_at(0.0, read.append)
    one.start()
    await until(lambda: bool(read), "a reading that was asked for before the start")
    one.stop()
    (found,) = read
    assert found == (sink[0].mono,) * 4


def test_an_interval_without_sense_is_refused(host: RecordedHost) -> None:
    with pytest.raises(ValueError, match="between"):
        Recorder(0.0, lambda sample: None, Watched(host.roots))


def test_other_work_is_what_the_lab_did_not_do(host: RecordedHost) -> None:
    sink, told = Sink(), list[str]()
    one = recorder(host, sink, told)
    one.start()
    sink.enough(2)
    host.proc("stat", (host.root / "proc/stat").read_text().replace("cpu0 100 10 60 1000", "cpu0 101 10 60 1001"))
    while not (busy := [s for s in sink.enough(len(sink) + 1) if s.get("cpu_user_percent") > 0]):
        pass
    one.stop()
    assert busy[0].get("cpu_outside_lab_percent") == pytest.approx(busy[0].get("cpu_user_percent"))
    assert busy[0].get("cpu_lab_percent") == 0


def test_priority_is_taken_or_its_refusal_told() -> None:
    told: list[str | None] = []
    thread = threading.Thread(target=lambda: told.append(take_precedence()))
    thread.start()
    thread.join()
    assert told[0] is None or "real-time priority" in told[0]


def test_this_host_gives_figures_that_make_sense(tmp_path: Path) -> None:
    sink = Sink()
    one = Recorder(0.1, sink.append, Watched(lab_folders=[tmp_path], scope="process"))
    one.start()
    sample = sink.enough(5)[-1]
    one.stop()
    states = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    assert sum(sample.get(f"cpu_{state}_percent") for state in states) == pytest.approx(100, abs=0.1)
    parts = ("used", "cached", "buffers", "reclaimable_slab", "free")
    assert sum(sample.get(f"memory_{part}_bytes") for part in parts) == sample.get("memory_total_bytes")
    assert sample.get("memory_total_bytes") > 2**26
    assert 0 <= sample.get("recorder_cpu_percent") < 50
