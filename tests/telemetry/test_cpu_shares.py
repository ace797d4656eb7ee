"""CPU shares from recorded /proc/stat."""

from __future__ import annotations

import math

import pytest

from tests.telemetry.recorded import STAT, RecordedHost
from vmlab.telemetry.host.host_cpu import STATES, CpuShares


def values(group: CpuShares, host: RecordedHost, text: str, length: float = 1.0) -> dict[str, float]:
    host.proc("stat", text)
    read = group.read(0.0, length)
    return dict(zip(group.names, read, strict=True))


def primed(host: RecordedHost) -> CpuShares:
    group = CpuShares(host.roots)
    group.read(0.0, 1.0)
    return group


def stat(*cpus: str, switches: int = 1000000) -> str:
    lines = [f"cpu{line}" for line in cpus]
    return "\n".join(
        [
            "cpu  9 9 9 9 9 9 9 9 9 9",
            *lines,
            "intr 1 2",
            f"ctxt {switches}",
            "btime 1",
            "processes 48033",
            "procs_running 1",
            "procs_blocked 0",
            "",
        ]
    )


BEFORE_0 = "0 100 10 60 1000 20 2 4 1 20 3"
BEFORE_1 = "1 200 10 60 1000 20 2 4 1 30 3"


def test_shares_are_of_all_cpus_together_and_of_each(host: RecordedHost) -> None:
    group = primed(host)
    after = stat("0 150 10 60 1050 20 2 4 1 40 3", "1 200 10 85 1050 45 2 4 1 30 3", switches=1000500)
    got = values(group, host, after, 2.0)
    assert got["cpu_user_percent"] == 25.0
    assert got["cpu_system_percent"] == 12.5
    assert got["cpu_iowait_percent"] == 12.5
    assert got["cpu_idle_percent"] == 50.0
    assert got["cpu_user_percent[0]"] == 50.0
    assert got["cpu_user_percent[1]"] == 0.0
    assert got["cpu_guest_percent"] == 10.0, "guest time stands apart and is part of user too"
    assert got["cpu_count"] == 2
    assert got["context_switches_per_second"] == 250
    assert (group.busy_percent, group.count) == (37.5, 2)
    assert sum(got[f"cpu_{state}_percent"] for state in STATES[:8]) == pytest.approx(100)


@pytest.mark.parametrize("bits", [32, 64])
def test_a_wrapped_counter_keeps_its_share(host: RecordedHost, bits: int) -> None:
    group = primed(host)
    high = 2**bits - 30
    values(group, host, stat(f"0 {high} 10 60 1000 20 2 4 1 20 3", BEFORE_1))
    got = values(group, host, stat("0 20 10 60 1050 20 2 4 1 20 3", BEFORE_1))
    assert got["cpu_user_percent[0]"] == 50.0


def test_idle_time_that_the_kernel_takes_back_is_no_time(host: RecordedHost) -> None:
    group = primed(host)
    got = values(group, host, stat("0 150 10 60 998 20 2 4 1 20 3", BEFORE_1))
    assert got["cpu_idle_percent[0]"] == 0.0
    assert got["cpu_user_percent"] == 100.0


def test_a_cpu_that_is_plugged_in_counts_from_the_next_tick_on(host: RecordedHost) -> None:
    group = primed(host)
    names = group.names
    got = values(group, host, stat("0 150 10 60 1050 20 2 4 1 20 3", BEFORE_1, "2 9000 0 0 9000 0 0 0 0 0 0"))
    assert group.names is not names
    assert got["cpu_user_percent"] == 50.0
    assert math.isnan(got["cpu_user_percent[2]"])
    got = values(group, host, stat("0 150 10 60 1050 20 2 4 1 20 3", BEFORE_1, "2 9030 0 0 9010 0 0 0 0 0 0"))
    assert got["cpu_user_percent[2]"] == 75.0
    assert got["cpu_count"] == 3


def test_a_cpu_that_is_plugged_out_takes_nothing_along(host: RecordedHost) -> None:
    group = primed(host)
    got = values(group, host, stat("0 140 10 60 1060 20 2 4 1 20 3"))
    assert got["cpu_user_percent"] == 40.0
    assert "cpu_user_percent[1]" not in got
    assert got["cpu_count"] == 1


def test_names_stay_the_same_object_while_the_cpus_do(host: RecordedHost) -> None:
    group = primed(host)
    names = group.names
    values(group, host, STAT)
    assert group.names is names


def test_a_file_longer_than_the_buffer_is_read_whole(host: RecordedHost) -> None:
    long = STAT.replace("intr 676427", "intr 676427" + " 0" * 50000)
    group = primed(host)
    got = values(group, host, long.replace("procs_running 3", "procs_running 77"))
    assert got["processes_running"] == 77
