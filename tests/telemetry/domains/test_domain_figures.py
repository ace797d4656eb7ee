"""Figures of the host's own guests: by their processes, by libvirt, and by both."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.telemetry.domains.own_guests import UUID, XML, Libvirt, OwnGuests, libvirt_stats
from tests.telemetry.recorded import RecordedHost
from vmlab.model.names import HELPER_CHANNEL
from vmlab.telemetry.domains.domain_rates import is_passed_over

BY_HAND = "-name web -smp 2 -m 1G -drive file=/srv/web.img,format=raw,cache=none"
OF_LIBVIRT = f"-name guest=db -uuid {UUID} -smp 2 -m 1024"


@pytest.fixture
def libvirt() -> Iterator[Libvirt]:
    source = Libvirt()
    yield source
    source.free.set()


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_qemu_by_hand_is_told_by_its_process_alone(host: RecordedHost) -> None:
    guests = OwnGuests(host)
    guests.qemu(71, BY_HAND)
    guests.tick(10.0)
    guests.used(71, cpu=3.0, waited=0.5, read=8_000_000, written=2_000_000)
    got = guests.tick(12.0)
    (domain,) = guests.group.domains
    assert (domain.name, domain.source, domain.vcpus, domain.memory_bytes) == ("web", "process", 2, 1 << 30)
    assert [(disk.cache, disk.format) for disk in domain.disks] == [("none", "raw")]
    assert got["domain_cpu_percent[web]"] == pytest.approx(150.0)
    assert got["domain_vcpu_delay_percent[web]"] == pytest.approx(25.0)
    assert got["domain_memory_resident_bytes[web]"] == 2048 << 10
    assert got["domain_memory_swapped_bytes[web]"] == 512 << 10
    assert got["domain_ksm_merged_bytes[web]"] == 3 * 4096
    assert got["domain_host_read_bytes_per_second[web]"] == 4_000_000
    assert got["domain_host_write_bytes_per_second[web]"] == 1_000_000
    assert math.isnan(got["domain_disk_await_ms[web]"])
    assert got["domains_seen"] == 1


def test_what_is_no_guest_is_left_out(host: RecordedHost) -> None:
    guests = OwnGuests(host)
    guests.process(50, "/usr/bin/vim /etc/qemu-kvm")
    guests.process(51, "/usr/bin/qemu-img convert a b")
    guests.qemu(52, "-S -machine none,accel=kvm")
    guests.qemu(53, "-id 100 -name mail", program="/usr/bin/kvm")
    guests.tick(10.0)
    assert [domain.name for domain in guests.group.domains] == ["mail"]


def test_guests_of_a_lab_are_counted_apart(host: RecordedHost) -> None:
    guests = OwnGuests(host)
    guests.process(40, "/usr/bin/python3 -m vmlab.lab.process.launcher RUN")
    guests.process(41, "/usr/bin/init", parent=40)
    guests.qemu(42, "-name guest=t1-web", parent=41)
    guests.qemu(43, "-name own", parent=1)
    got = guests.tick(10.0)
    assert [domain.name for domain in guests.group.domains] == ["own"]
    assert got["domains_of_labs"] == 1


def test_guests_of_a_lab_in_the_hosts_own_libvirt_are_known_by_their_mark(host: RecordedHost) -> None:
    libvirt = Libvirt()
    guests = OwnGuests(host, libvirt)
    other = "11111111-f6a4-8304-79aa-97f2502e193f"
    mark = "<metadata><vmlab:lab xmlns:vmlab='urn:vmlab:lab:1' id='run'/></metadata><memory"
    own = libvirt_stats(1, "run-t1-db")._replace(read_xml=lambda: XML.replace("<memory", mark, 1))
    libvirt.answer = [own, libvirt_stats(1, "run-t1-decoy", other)]
    guests.qemu(42, f"-name guest=run-t1-db -uuid {UUID}", parent=1)
    guests.qemu(43, f"-name guest=run-t1-decoy -uuid {other}", parent=1)
    for at in range(20):
        got = guests.tick(10.0 + at)
        if got["domains_of_labs"]:
            break
        time.sleep(0.05)
    assert [domain.name for domain in guests.group.domains] == ["run-t1-decoy"]
    assert (got["domains_seen"], got["domains_of_labs"]) == (1, 1)


def test_a_guest_of_a_lab_that_libvirt_and_its_process_tell_is_counted_once(host: RecordedHost) -> None:
    libvirt = Libvirt()
    guests = OwnGuests(host, libvirt)
    mark = "<metadata><vmlab:lab xmlns:vmlab='urn:vmlab:lab:1' id='run'/></metadata><memory"
    libvirt.answer = [libvirt_stats(1, "run-t1-db")._replace(read_xml=lambda: XML.replace("<memory", mark, 1))]
    guests.qemu(42, f"-name guest=run-t1-db -uuid {UUID} -device virtserialport,name={HELPER_CHANNEL}", parent=1)
    guests.qemu(43, "-name own", parent=1)
    for at in range(20):
        got = guests.tick(10.0 + at)
        time.sleep(0.05)
    assert [domain.name for domain in guests.group.domains] == ["own"]
    assert (got["domains_seen"], got["domains_of_labs"]) == (1, 1)


def test_a_guest_that_comes_and_one_that_goes(host: RecordedHost) -> None:
    guests = OwnGuests(host)
    guests.qemu(71, "-name web")
    guests.tick(10.0)
    guests.qemu(81, "-name web")
    got = guests.tick(13.0)
    assert {name for name in got if name.startswith("domain_cpu")} == {
        "domain_cpu_percent[web]",
        "domain_cpu_percent[web#81]",
    }
    del guests.cpu_ns[71]
    assert [domain.pid for domain in (guests.tick(14.0), guests.group.domains)[1]] == [81]


def test_a_program_that_was_only_forked_is_looked_at_again(host: RecordedHost) -> None:
    guests = OwnGuests(host)
    guests.process(71, "/bin/sh -c qemu")
    guests.tick(10.0)
    guests.qemu(71, "-name web")
    guests.tick(13.0)
    assert [domain.name for domain in guests.group.domains] == ["web"]


def test_libvirt_adds_disks_network_and_what_is_used_inside(host: RecordedHost, libvirt: Libvirt) -> None:
    guests = OwnGuests(host, libvirt)
    guests.qemu(71, OF_LIBVIRT)
    inside: dict[str, Any] = {
        "balloon.last-update": 5,
        "balloon.available": 1000,
        "balloon.unused": 200,
        "balloon.disk_caches": 300,
    }
    inside["balloon.usable"] = 450
    libvirt.answer = [libvirt_stats(0, **inside)]
    until(lambda: "domain_disk_await_ms[db/vda]" in guests.tick(time.monotonic()))
    libvirt.answer = [libvirt_stats(1, **inside)]
    until(lambda: guests.tick(time.monotonic())["domain_disk_reads_per_second[db/vda]"] > 0)
    got = guests.tick(time.monotonic())
    (domain,) = guests.group.domains
    assert (domain.name, domain.source, domain.pid, domain.accelerator) == ("db", "libvirt", 71, "kvm")
    assert [(d.target, d.file, d.format, d.cache) for d in domain.disks] == [
        ("vda", "/images/db.qcow2", "qcow2", "none"),
        ("vdb", "/dev/vg/log", "raw", "writeback"),
    ]
    assert got["domain_memory_used_bytes[db]"] == 500 * 1024
    assert got["domain_memory_cached_bytes[db]"] == 300 * 1024
    assert got["domain_memory_usable_bytes[db]"] == 450 * 1024


def test_the_rates_of_disks_by_hand(host: RecordedHost, libvirt: Libvirt) -> None:
    from vmlab.telemetry.domains.domain_rates import OF_DISK, libvirt_rates

    own, disks = libvirt_rates(libvirt_stats(1).figures, libvirt_stats(0).figures, 2.0)
    got = dict(zip(OF_DISK, disks["vda"], strict=True))
    assert got["domain_disk_reads_per_second"] == 25
    assert got["domain_disk_write_bytes_per_second"] == 20480
    # 100 ms of reads and 30 ms of writes, over 60 requests.
    assert got["domain_disk_await_ms"] == pytest.approx(130 / 60)
    assert got["domain_disk_queue_depth"] == pytest.approx(0.13 / 2)
    assert disks["vdb"] == [0.0] * len(OF_DISK)
    assert own[3:12] == disks["vda"]
    # Ten flushes of 40 ms together come beside them in two seconds.
    flushed = {**libvirt_stats(1).figures, "block.0.fl.reqs": 10, "block.0.fl.times": 40_000_000}
    before = {**libvirt_stats(0).figures, "block.0.fl.reqs": 0, "block.0.fl.times": 0}
    got = dict(zip(OF_DISK, libvirt_rates(flushed, before, 2.0)[1]["vda"], strict=True))
    assert got["domain_disk_flushes_per_second"] == 5
    assert got["domain_disk_flush_depth"] == pytest.approx(0.02)
    assert got["domain_disk_read_depth"] == pytest.approx(0.05)
    assert got["domain_disk_queue_depth"] == pytest.approx(0.13 / 2 + 0.02)


def test_a_domain_that_nowait_passed_over_costs_its_own_row_alone(host: RecordedHost, libvirt: Libvirt) -> None:
    guests = OwnGuests(host, libvirt)
    guests.qemu(71, OF_LIBVIRT)
    guests.qemu(81, "-name guest=web -uuid other")
    libvirt.answer = [libvirt_stats(0), libvirt_stats(0, "web", "other")]
    until(lambda: "domain_disk_await_ms[web/vda]" in guests.tick(time.monotonic()))
    hung = libvirt_stats(0)._replace(figures={"state.state": 1})
    libvirt.answer = [hung, libvirt_stats(1, "web", "other")]
    until(lambda: guests.tick(time.monotonic())["domain_disk_reads_per_second[web/vda]"] > 0)
    got = guests.tick(time.monotonic())
    assert math.isnan(got["domain_disk_reads_per_second[db/vda]"])
    assert got["domain_memory_resident_bytes[db]"] == 2048 << 10


def test_a_libvirt_that_hangs_leaves_what_processes_tell(host: RecordedHost, libvirt: Libvirt) -> None:
    guests = OwnGuests(host, libvirt)
    guests.qemu(71, BY_HAND)
    libvirt.free.clear()
    guests.tick(10.0)
    guests.used(71, cpu=1.0)
    assert guests.tick(11.0)["domain_cpu_percent[web]"] == pytest.approx(100.0)
    assert libvirt.asked == 1


def test_a_libvirt_that_refuses_is_said_once(host: RecordedHost, libvirt: Libvirt) -> None:
    guests = OwnGuests(host, libvirt)
    guests.qemu(71, BY_HAND)
    libvirt.answer = OSError()
    until(lambda: bool(guests.tick(time.monotonic()) and guests.noted))
    guests.tick(time.monotonic())
    assert guests.noted == ["libvirt gives no metrics: refused"]
    assert [domain.name for domain in guests.group.domains] == ["web"]


def test_a_libvirt_without_guests_is_not_asked(host: RecordedHost, libvirt: Libvirt) -> None:
    guests = OwnGuests(host, libvirt)
    assert guests.tick(10.0) == {"domains_seen": 0, "domains_of_labs": 0, "domain_questions_stuck": 0}
    assert libvirt.asked == 0


def told(guests: OwnGuests, rate: str, seconds: str) -> float:
    """What was counted in the next answer in which there is anything."""
    found: list[float] = []

    def is_told() -> bool:
        got = guests.tick(time.monotonic())
        found.append(got[rate] * got[seconds])
        return found[-1] > 0

    until(is_told)
    return found[-1]


def test_a_domain_that_libvirt_passes_over_has_rates_over_all_the_time_since_its_last_answer(
    host: RecordedHost, libvirt: Libvirt
) -> None:
    """Under NOWAIT libvirt names the disks of a domain that something else asks, without their counters."""
    guests = OwnGuests(host, libvirt)
    guests.qemu(71, OF_LIBVIRT)
    reads, seconds = "domain_disk_reads_per_second[db/vda]", "domain_read_length_seconds[db]"
    libvirt.answer = [libvirt_stats(0)]
    until(lambda: reads in guests.tick(time.monotonic()))
    libvirt.answer = [libvirt_stats(1)]
    counted = told(guests, reads, seconds)
    whole = libvirt_stats(1).figures
    named = {key: value for key, value in whole.items() if not key.endswith((".reqs", ".bytes", ".times"))}
    assert named["block.count"] == 2 and "block.0.name" in named
    libvirt.answer = [libvirt_stats(1)._replace(figures=named)]
    asked = libvirt.asked
    until(lambda: seconds in guests.tick(time.monotonic()) and libvirt.asked > asked + 2)
    got = guests.tick(time.monotonic())
    assert got[seconds] == 0 and got[reads] >= 0
    libvirt.answer = [libvirt_stats(3)]
    assert told(guests, reads, seconds) == pytest.approx(2 * counted)
    assert len(guests.group.domains[0].disks) == 2


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({"block.count": 2, "block.0.name": "vda", "block.1.name": "vdb"}, True),
        ({}, True),
        ({"block.count": 1, "block.0.name": "vdb"}, False),
        ({"block.count": 0}, False),
        ({"block.count": 1, "block.0.name": "vda", "block.0.rd.reqs": 3}, False),
    ],
)
def test_a_disk_that_was_unplugged_is_not_passed_over(now: dict[str, Any], expected: bool) -> None:
    """Beside one that never had counters."""
    before = {"block.count": 2, "block.0.name": "vda", "block.0.rd.reqs": 2, "block.1.name": "vdb"}
    assert is_passed_over(now, before) is expected
    assert not is_passed_over(now, {"block.count": 1, "block.0.name": "vdb"})


def test_rates_that_stand_describe_no_time(host: RecordedHost, libvirt: Libvirt) -> None:
    guests = OwnGuests(host, libvirt)
    guests.qemu(71, OF_LIBVIRT)
    guests.qemu(72, BY_HAND)
    libvirt.answer = [libvirt_stats(1)]
    until(lambda: guests.tick(time.monotonic()).get("domain_read_length_seconds[db]", 0.0) > 0)
    libvirt.free.clear()
    until(lambda: guests.tick(time.monotonic())["domain_read_length_seconds[db]"] == 0)
    got = guests.tick(time.monotonic())
    assert (got["domain_disk_reads_per_second[db/vda]"], got["domain_read_length_seconds[db]"]) == (0, 0)
    assert math.isnan(got["domain_read_length_seconds[web]"])
