"""Disks from recorded /proc/diskstats."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from tests.telemetry.recorded import DISKSTATS, RecordedHost
from vmlab.telemetry.host.disk import Disks
from vmlab.telemetry.place import disks_under, filesystem_of, refuses_overlay

SDA = "   8       0 sda 1000 5 80000 2000 500 7 40000 3000 0 4000 5000 0 0 0 0 12 30\n"
LATER = "   8       0 sda 1100 5 88000 2300 700 7 60000 4200 3 5000 6500 0 0 0 0 12 30\n"


def read(group: Disks, host: RecordedHost, text: str, length: float = 1.0) -> dict[str, float]:
    host.proc("diskstats", text)
    values = group.read(0.0, length)
    return dict(zip(group.names, values, strict=True))


def primed(host: RecordedHost, *lab_disks: str) -> Disks:
    group = Disks(host.roots, lab_disks or ("sda",))
    group.read(0.0, 1.0)
    return group


def test_figures_are_those_of_iostat(host: RecordedHost) -> None:
    got = read(primed(host), host, DISKSTATS.replace(SDA, LATER), 2.0)
    assert got["disk_reads_per_second[sda]"] == 50
    assert got["disk_writes_per_second[sda]"] == 100
    assert got["disk_read_bytes_per_second[sda]"] == 8000 * 512 / 2
    assert got["disk_write_bytes_per_second[sda]"] == 20000 * 512 / 2
    assert got["disk_await_ms[sda]"] == (300 + 1200) / 300
    assert got["disk_read_await_ms[sda]"] == 3.0
    assert got["disk_write_await_ms[sda]"] == 6.0
    assert got["disk_util_percent[sda]"] == 50.0
    assert got["disk_queue_depth[sda]"] == 0.75
    assert got["disk_await_ms"] == got["disk_await_ms[sda]"]


def test_partitions_and_disks_that_never_did_anything_stay_out(host: RecordedHost) -> None:
    group = primed(host)
    assert {name.partition("[")[2] for name in group.names} == {"", "sda]", "sdb]"}


def test_a_late_tick_is_divided_by_its_true_length(host: RecordedHost) -> None:
    text = DISKSTATS.replace(SDA, LATER)
    assert read(primed(host), host, text, 4.0)["disk_reads_per_second[sda]"] == 25
    host.proc("diskstats", DISKSTATS)
    assert read(primed(host), host, text, 1.0)["disk_util_percent[sda]"] == 100.0


def test_milliseconds_wrap_at_32_bits(host: RecordedHost) -> None:
    near = SDA.replace(" 3000 0 4000 5000", f" {2**32 - 400} 0 4000 5000")
    group = primed(host)
    read(group, host, near)
    after = near.replace(" 500 7", " 600 7").replace(str(2**32 - 400), "600")
    assert read(group, host, after)["disk_write_await_ms[sda]"] == 10.0


def test_sectors_wrap_at_64_bits(host: RecordedHost) -> None:
    near = SDA.replace(" 80000 ", f" {2**64 - 1000} ")
    group = primed(host)
    read(group, host, near)
    assert read(group, host, near.replace(str(2**64 - 1000), "1000"))["disk_read_bytes_per_second[sda]"] == 2000 * 512


def test_a_disk_that_goes_and_comes_back_starts_anew(host: RecordedHost) -> None:
    group = primed(host)
    gone = read(group, host, DISKSTATS.replace(SDA, ""))
    assert "disk_await_ms[sda]" not in gone
    assert math.isnan(gone["disk_await_ms"]), "the headline's own disk is away"
    back = read(group, host, DISKSTATS)
    assert math.isnan(back["disk_reads_per_second[sda]"])
    assert read(group, host, DISKSTATS.replace(SDA, LATER))["disk_reads_per_second[sda]"] == 100


def test_a_disk_replaced_between_two_ticks_gives_nothing_and_no_nonsense(host: RecordedHost) -> None:
    fresh = "   8       0 sda 3 0 24 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
    got = read(primed(host), host, DISKSTATS.replace(SDA, fresh))
    assert math.isnan(got["disk_reads_per_second[sda]"])
    assert got["disk_reads_per_second[sdb]"] == 0.0


def test_a_disk_that_was_idle_from_the_start_shows_its_first_work(host: RecordedHost) -> None:
    busy = DISKSTATS.replace("loop0 0 0 0 0 0 0 0 0 0 0 0", "loop0 10 0 80 50 0 0 0 0 0 40 50")
    got = read(primed(host), host, busy)
    assert got["disk_reads_per_second[loop0]"] == 10
    assert got["disk_read_await_ms[loop0]"] == 5.0


def test_the_headline_of_two_disks_adds_rates_and_weighs_waits_by_requests(host: RecordedHost) -> None:
    busy = "   8      16 sdb 110 0 880 1020 0 0 0 0 0 1000 1020 0 0 0 0 0 0\n"
    text = SDA.replace("1000 5 80000 2000", "1300 5 80800 2300") + busy
    got = read(primed(host, "sda", "sdb"), host, text)
    assert got["disk_reads_per_second"] == 400
    assert got["disk_await_ms[sda]"] == 1.0
    assert got["disk_await_ms[sdb]"] == 10.0
    assert got["disk_await_ms"] == pytest.approx((300 * 1.0 + 100 * 10.0) / 400)
    assert got["disk_util_percent"] == 98.0, "of the busiest disk, never a sum"


def test_a_folder_on_a_partition_lies_on_the_whole_disk(host: RecordedHost, tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    partition = tmp_path / "sys/devices/pci/block/sda/sda1"
    partition.mkdir(parents=True)
    (partition / "partition").write_text("1\n")
    link = tmp_path / "sys/dev/block" / f"{os.major(device)}:{os.minor(device)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(partition)
    told: list[str] = []
    assert disks_under([tmp_path / "not/made/yet", tmp_path], host.roots, told.append) == ["sda"]
    assert told == []


def test_a_folder_on_no_disk_is_told(host: RecordedHost, tmp_path: Path) -> None:
    host.proc("self/mountinfo", "36 35 0:9999 / / rw - tmpfs tmpfs rw\n")
    told: list[str] = []
    assert disks_under([tmp_path], host.roots, told.append) == []
    assert len(told) == 1
    assert str(tmp_path) in told[0]


def test_the_file_system_of_a_folder_is_that_of_its_device(host: RecordedHost, tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    own = f"{os.major(device)}:{os.minor(device)}"
    mounts = f"36 35 0:9999 / / rw - tmpfs tmpfs rw\n37 36 {own} /a /b rw shared:1 master:2 - ext4 /dev/vda rw\n"
    host.proc("self/mountinfo", mounts)
    assert filesystem_of(tmp_path, host.roots) == "ext4"
    assert refuses_overlay(tmp_path, host.roots) is None
    host.proc("self/mountinfo", mounts.replace("- ext4 /dev/vda", "- overlay overlay"))
    assert refuses_overlay(tmp_path, host.roots) == "overlay"
    host.proc("self/mountinfo", "36 35 0:9999 / / rw - tmpfs tmpfs rw\n")
    assert filesystem_of(tmp_path, host.roots) is None
