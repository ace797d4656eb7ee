"""Memory, paging, KSM, pressure, the bridge and power from recorded files."""

from __future__ import annotations

import math
import os

import pytest

from tests.telemetry.recorded import NET_DEV, PRESSURE, VMSTAT, RecordedHost
from vmlab.telemetry.host.host_figures import Group
from vmlab.telemetry.host.host_memory import Memory, Paging
from vmlab.telemetry.host.ksm import Ksm, Ksmd
from vmlab.telemetry.host.network import BridgeTraffic
from vmlab.telemetry.host.power import Power
from vmlab.telemetry.host.pressure import Pressure

PAGE = os.sysconf("SC_PAGE_SIZE")


def read(group: Group, length: float = 1.0) -> dict[str, float]:
    values = group.read(0.0, length)
    return dict(zip(group.names, values, strict=True))


def test_cache_is_never_used_memory(host: RecordedHost) -> None:
    got = read(Memory(host.roots))
    parts = ("used", "cached", "buffers", "reclaimable_slab", "free")
    assert sum(got[f"memory_{part}_bytes"] for part in parts) == got["memory_total_bytes"]
    assert got["memory_used_bytes"] == 4_800_000 * 1024
    assert got["memory_cached_bytes"] == 6_000_000 * 1024
    assert got["memory_buffers_bytes"] == 500_000 * 1024
    assert got["memory_dirty_bytes"] == 1200 * 1024


KIB = 1024
SMALL = {"MemTotal": 1000_000, "MemFree": 400_000, "MemAvailable": 700_000, "Buffers": 10_000, "Cached": 200_000}
SMALL |= {"SwapTotal": 0, "SwapFree": 0, "AnonPages": 100_000, "Shmem": 5_000, "Slab": 90_000, "SReclaimable": 50_000}


def meminfo(host: RecordedHost, **lines: int | None) -> dict[str, float]:
    """The figures of a host of 1,000,000 KiB with these lines instead; None for one that its kernel does not have."""
    found = {key: kib for key, kib in {**SMALL, **lines}.items() if kib is not None}
    host.proc("meminfo", "".join(f"{key}: {kib:>10}{' kB' * ('Pages_' not in key)}\n" for key, kib in found.items()))
    got = read(Memory(host.roots))
    return {name.removeprefix("memory_").removesuffix("_bytes"): value / KIB for name, value in got.items()}


def unknown(figures: dict[str, float]) -> set[str]:
    return {name for name, value in figures.items() if math.isnan(value)}


@pytest.mark.parametrize(
    ("lines", "used", "broken"),
    [
        pytest.param({}, 340_000, set(), id="all of it"),
        pytest.param({"Buffers": None}, 350_000, {"buffers"}, id="no Buffers: used as free(1) has it"),
        pytest.param({"SReclaimable": None}, 390_000, {"reclaimable_slab"}, id="no SReclaimable: all slab is used"),
        pytest.param({"MemFree": None}, None, {"free"}, id="no MemFree"),
        pytest.param({"Cached": None}, None, {"cached"}, id="no Cached"),
        pytest.param({"MemFree": 2000_000}, None, {"free"}, id="more free than there is"),
        pytest.param({"MemAvailable": 2000_000}, 340_000, {"available"}, id="more available than there is"),
        pytest.param({"SReclaimable": 95_000}, None, {"reclaimable_slab"}, id="more reclaimable than all slab"),
        pytest.param({"Shmem": 200_001}, 340_000, {"shared"}, id="more shared than cached"),
        pytest.param({"MemFree": 800_000}, None, set(), id="the parts exceed the whole"),
        pytest.param({"AnonPages": 600_000}, None, set(), id="more anonymous than used"),
        pytest.param({"SwapFree": 5}, 340_000, {"swap_free"}, id="more swap free than there is"),
    ],
)
def test_no_part_of_memory_exceeds_the_whole_and_what_is_not_there_is_unknown(
    host: RecordedHost, lines: dict[str, int | None], used: float | None, broken: set[str]
) -> None:
    """The rule for meminfo: parts may not exceed the whole, and what breaks that is unknown, never 0 or less."""
    got = meminfo(host, HugePages_Total=0, **lines)
    assert unknown(got) == {"dirty", "writeback"} | broken | ({"used"} if used is None else set())
    assert used is None or got["used"] == used


def test_a_containers_meminfo_with_the_hosts_slab_gives_no_used_memory(host: RecordedHost) -> None:
    lines = {"MemTotal": 998_384, "MemFree": 987_608, "MemAvailable": 987_608, "Buffers": 0, "Cached": 7_480}
    got = meminfo(host, **lines, AnonPages=88_216, Shmem=19_340, Slab=0, SReclaimable=65_580)
    assert math.isnan(got["used"])
    assert math.isnan(got["reclaimable_slab"])
    assert got["free"] == 987_608


def test_available_memory_is_estimated_as_the_kernel_does_where_it_does_not_say(host: RecordedHost) -> None:
    host.proc("sys/vm/min_free_kbytes", "16000\n")
    assert unknown(meminfo(host, MemAvailable=None)) >= {"available"}, "nothing says what of the cache is in files"
    lines = {"Active(file)": 120_000, "Inactive(file)": 30_000}
    got = meminfo(host, MemAvailable=None, **lines)
    assert got["available"] == 400_000 - 20_000 + (150_000 - 20_000) + (50_000 - 20_000)
    assert meminfo(host, MemFree=0, MemAvailable=None, SReclaimable=0, **dict.fromkeys(lines, 0))["available"] == 0
    (host.root / "proc/sys/vm/min_free_kbytes").unlink()
    assert math.isnan(meminfo(host, MemAvailable=None, **lines)["available"])


@pytest.mark.parametrize(
    ("lines", "of_sysfs", "huge"),
    [
        ({"Hugetlb": 409_600, "HugePages_Total": 100, "Hugepagesize": 2048}, {}, 409_600),
        ({"HugePages_Total": 200, "Hugepagesize": 2048}, {}, 409_600),
        ({"HugePages_Total": 0, "Hugepagesize": 2048}, {}, 0),
        ({"HugePages_Total": 50, "Hugepagesize": 2048}, {2048: 50, 65536: 3}, 102_400 + 3 * 65536),
        ({"HugePages_Total": 200}, {}, None),
        ({"HugePages_Total": 200}, {2048: 0, 1048576: 0}, 409_600),
        ({"HugePages_Total": 2}, {2048: 0, 65536: 0}, None),
        ({}, {}, None),
    ],
)
def test_huge_pages_are_their_number_times_their_size_where_the_kernel_has_no_sum(
    host: RecordedHost, lines: dict[str, int], of_sysfs: dict[int, int], huge: float | None
) -> None:
    for kib, count in of_sysfs.items():
        host.sys(f"kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages", f"{count}\n")
    got = meminfo(host, **lines)["hugepages"]
    assert math.isnan(got) if huge is None else got == huge


ARCSTATS = "13 1 0x01 147 39984 1 2\nname type data\nc_min 4 {}\nc_max 4 999\nsize 4 {}\narc_meta_used 4 5\n"


@pytest.mark.parametrize(
    ("least", "size", "used", "cached"),
    [(40_000, 140_000, 240_000, 300_000), (90_000, 40_000, 340_000, 200_000), (0, 500_000, None, 700_000)],
)
def test_the_cache_of_zfs_is_cache_and_not_used_memory(
    host: RecordedHost, least: int, size: int, used: float | None, cached: float
) -> None:
    host.proc("spl/kstat/zfs/arcstats", ARCSTATS.format(least * KIB, size * KIB))
    got = meminfo(host)
    assert (got["arc"], got["cached"]) == (size, cached)
    assert math.isnan(got["used"]) if used is None else got["used"] == used


def test_the_cache_of_zfs_is_the_hosts_and_not_its_containers(host: RecordedHost) -> None:
    host.proc("spl/kstat/zfs/arcstats", ARCSTATS.format(0, 100_000 * KIB))
    host.proc("self/mountinfo", "36 35 0:50 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n")
    got = meminfo(host)
    assert (got["used"], got["cached"]) == (340_000, 200_000)
    assert "arc" not in got


def test_lines_that_move_are_found_again(host: RecordedHost) -> None:
    group = Memory(host.roots)
    before = read(group)
    text = (host.root / "proc/meminfo").read_text()
    host.proc("meminfo", text.replace("MemFree:", "Newcomer:   1 kB\nMemFree:"))
    assert read(group) == before


def test_swapping_is_bytes_a_second(host: RecordedHost) -> None:
    memory = Memory(host.roots)
    memory.read(0.0, 1.0)
    group = Paging(host.roots, memory)
    assert math.isnan(read(group)["swap_in_bytes_per_second"])
    host.proc("vmstat", VMSTAT.replace("pswpin 100", "pswpin 150").replace("pswpout 200", "pswpout 300"))
    got = read(group, 2.0)
    assert got["swap_in_bytes_per_second"] == 25 * PAGE
    assert got["swap_out_bytes_per_second"] == 50 * PAGE


@pytest.mark.parametrize(
    ("line", "read_in", "written"),
    [
        pytest.param("pswpout 300\n", 50, 100, id="grown"),
        pytest.param("pswpout 5\n", math.nan, math.nan, id="begun anew"),
        pytest.param("pswpout 900000000000\n", math.nan, math.nan, id="leapt"),
        pytest.param("", 50, math.nan, id="not there"),
    ],
)
def test_swapping_that_begins_anew_leaps_or_is_not_counted_is_unknown(
    host: RecordedHost, line: str, read_in: float, written: float
) -> None:
    memory = Memory(host.roots)
    memory.read(0.0, 1.0)
    host.proc("vmstat", VMSTAT if line else VMSTAT.replace("pswpout 200\n", ""))
    group = Paging(host.roots, memory)
    read(group)
    host.proc("vmstat", VMSTAT.replace("pswpin 100", "pswpin 150").replace("pswpout 200\n", line))
    assert list(read(group).values()) == pytest.approx([read_in * PAGE, written * PAGE], nan_ok=True)


def test_without_swap_nothing_is_swapped(host: RecordedHost) -> None:
    text = (host.root / "proc/meminfo").read_text()
    memory = Memory(host.roots)
    group = Paging(host.roots, memory)
    host.proc("meminfo", text.replace("SwapTotal:       2000000", "SwapTotal:             0"))
    memory.read(0.0, 1.0)
    assert read(group) == {"swap_in_bytes_per_second": 0.0, "swap_out_bytes_per_second": 0.0}
    host.proc("meminfo", text)
    memory.read(0.0, 1.0)
    assert math.isnan(read(group)["swap_in_bytes_per_second"]), "swap was added: there is nothing to compare with yet"


def test_ksm_that_is_off_and_empty_is_seen_to_start(host: RecordedHost) -> None:
    for name in ("run", "pages_shared", "pages_sharing", "pages_unshared", "pages_volatile", "general_profit"):
        host.sys(f"kernel/mm/ksm/{name}", "0\n")
    group = Ksm(host.roots)
    for _ in range(4):
        assert read(group)["ksm_saved_bytes"] == 0
    host.sys("kernel/mm/ksm/pages_sharing", "7\n")
    host.sys("kernel/mm/ksm/run", "1\n")
    assert read(group)["ksm_saved_bytes"] == 7 * PAGE
    host.sys("kernel/mm/ksm/run", "0\n")
    host.sys("kernel/mm/ksm/pages_sharing", "3\n")
    assert read(group)["ksm_saved_bytes"] == 3 * PAGE, "switched off, and its pages fall apart one by one"


def test_ksm_saves_as_many_pages_as_are_sharing(host: RecordedHost) -> None:
    group = Ksm(host.roots)
    read(group)
    host.sys("kernel/mm/ksm/pages_scanned", "10400\n")
    got = read(group, 2.0)
    assert got["ksm_saved_bytes"] == 900 * PAGE
    assert got["ksm_profit_bytes"] == 3000000
    assert got["ksm_pages_scanned_per_second"] == 200
    assert (got["ksm_pages_shared"], got["ksm_pages_unshared"], got["ksm_pages_volatile"]) == (100, 50, 5)


def test_pages_of_zeros_are_saved_too(host: RecordedHost) -> None:
    host.sys("kernel/mm/ksm/ksm_zero_pages", "524288\n")
    host.sys("kernel/mm/ksm/general_profit", "-4096\n")
    got = read(Ksm(host.roots))
    assert got["ksm_zero_pages"] == 524288
    assert got["ksm_saved_bytes"] == (900 + 524288) * PAGE
    assert got["ksm_profit_bytes"] == -4096, "its own structures may take more than it saves"


def test_pages_of_zeros_that_the_kernel_does_not_count_are_unknown(host: RecordedHost) -> None:
    host.sys("kernel/mm/ksm/use_zero_pages", "0\n")
    group = Ksm(host.roots)
    assert read(group)["ksm_saved_bytes"] == 900 * PAGE
    host.sys("kernel/mm/ksm/use_zero_pages", "1\n")
    assert math.isnan(read(group)["ksm_saved_bytes"])


def test_pages_of_zeros_that_are_left_are_still_looked_at(host: RecordedHost) -> None:
    for name in ("run", "pages_shared", "pages_sharing", "pages_unshared", "pages_volatile"):
        host.sys(f"kernel/mm/ksm/{name}", "0\n")
    host.sys("kernel/mm/ksm/ksm_zero_pages", "9\n")
    group = Ksm(host.roots)
    for _ in range(3):
        read(group)
    host.sys("kernel/mm/ksm/ksm_zero_pages", "2\n")
    assert read(group)["ksm_saved_bytes"] == 2 * PAGE


@pytest.mark.parametrize("text", ["N/A\n", "", "unknown\n"])
def test_a_file_without_a_number_is_named(host: RecordedHost, text: str) -> None:
    host.sys("kernel/mm/ksm/pages_sharing", text)
    with pytest.raises(ValueError, match=r"ksm/pages_sharing has no number, but '"):
        read(Ksm(host.roots))


def test_an_older_kernel_has_no_profit(host: RecordedHost) -> None:
    (host.root / "sys/kernel/mm/ksm/general_profit").unlink()
    assert "ksm_profit_bytes" not in read(Ksm(host.roots))


def test_ksmd_costs_its_run_time(host: RecordedHost) -> None:
    group = Ksmd(host.roots)
    read(group)
    host.proc("4194305/schedstat", "1250000000 5 3\n")
    assert read(group, 2.0)["ksmd_cpu_percent"] == 12.5


def test_a_host_whose_kernel_threads_are_hidden_has_no_ksmd(host: RecordedHost) -> None:
    (host.root / "proc/4194305/comm").write_text("bash\n")
    with pytest.raises(FileNotFoundError, match="ksmd"):
        Ksmd(host.roots)


def test_pressure_is_the_share_of_the_tick(host: RecordedHost) -> None:
    group = Pressure(host.roots)
    read(group)
    host.proc("pressure/io", PRESSURE.replace("total=1000000", "total=1500000").replace("=200000", "=300000"))
    got = read(group, 2.0)
    assert got["pressure_io_some_percent"] == 25.0
    assert got["pressure_io_full_percent"] == 5.0
    assert got["pressure_cpu_some_percent"] == 0.0


@pytest.mark.parametrize("total", [5, 3000000, 2**32 + 5])
def test_pressure_that_begins_anew_or_is_longer_than_the_tick_is_unknown(host: RecordedHost, total: int) -> None:
    group = Pressure(host.roots)
    read(group)
    host.proc("pressure/io", PRESSURE.replace("total=1000000", f"total={total}"))
    got = read(group)
    assert math.isnan(got["pressure_io_some_percent"])
    assert got["pressure_io_full_percent"] == 0.0


def test_pressure_of_the_cpu_has_no_full_on_older_kernels(host: RecordedHost) -> None:
    host.proc("pressure/cpu", PRESSURE.splitlines()[0] + "\n")
    group = Pressure(host.roots)
    read(group)
    got = read(group)
    assert math.isnan(got["pressure_cpu_full_percent"])
    assert got["pressure_cpu_some_percent"] == 0.0


def test_ksmd_is_not_asked_while_it_has_nothing_to_do_and_loses_nothing(host: RecordedHost) -> None:
    for name in ("run", "pages_shared", "pages_sharing", "pages_unshared", "pages_volatile"):
        host.sys(f"kernel/mm/ksm/{name}", "0\n")
    ksm = Ksm(host.roots)
    ksmd = Ksmd(host.roots, ksm)

    def tick(nanoseconds: int) -> float:
        host.proc("4194305/schedstat", f"{nanoseconds} 5 3\n")
        ksm.read(0.0, 1.0)
        return ksmd.read(0.0, 1.0)[0]

    assert math.isnan(tick(1_000_000_000))
    assert tick(1_000_000_000) == 0.0
    assert tick(1_100_000_000) == 0.0, "not asked"
    host.sys("kernel/mm/ksm/run", "1\n")
    assert tick(1_200_000_000) == pytest.approx(20.0)
    host.sys("kernel/mm/ksm/run", "0\n")
    assert tick(1_300_000_000) == pytest.approx(10.0), "it worked for a part of the tick in which it was switched off"


def test_a_port_that_is_replaced_by_another_counts_no_traffic(host: RecordedHost) -> None:
    group = BridgeTraffic(host.roots, "vmlab0")
    read(group)
    host.proc("net/dev", NET_DEV.replace("100000     100", "    10       1").replace(":  300000", ":  303000"))
    got = read(group, 2.0)
    assert got["network_receive_bytes_per_second"] == 1500, "that of the other port alone"
    assert got["network_ports"] == 2


@pytest.mark.parametrize("before", [3_000_000_000, 2**32 - 1000])
@pytest.mark.parametrize(
    ("device", "speed", "wraps"),
    [
        pytest.param(False, None, False, id="nothing says its speed"),
        pytest.param(False, "10000", False, id="a virtual one has none"),
        pytest.param(True, "-1", False, id="no link"),
        pytest.param(True, "unknown", False, id="no number"),
        pytest.param(True, "1000", True, id="a network card"),
    ],
)
def test_a_counter_of_a_port_wraps_only_where_its_speed_allows_it(
    host: RecordedHost, before: int, device: bool, speed: str | None, wraps: bool
) -> None:
    host.sys("class/net/vnet0/mtu", "1500\n")
    if device:
        host.sys("class/net/vnet0/device/vendor", "0x8086\n")
    if speed is not None:
        host.sys("class/net/vnet0/speed", f"{speed}\n")
    host.proc("net/dev", NET_DEV.replace("vnet0:  100000", f"vnet0: {before}"))
    group = BridgeTraffic(host.roots, "vmlab0")
    read(group)
    host.proc("net/dev", NET_DEV.replace("vnet0:  100000", "vnet0: 1000").replace(":  300000", ":  300500"))
    wrapped = wraps and before > 2**32 - 10_000
    assert read(group)["network_receive_bytes_per_second"] == 500 + 2000 * wrapped


def test_a_port_that_leaps_leaves_the_sum_unknown(host: RecordedHost) -> None:
    group = BridgeTraffic(host.roots, "vmlab0")
    read(group)
    host.proc("net/dev", NET_DEV.replace("vnet0:  100000", f"vnet0: {2**62}"))
    got = read(group)
    assert math.isnan(got["network_receive_bytes_per_second"])
    assert got["network_ports"] == 2


def test_a_long_number_may_touch_the_colon_before_it(host: RecordedHost) -> None:
    text = NET_DEV.replace("vnet0:  100000", "vnet0:100000")
    host.proc("net/dev", text)
    group = BridgeTraffic(host.roots, "vmlab0")
    read(group)
    host.proc("net/dev", text.replace("vnet0:100000", "vnet0:100700"))
    assert read(group)["network_receive_bytes_per_second"] == 700


def test_a_bridge_is_the_sum_of_its_ports(host: RecordedHost) -> None:
    group = BridgeTraffic(host.roots, "vmlab0")
    read(group)
    host.proc("net/dev", NET_DEV.replace("  100000     100", "  101000     110").replace(":  300000", ":  303000"))
    got = read(group, 2.0)
    assert got["network_receive_bytes_per_second"] == 2000
    assert got["network_receive_packets_per_second"] == 5
    assert got["network_transmit_bytes_per_second"] == 0
    assert got["network_ports"] == 2


def test_a_port_that_comes_counts_from_the_next_tick_on(host: RecordedHost) -> None:
    group = BridgeTraffic(host.roots, "vmlab0")
    read(group)
    grown = NET_DEV + " vnet2: 7000000 70 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
    host.proc("net/dev", grown)
    assert read(group)["network_receive_bytes_per_second"] == 0
    host.proc("net/dev", grown.replace("7000000", "7000500"))
    assert read(group)["network_receive_bytes_per_second"] == 500


def test_what_passes_a_tunnel_a_limit_or_a_routed_bridge_is_counted_at_its_guest_alone(host: RecordedHost) -> None:
    """Ends of the cable to the second host are ports as those of guests are."""
    none = " 0 0 0 0 0 0 0 7000000 70 0 0 0 0 0 0\n"
    names = ("vmlab3", "vmlab4", "vmlab6", "vmlab7", "limit-010b", "eip-010b")
    before = NET_DEV + "".join(f"{name}: 7000000{none}" for name in (*names, "vmlab1"))
    host.proc("net/dev", before)
    group = BridgeTraffic(host.roots, "vmlab0")
    read(group)
    host.proc("net/dev", before.replace(": 7000000", ": 7000500"))
    got = read(group)
    assert (got["network_receive_bytes_per_second"], got["network_ports"]) == (500, 3)


def test_without_a_bridge_there_is_no_traffic_to_tell(host: RecordedHost) -> None:
    group = BridgeTraffic(host.roots, "other0")
    assert all(math.isnan(value) for value in read(group).values())


def test_energy_wraps_at_its_own_range(host: RecordedHost) -> None:
    for number, name in ((0, "package-0"), (1, "package-1")):
        host.sys(f"class/powercap/intel-rapl:{number}/name", f"{name}\n")
        host.sys(f"class/powercap/intel-rapl:{number}/energy_uj", "90000000\n")
        host.sys(f"class/powercap/intel-rapl:{number}/max_energy_range_uj", "100000000\n")
    host.sys("class/powercap/intel-rapl:0:0/energy_uj", "1\n")
    group = Power(host.roots)
    read(group)
    host.sys("class/powercap/intel-rapl:0/energy_uj", "10000000\n")
    host.sys("class/powercap/intel-rapl:1/energy_uj", "95000000\n")
    got = read(group, 2.0)
    assert got == {"power_watts": 12.5, "power_watts[package-0]": 10.0, "power_watts[package-1]": 2.5}


@pytest.mark.parametrize("energy", [1000, 90_000_000 + 3_000_000_000])
def test_energy_that_begins_anew_or_leaps_is_unknown(host: RecordedHost, energy: int) -> None:
    host.sys("class/powercap/intel-rapl:0/name", "package-0\n")
    host.sys("class/powercap/intel-rapl:0/energy_uj", "90000000\n")
    host.sys("class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n")
    group = Power(host.roots)
    read(group)
    host.sys("class/powercap/intel-rapl:0/energy_uj", f"{energy}\n")
    assert all(math.isnan(value) for value in read(group).values())
