"""The recorder, sar, iostat and the kernel's own counters over the same load, which begins and ends while all watch.

None of them begins or ends to watch at the same moment as another, on a busy machine by seconds. So whatever is counted
is compared over the whole load, and a share of the time may differ by what the seconds could be worth in which one
watched and another did not.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.telemetry import bounded_load
from vmlab.model.results import Summary
from vmlab.model.sample import Sample
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.place import disks_under
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.sample_summary import summarise
from vmlab.telemetry.source import Roots

pytestmark = pytest.mark.alone
SECONDS = 25
LEAD, LOAD = 5.0, 10.0
"""The seconds from the begin of sar and iostat to that of the load, and those of the load."""
C_LOCALE = {**os.environ, "LC_ALL": "C", "S_TIME_FORMAT": "ISO"}


@dataclass(frozen=True)
class Seen:
    """What everybody saw of the same span."""

    disk: str
    ours: dict[str, Summary]
    sar: dict[str, float]
    iostat: dict[str, float]
    sectors_written: int
    cpu_ticks: list[int]
    seconds: float

    @property
    def watched_more(self) -> float:
        """The part of our span in which sar and iostat did not watch."""
        return max(0.0, self.seconds - SECONDS) / self.seconds

    def over_theirs(self, name: str) -> float:
        """The mean of one of our figures as it is over the seconds of sar and iostat, nothing happening beside them."""
        return self.ours[name].mean * self.seconds / SECONDS


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    assert shutil.which("sar"), "sysstat is not installed; make setup does it"
    assert shutil.which("iostat"), "sysstat is not installed; make setup does it"
    folder = tmp_path_factory.mktemp("load")
    disks = disks_under([folder], Roots(), lambda line: None)
    if not disks:
        pytest.skip(f"{folder} is on no disk that the kernel counts")
    # The file is written beforehand, so that nothing but the load itself happens later.
    bounded_load.make(folder / "file")
    # sar and iostat are loaded from disk before their first count, which only our recorder would see.
    for tool in (("sar", "-u", "ALL", "1", "1"), ("iostat", "-o", "JSON", "-d", "-x", "-y", "1", "1")):
        start(*tool).communicate(timeout=120)
    os.sync()
    return watch(folder, disks[0])


def watch(folder: Path, disk: str) -> Seen:
    samples: list[Sample] = []
    recorder = Recorder(0.1, samples.append, Watched(lab_folders=[folder], scope="process"))
    recorder.start()
    time.sleep(0.5)
    began, sectors, ticks = time.monotonic(), sectors_written(disk), cpu_ticks()
    sar = start("sar", "-u", "ALL", str(SECONDS), "1")
    iostat = start("iostat", "-o", "JSON", "-d", "-x", "-y", str(SECONDS), "1")
    time.sleep(LEAD)
    subprocess.run([sys.executable, bounded_load.__file__, str(folder / "file"), str(LOAD)], check=True)
    said = {tool: running.communicate(timeout=SECONDS + 120)[0] for tool, running in (("sar", sar), ("iostat", iostat))}
    ended, sectors, ticks = (
        time.monotonic(),
        sectors_written(disk) - sectors,
        [now - before for now, before in zip(cpu_ticks(), ticks, strict=True)],
    )
    time.sleep(0.5)
    recorder.stop()
    ours = summarise(samples, began, ended, instances=True)
    return Seen(disk, ours, parse_sar(said["sar"]), parse_iostat(said["iostat"], disk), sectors, ticks, ended - began)


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=C_LOCALE)


def parse_sar(text: str) -> dict[str, float]:
    heading = next(line.split() for line in text.splitlines() if "%usr" in line)
    average = next(line.split() for line in text.splitlines() if line.startswith("Average:"))
    names = heading[heading.index("%usr") :]
    return dict(zip(names, map(float, average[-len(names) :]), strict=True))


def parse_iostat(text: str, disk: str) -> dict[str, float]:
    (host,) = json.loads(text)["sysstat"]["hosts"]
    (report,) = host["statistics"]
    return next(
        {key: value for key, value in one.items() if key != "disk_device"}
        for one in report["disk"]
        if one["disk_device"] == disk
    )


def sectors_written(disk: str) -> int:
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if fields[2] == disk:
            return int(fields[9])
    raise AssertionError(disk)


def cpu_ticks() -> list[int]:
    return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("cpu_user_percent", ("%usr", "%guest")),
        ("cpu_nice_percent", ("%nice", "%gnice")),
        ("cpu_system_percent", ("%sys",)),
        ("cpu_iowait_percent", ("%iowait",)),
        ("cpu_steal_percent", ("%steal",)),
        ("cpu_irq_percent", ("%irq",)),
        ("cpu_softirq_percent", ("%soft",)),
        ("cpu_idle_percent", ("%idle",)),
    ],
)
def test_cpu_shares_are_those_of_sar(seen: Seen, name: str, columns: tuple[str, ...]) -> None:
    theirs = sum(seen.sar[column] for column in columns)
    assert seen.ours[name].mean == pytest.approx(theirs, abs=1.0 + 100 * seen.watched_more)


def test_the_load_was_there(seen: Seen) -> None:
    # Of half a processor and 48 MiB a second each way, for ten seconds, where the machine is free.
    assert seen.sar["%usr"] / 100 * SECONDS * (os.cpu_count() or 1) > 1
    assert seen.iostat["wkB/s"] * SECONDS > 10_000
    assert seen.iostat["rkB/s"] * SECONDS > 10_000


@pytest.mark.parametrize(
    ("name", "column"), [("disk_write_bytes_per_second", "wkB/s"), ("disk_read_bytes_per_second", "rkB/s")]
)
def test_bytes_are_those_of_iostat(seen: Seen, name: str, column: str) -> None:
    expected = seen.iostat[column] * 1024
    assert seen.over_theirs(name) == pytest.approx(expected, rel=0.05 + seen.watched_more)
    assert seen.ours[f"{name}[{seen.disk}]"] == seen.ours[name]


@pytest.mark.parametrize(("name", "column"), [("disk_read_await_ms", "r_await"), ("disk_write_await_ms", "w_await")])
def test_waits_are_those_of_iostat(seen: Seen, name: str, column: str) -> None:
    # iostat prints two decimals.
    assert seen.ours[name].mean == pytest.approx(seen.iostat[column], rel=0.05 + seen.watched_more, abs=0.006)


def test_await_of_all_requests_is_iostats_two_weighed(seen: Seen) -> None:
    reads, writes = seen.iostat["r/s"], seen.iostat["w/s"]
    expected = (reads * seen.iostat["r_await"] + writes * seen.iostat["w_await"]) / (reads + writes)
    assert seen.ours["disk_await_ms"].mean == pytest.approx(expected, rel=0.05 + seen.watched_more, abs=0.006)


def test_utilisation_and_queue_are_those_of_iostat(seen: Seen) -> None:
    assert seen.over_theirs("disk_util_percent") == pytest.approx(
        seen.iostat["util"], abs=1.5 + 100 * seen.watched_more
    )
    assert seen.over_theirs("disk_queue_depth") == pytest.approx(
        seen.iostat["aqu-sz"], rel=0.05 + seen.watched_more, abs=0.01
    )


def test_the_area_is_what_the_kernel_counted(seen: Seen) -> None:
    assert seen.ours["disk_write_bytes_per_second"].area == pytest.approx(seen.sectors_written * 512, rel=0.03)
    user = seen.cpu_ticks[0] / os.sysconf("SC_CLK_TCK")
    assert seen.ours["cpu_user_percent"].area == pytest.approx(user, rel=0.03, abs=0.1)
