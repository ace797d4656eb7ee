"""CPU shares from recorded /proc/stat.

The rule: no CPU gains more ticks than time passed, and no column goes back but idle and iowait, by no more than that. A
CPU that breaks it, or gained nothing, is unknown for that tick, and the whole host is the sum of the others.
"""

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


RUN_UP = "1 250 10 60 1050 20 2 4 1 30 3"


@pytest.mark.parametrize(
    ("line", "idle"),
    [
        pytest.param("0 100 10 61 7 0 2 4 1 20 3", None, id="taken off and on: idle and iowait begin anew"),
        pytest.param("0 100 10 60 1000 20 2 4 1 20 3", None, id="nothing was counted"),
        pytest.param("0 100 10 60 1000 20 2 4 832457434 20 3", None, id="steal leaps"),
        pytest.param("0 100 10 60 1160 20 2 4 1 20 3", None, id="more ticks than passed, in one column"),
        pytest.param("0 150 30 90 1060 30 2 4 1 20 3", None, id="more ticks than passed, in all together"),
        pytest.param("0 50 10 60 1090 20 2 4 1 20 3", None, id="user went back"),
        pytest.param("0 100 10 60 1100 20 2 4 0 20 3", 100.0, id="a tick less by rounding"),
        pytest.param("0 110 10 60 1090 5 2 4 1 20 3", 90.0, id="iowait taken back"),
    ],
)
def test_a_cpu_that_breaks_the_rule_is_unknown_for_that_tick(host: RecordedHost, line: str, idle: float | None) -> None:
    group = primed(host)
    got = values(group, host, stat(line, RUN_UP))
    if idle is None:
        assert math.isnan(got["cpu_idle_percent[0]"])
        assert got["cpu_user_percent"] == got["cpu_user_percent[1]"] == 50.0
        assert group.busy_percent == 50.0
    else:
        assert got["cpu_idle_percent[0]"] == idle
    assert sum(got[f"cpu_{state}_percent"] for state in STATES[:8]) == pytest.approx(100)
    # The next tick is counted from here.
    at = [int(word) for word in line.split()[1:]]
    later = " ".join(map(str, [at[0] + 25, *at[1:3], at[3] + 75, *at[4:]]))
    got = values(group, host, stat(f"0 {later}", RUN_UP.replace("1050", "1150")))
    assert got["cpu_user_percent[0]"] == 25.0


def test_where_no_cpu_is_known_the_host_is_not(host: RecordedHost) -> None:
    group = primed(host)
    got = values(group, host, stat(BEFORE_0, BEFORE_1))
    assert all(math.isnan(got[f"cpu_{state}_percent"]) for state in STATES)
    assert math.isnan(group.busy_percent)


def test_a_late_tick_has_room_for_its_own_ticks(host: RecordedHost) -> None:
    got = values(primed(host), host, stat("0 200 10 60 1200 20 2 4 1 20 3", BEFORE_1), 3.0)
    assert got["cpu_user_percent[0]"] == pytest.approx(100 / 3)


def test_time_of_guests_is_within_user_time(host: RecordedHost) -> None:
    got = values(primed(host), host, stat("0 150 10 60 1050 20 2 4 1 90 3", RUN_UP))
    assert math.isnan(got["cpu_guest_percent[0]"])
    assert got["cpu_user_percent[0]"] == 50.0


@pytest.mark.parametrize("columns", [4, 7, 8, 9, 10, 11, 12])
def test_columns_that_a_kernel_lacks_are_unknown_and_those_that_it_adds_do_not_matter(
    host: RecordedHost, columns: int
) -> None:
    def lines(*each: str) -> str:
        return stat(*(" ".join([*line.split(), "7", "7"][: 1 + columns]) for line in each))

    host.proc("stat", lines(BEFORE_0, BEFORE_1))
    group = primed(host)
    got = values(group, host, lines("0 125 10 60 1075 20 2 4 1 30 3", RUN_UP))
    known = {state for state in STATES if got[f"cpu_{state}_percent"] == got[f"cpu_{state}_percent"]}
    assert known == set(STATES[:columns])
    assert (got["cpu_user_percent"], got["cpu_user_percent[1]"], group.busy_percent) == (37.5, 50.0, 37.5)
    assert got["context_switches_per_second"] == 0


def test_columns_may_change_under_a_reader(host: RecordedHost) -> None:
    group = primed(host)
    short = stat("0 150 10 60 1050 20 2 4", "1 250 10 60 1050 20 2 4")
    assert math.isnan(values(group, host, short)["cpu_steal_percent"])
    assert values(group, host, short.replace("1050", "1100"))["cpu_idle_percent"] == 100.0
    got = values(group, host, stat("0 150 10 60 1150 20 2 4 0 0 0", "1 250 10 60 1150 20 2 4 0 0 0"))
    assert (got["cpu_idle_percent"], got["cpu_steal_percent"]) == (100.0, 0.0)


@pytest.mark.parametrize("lines", ["cpu0 1 x 3 4 5 6 7 8 9 10\n", "cpu0 1 2 3\n", ""])
def test_what_is_no_number_is_reported_in_words(host: RecordedHost, lines: str) -> None:
    host.proc("stat", "cpu  1 2 3 4\n" + lines + "intr 1\nctxt 1\n")
    with pytest.raises(ValueError, match="/proc/stat has another form than expected"):
        CpuShares(host.roots).read(0.0, 1.0)


def test_lines_in_another_order_or_missing_ones_cost_their_own_figures(host: RecordedHost) -> None:
    def text(idle: int, switches: int) -> str:
        return f"cpu  1 1 1 1\ncpu0 1 2 3 {idle} 0 0 0 0 0 0\nprocesses 7\nprocs_running 4\nctxt {switches}\n"

    host.proc("stat", text(100, 1000))
    group = primed(host)
    got = values(group, host, text(200, 1500))
    assert (got["cpu_idle_percent"], got["context_switches_per_second"], got["processes_running"]) == (100.0, 500, 4)
    assert math.isnan(got["processes_blocked"])


@pytest.mark.parametrize("switches", [10, 10**18])
def test_context_switches_that_begin_anew_or_leap_are_unknown(host: RecordedHost, switches: int) -> None:
    got = values(primed(host), host, stat(BEFORE_0, RUN_UP, switches=switches))
    assert math.isnan(got["context_switches_per_second"])
    assert got["forks_per_second"] == 0


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
