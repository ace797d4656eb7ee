"""Guests on the host in a plan: apart from virtual machines, absent where there are too few CPUs, refused in words."""

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.estimate import QEMU_BYTES, memory_needed
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan

GIB = 2**30
HOST = HostFacts(16 * GIB, 16 * GIB, 2**40, 2, "kvm", cores=((0,), (1,)))
SCENARIO = """
name: served
guests:
  server: {role: database, vcpus: 2, memory: 1 GiB}
  client: {vcpus: 1, memory: 1 GiB}
workloads:
  database: {kind: oltp, from: client, to: server, engine: postgresql, transactions: 10, concurrency: 1}
axes:
  setup:
    points:
      wide: {guests.*.on: host, guests.server.vcpus: 4, guests.server.smt: false}
      twice: {guests.*.on: host, guests.server.smt: true}
      bare: {guests.*.on: host, guests.server.smt: false}
      half: {guests.server.on: host}
      vm: {guests.server.on: vm}
order: as written
"""


def planned(text: str = SCENARIO, host: HostFacts = HOST) -> Plan:
    return make_plan(read(Path("served.yaml"), text), Overrides(size="full"), host)


def test_guests_on_the_host_are_none_of_the_virtual_machines() -> None:
    bare, half, vm = planned().cells
    assert [[one.guest for one in cell.guests] for cell in (bare, half, vm)] == [[], ["client"], ["server", "client"]]
    assert [[one.key for one in cell.bare] for cell in (bare, half, vm)] == [
        ["t1-server", "t1-client"],
        ["t1-server"],
        [],
    ]
    assert bare.cache is None
    assert settings_of(bare)["guests"]["server"]["on"] == "host"


def test_points_that_need_more_of_a_host_are_absent_with_the_reason() -> None:
    assert [str(one) for one in planned().absent] == [
        "setup wide is absent: it needs 4 cores, and this host has 2",
        "setup twice is absent: it needs 1 core of two hardware threads each, and this host has none",
    ]
    # They are stored so, for the tables of results.
    stored = planned().scenario.axes["setup"].points
    assert [name for name, point in stored.items() if point.absent is not None] == ["wide", "twice"]
    four = replace(HOST, cpus=8, cores=tuple((cpu, cpu + 4) for cpu in range(4)))
    assert planned(host=four).absent == ()
    assert planned(host=replace(HOST, cores=None)).absent == ()


def test_an_ordered_host_lends_its_own_cpus_alone() -> None:
    four = replace(HOST, cpus=4, cores=tuple((cpu,) for cpu in range(4)))
    absent = planned(SCENARIO + "host: {cpus: 1}\n", four).absent
    assert {one.value for one in absent} == {"wide", "twice", "bare", "half"}


def test_they_need_their_memory_and_no_qemu() -> None:
    bare = replace(planned(), cells=planned().cells[:1])
    half = replace(planned(), cells=planned().cells[1:2])
    assert memory_needed(bare, HOST) == 2 * GIB
    assert memory_needed(half, HOST) == 2 * GIB + QEMU_BYTES


def test_without_an_axis_too_few_cpus_are_refused() -> None:
    text = SCENARIO.partition("axes:")[0].replace("vcpus: 2", "vcpus: 3, on: host")
    with pytest.raises(RefusedError, match="guest server has on: host, and it needs 3 CPUs, and this host has 2"):
        check_fit(planned(text), HOST)


def test_files_in_memory_are_refused() -> None:
    with pytest.raises(RefusedError, match="guest server runs on the host and has its files"):
        check_fit(planned(), replace(HOST, in_memory="tmpfs"))


def test_a_file_system_that_takes_no_overlay_is_refused() -> None:
    host = replace(HOST, no_overlay="nfs4")
    with pytest.raises(RefusedError, match=r"guest server .* needs an overlay, .* \(nfs4\)"):
        check_fit(planned(), host)
    ordered = SCENARIO.replace("guests:", "host: {disk: hdd-7200}\nguests:", 1)
    check_fit(planned(ordered), host)


@pytest.mark.parametrize(
    "key",
    [
        *("cpu_shares: 512", "emulator_shares: 2", "cpu_quota: 40 %", "cpu: max", "pin: spread", "emulator_pin: 0"),
        *("huge_pages: transparent", "ksm: false", "numa: 0", "memory_lock: true"),
        *("boot: normal", "network: nat", "bandwidth: 9 Mbit/s"),
    ],
)
def test_what_a_virtual_machine_alone_has_is_refused_at_its_line(key: str) -> None:
    text = SCENARIO.replace("role: database,", f"role: database, on: host, {key},")
    with pytest.raises(ScenarioError, match=f"guest server is on the host, where there is no {key.partition(':')[0]}"):
        planned(text)
