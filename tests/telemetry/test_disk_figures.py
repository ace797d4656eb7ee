"""Disks from recorded /proc/diskstats.

The rules: no disk is busy for longer than passed, and no counter leaps or goes back, but where its milliseconds wrap at
32 bits; what breaks that is another disk under the same name, and unknown for that tick. And one disk is counted once:
paths to it and volumes on it are not added to it.
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path

import pytest

from tests.telemetry.recorded import DISKSTATS, RecordedHost
from vmlab.system.file_system import filesystem_of
from vmlab.telemetry.host.disk import Disks
from vmlab.telemetry.place import disks_under, refuses_overlay

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


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("8 0 sda 1100 5 88000 2300 700 7 60000 4200 3 5600 6500", id="busy for longer than passed"),
        pytest.param("8 0 sda 9000000000000000 5 88000 2300 700 7 60000 4200 3 5000 6500", id="reads leap"),
        pytest.param("8 0 sda 1100 5 88000 1900 700 7 60000 4200 3 5000 6500", id="a wait went back"),
        pytest.param("8 0 sda 1100 5 88000 2300 700 7 60000 4200 3 3999 6500", id="busy went back"),
        pytest.param("8 0 sda 1100 5 88000 2300 700 7 60000 3000000000 3 5000 6500", id="a wait leaps"),
        pytest.param("8 32 sda 1100 5 88000 2300 700 7 60000 4200 3 5000 6500", id="another device number"),
        pytest.param("8 0 sda 1100 5 88000 2300 700 7 60000 4200", id="too few columns"),
        pytest.param("8 0 sda 1100 5 88000 2300 700 x 60000 4200 3 5000 6500", id="no number"),
    ],
)
def test_a_disk_that_breaks_the_rule_is_unknown_for_that_tick(host: RecordedHost, line: str) -> None:
    got = read(
        primed(host), host, DISKSTATS.replace(SDA, f"   {line} 0 0 0 0 12 30\n" if "x" not in line else line + "\n")
    )
    assert all(math.isnan(value) for name, value in got.items() if "[sdb]" not in name)
    assert got["disk_util_percent[sdb]"] == 0.0


def test_a_request_that_took_longer_than_the_tick_leaves_the_utilisation_unknown(host: RecordedHost) -> None:
    """Before Linux 5.18 its time is counted when it ends; it was in flight at the reading before."""
    group = primed(host)
    read(group, host, DISKSTATS.replace(SDA, SDA.replace(" 3000 0 4000", " 3000 1 4000")))
    got = read(group, host, DISKSTATS.replace(SDA, SDA.replace("500 7 40000 3000 0 4000", "501 7 40008 8000 0 9000")))
    assert math.isnan(got["disk_util_percent[sda]"])
    assert (got["disk_writes_per_second[sda]"], got["disk_write_await_ms[sda]"]) == (1, 5000)


PATHS = """\
   0       0 nvme0c0n1 {0} 0 {1} {2} 0 0 0 0 0 {3} {2} 0 0 0 0
   0       0 nvme0c1n1 {4} 0 {5} {6} 0 0 0 0 0 {7} {6} 0 0 0 0
 259       1 nvme0n1 {8} 0 {9} {10} 0 0 0 0 0 {11} {10} 0 0 0 0
 259       2 nvme0n1p1 {8} 0 {9} {10} 0 0 0 0 0 {11} {10} 0 0 0 0
"""
PATHS_BEFORE = (100, 800, 50, 40, 200, 1600, 60, 50)


@pytest.mark.parametrize("in_sysfs", [False, True])
@pytest.mark.parametrize(
    ("head", "grown", "reads", "wait", "util"),
    [
        pytest.param((0, 0, 0, 0), (0, 0, 0, 0), 400, 2.5, 90.0, id="counted on the paths alone"),
        pytest.param((300, 2400, 110, 60), (400, 3200, 1200, 950), 400, 3.0, 95.0, id="counted on both"),
        pytest.param((7, 56, 1, 1), (0, 0, 0, 0), 400, 2.5, 90.0, id="no longer counted on the disk itself"),
    ],
)
def test_a_disk_with_several_paths_is_one_disk_with_its_own_figures(
    host: RecordedHost,
    in_sysfs: bool,
    head: tuple[int, ...],
    grown: tuple[int, ...],
    reads: float,
    wait: float,
    util: float,
) -> None:
    if in_sysfs:
        for name in ("nvme0n1", "nvme0c0n1"):
            (host.root / "sys/block" / name).mkdir()
    host.proc("diskstats", PATHS.format(*PATHS_BEFORE, *head))
    group = primed(host, "nvme0n1")
    of_paths = (300, 2400, 900, 900, 100, 800, 100, 100)
    after = [n + o for n, o in zip((*PATHS_BEFORE, *head), (*of_paths, *grown), strict=True)]
    got = read(group, host, PATHS.format(*after))
    assert {name.partition("[")[2] for name in got} == {"", "nvme0n1]"}
    for instance in ("", "[nvme0n1]"):
        assert got[f"disk_reads_per_second{instance}"] == reads
        assert got[f"disk_read_bytes_per_second{instance}"] == reads * 8 * 512
        assert got[f"disk_await_ms{instance}"] == wait
        assert got[f"disk_util_percent{instance}"] == util


def test_a_path_whose_disk_is_not_there_is_no_disk(host: RecordedHost) -> None:
    text = "   0       0 nvme2c2n1 212 0 11832 16 0 0 0 0 0 76 0\n 259       1 nvme0n1 4700929 0 237 7 1 1 1 1 0 9 9\n"
    host.proc("diskstats", text)
    got = read(primed(host, "nvme0n1"), host, text.replace("4700929 0 237", "4700939 0 317").replace("212", "222"))
    assert {name.partition("[")[2] for name in got} == {"", "nvme0n1]"}
    assert got["disk_reads_per_second"] == 10


def test_where_sysfs_shows_no_devices_partitions_are_known_by_their_names(host: RecordedHost) -> None:
    names = ("xvda1", "sdc", "sdc1", "mmcblk0", "mmcblk0p2", "cciss/c0d0", "cciss/c0d0p1", "dm-0", "md127", "md127p1")
    host.proc("diskstats", "".join(f"  8 {n} {name} 1 1 1 1 1 1 1 1 1 1 1\n" for n, name in enumerate(names)))
    disks = {name.partition("[")[2][:-1] for name in primed(host).names} - {""}
    assert disks == {"xvda1", "sdc", "mmcblk0", "cciss/c0d0", "dm-0", "md127"}


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


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes need root")
def test_a_device_of_a_volume_group_is_of_its_own_disk(host: RecordedHost, tmp_path: Path) -> None:
    partition = tmp_path / "sys/devices/pci/block/sdb/sdb1"
    partition.mkdir(parents=True)
    (partition / "partition").write_text("1\n")
    link = tmp_path / "sys/dev/block/8:17"
    link.parent.mkdir(parents=True)
    link.symlink_to(partition)
    device = tmp_path / "sdb1"
    os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(8, 17))
    told: list[str] = []
    assert disks_under([device], host.roots, told.append) == ["sdb"]
    assert told == []


@pytest.mark.parametrize(
    ("slaves", "disks", "counted"),
    [
        pytest.param({}, ["sda", "dm-0"], ["sda", "dm-0"], id="two disks"),
        pytest.param({"dm-0": ["sdb1"]}, ["sda", "dm-0"], ["sda", "dm-0"], id="a volume on a third disk"),
        pytest.param({"dm-0": ["sda2"]}, ["dm-0", "sda"], ["sda"], id="a volume and a partition beside it"),
        pytest.param({"dm-0": ["dm-1"], "dm-1": ["sda2"]}, ["sda", "dm-0"], ["sda"], id="an encrypted volume"),
        pytest.param({"dm-0": ["sda", "sdb"]}, ["dm-0"], ["dm-0"], id="multipath alone"),
        pytest.param({"dm-0": ["sda2"], "md0": ["sda3", "sdb1"]}, ["dm-0", "md0"], ["sda", "sdb"], id="on one disk"),
    ],
)
def test_what_lies_on_one_disk_is_counted_once(
    host: RecordedHost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slaves: dict[str, list[str]],
    disks: list[str],
    counted: list[str],
) -> None:
    devices = tmp_path / "sys/devices"
    for name in ("dm-0", "dm-1", "md0", "sda", "sdb", "sda/sda2", "sda/sda3", "sdb/sdb1"):
        (devices / name).mkdir(parents=True)
        if "/" in name:
            (devices / name / "partition").write_text("1\n")
    for upper, lower in slaves.items():
        folder = tmp_path / "sys/block" / upper / "slaves"
        folder.mkdir(parents=True)
        for name in lower:
            (folder / name).symlink_to(next(devices.rglob(name)))
    monkeypatch.setattr("vmlab.telemetry.place._disk_of", lambda folder, roots: folder.name)
    assert disks_under([Path(disk) for disk in disks], host.roots, print) == counted


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
    assert filesystem_of(tmp_path, host.roots.proc) == "ext4"
    assert refuses_overlay(tmp_path, host.roots) is None
    host.proc("self/mountinfo", mounts.replace("- ext4 /dev/vda", "- overlay overlay"))
    assert refuses_overlay(tmp_path, host.roots) == "overlay"
    host.proc("self/mountinfo", "36 35 0:9999 / / rw - tmpfs tmpfs rw\n")
    assert filesystem_of(tmp_path, host.roots.proc) is None
