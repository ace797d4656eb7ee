"""Memory, paging, KSM, pressure, the bridge and power from recorded files."""

from __future__ import annotations

import math
import os

import pytest

from tests.telemetry.recorded import NET_DEV, PRESSURE, VMSTAT, RecordedHost
from vmlab.telemetry.host.group import Group
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
