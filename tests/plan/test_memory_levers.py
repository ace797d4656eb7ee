"""The memory behind guests in a plan: what does not go together is one line, what the host has not is absent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.plan.estimate import memory_needed
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.system.host_size import read_nodes
from vmlab.system.rights import why_no_locked_memory
from vmlab.telemetry.setting_files import NO_TRANSPARENT

HOST = HostFacts(2**40, 2**40, 2**44, 2, "kvm")
WITHOUT = replace(HOST, unsettable={"huge_pages 1 GiB": "the file is missing: this kernel has no such setting"})
SCENARIO = """\
name: pages
guests: {vm: {memory: 1 GiB, HERE}}
workloads: {primes: {kind: cpu, on: vm, threads: 1}}
"""


def planned(written: str, more: str = "", host: HostFacts = HOST) -> Plan:
    text = SCENARIO.replace(", HERE", f", {written}" if written else "") + more
    return make_plan(read(Path("pages.yaml"), text), Overrides(), host)


def test_sizes_that_are_reserved_are_known_before() -> None:
    plan = planned("", "axes: {huge_pages: [transparent, 2 MiB, 1 GiB]}\n")
    assert plan.huge_pages == (2**21, 2**30)
    assert plan.guest_keys == ("huge_pages",)
    assert planned("huge_pages: transparent").huge_pages == ()


@pytest.mark.parametrize(
    ("written", "more", "why"),
    [
        (
            "huge_pages: 4 MiB",
            "",
            "guests.vm.huge_pages: must be 'none', 'transparent', '2 MiB' or '1 GiB', not '4 MiB'",
        ),
        ("huge_pages: none", "", "with huge_pages: none the scenario needs host: {thp: never}"),
        ("huge_pages: none", "host: {thp: madvise}\n", "the scenario needs host: {thp: never}"),
        ("huge_pages: transparent", "host: {thp: never}\n", "host.thp: never leaves no transparent huge pages"),
        ("huge_pages: 2 MiB, ksm: true", "", "KSM merges no huge pages that are reserved: ksm: true excludes"),
        (
            "huge_pages: 2 MiB, numa: 1",
            "",
            "are reserved on every NUMA node, and numa names one; leave one of them out",
        ),
        ("ksm: on", "", "guests.vm.ksm: "),
        ("numa: -1", "", "guests.vm.numa: must be at least 0, not -1"),
        ("memory_lock: 1", "", "guests.vm.memory_lock: "),
        ("huge_pages: 2 MiB", "host: {memory: 4 GiB}\n", "do not count in the memory of a limited host"),
    ],
)
def test_what_does_not_go_together_is_one_line(written: str, more: str, why: str) -> None:
    with pytest.raises(ScenarioError) as wrong:
        planned(written, more)
    (line,) = str(wrong.value).splitlines()
    assert line.startswith("pages.yaml:2:") and why in line


def test_memory_is_in_whole_pages() -> None:
    text = SCENARIO.replace("1 GiB, HERE", "1500 MiB, huge_pages: 1 GiB")
    with pytest.raises(ScenarioError, match=r"huge_pages: 1 GiB needs memory in whole pages: 2 GiB, not 1.46 GiB"):
        make_plan(read(Path("pages.yaml"), text), Overrides(), HOST)


def test_small_pages_alone_go_with_a_host_that_has_no_others() -> None:
    axis = "axes: {pages: {points: {small: {host.thp: never, guests.vm.huge_pages: none}, huge: {host.thp: always, "
    plan = planned("", axis + "guests.vm.huge_pages: transparent}}}}\norder: as written\n")
    assert [(cell.host.thp, cell.guests[0].resources.huge_pages) for cell in plan.cells] == [
        ("never", "none"),
        ("always", "transparent"),
    ]


def test_sizes_that_this_host_has_not_are_absent_or_refused() -> None:
    plan = planned("", "axes: {huge_pages: [2 MiB, 1 GiB]}\n", WITHOUT)
    why = "the file is missing: this kernel has no such setting"
    assert [str(one) for one in plan.absent] == [f"huge_pages 1 GiB is absent: {why}"]
    with pytest.raises(RefusedError, match=f"guest vm has huge_pages: 1 GiB, and {why}"):
        check_fit(planned("huge_pages: 1 GiB", host=WITHOUT), WITHOUT)
    check_fit(planned("huge_pages: 2 MiB", host=WITHOUT), WITHOUT)


def test_a_host_without_transparent_huge_pages_has_none_unless_the_scenario_sets_them() -> None:
    without = replace(HOST, unsettable={NO_TRANSPARENT: "they are off"})
    with pytest.raises(RefusedError, match=r"guest vm has huge_pages: transparent, and they are off"):
        check_fit(planned("huge_pages: transparent", host=without), without)
    check_fit(planned("huge_pages: transparent", host=HOST), HOST)
    check_fit(planned("huge_pages: transparent", "host: {thp: madvise}\n", without), without)


def test_the_hosts_own_libvirt_has_none_of_the_labs() -> None:
    with pytest.raises(RefusedError, match="guest vm has huge_pages: 2 MiB, which qemu:///system cannot have"):
        check_fit(planned("huge_pages: 2 MiB", "hypervisor: 'qemu:///system'\n"), HOST)


@pytest.mark.parametrize("written", ["memory_lock: true", "huge_pages: 2 MiB"])
def test_what_is_held_is_never_overcommitted(written: str) -> None:
    small = replace(HOST, memory_available_bytes=2**30, memory_total_bytes=2**33)
    allowed = "allow: {memory_overcommit: true}\n"
    check_fit(planned("", allowed, small), small)
    with pytest.raises(RefusedError, match=r"locked memory or huge pages need .*, which cannot be overcommitted"):
        check_fit(planned(written, allowed, small), small)


def test_all_of_an_emulators_buffer_is_locked() -> None:
    emulated = replace(HOST, accelerator_guess="tcg")
    plain, locked = (memory_needed(planned(one, host=emulated), emulated) for one in ("", "memory_lock: true"))
    assert locked - plain == 512 * 2**20


@pytest.mark.parametrize(
    ("nodes", "node", "why"),
    [
        (None, 0, None),
        ((0, 1), 1, None),
        ((0, 2), 1, "this host has no memory on node 1; there are 0,2"),
        ((0,), 0, "this host has one NUMA node, so that there is nothing to choose"),
        ((), 0, "this host has one NUMA node, so that there is nothing to choose"),
    ],
)
def test_a_node_is_one_of_several(nodes: tuple[int, ...] | None, node: int, why: str | None) -> None:
    here = replace(HOST, nodes=nodes)
    alone, axis = planned(f"numa: {node}", host=here), planned("", f"axes: {{numa: [{node}]}}\n", here)
    if why is None:
        check_fit(alone, here)
        assert axis.absent == () and axis.cells[0].guests[0].resources.numa == node
    else:
        with pytest.raises(RefusedError, match=f"guest vm has numa: {node}, and {why}"):
            check_fit(alone, here)
        assert [str(one) for one in axis.absent] == [f"numa {node} is absent: {why}"]


def test_the_nodes_are_those_with_memory(tmp_path: Path) -> None:
    (tmp_path / "has_memory").write_text("0-1,4\n")
    assert read_nodes(tmp_path / "has_memory") == (0, 1, 4)
    assert read_nodes(tmp_path / "none") is None


def test_locked_memory_needs_a_limit_that_can_be_raised() -> None:
    why = "ulimit -l is 8 MiB at most"
    here = replace(HOST, no_locked_memory=why)
    with pytest.raises(RefusedError, match=f"guest vm has memory_lock: true, and {why}"):
        check_fit(planned("memory_lock: true", host=here), here)
    check_fit(planned("memory_lock: false", host=here), here)
    axis = planned("", "axes: {memory_lock: [true, false]}\n", here)
    assert [str(one) for one in axis.absent] == [f"memory_lock true is absent: {why}"]


@pytest.mark.parametrize(
    ("most", "capabilities", "may"), [(-1, "0", True), (2**23, "1000000", True), (2**23, "fffffffffeffffff", False)]
)
def test_who_may_raise_the_limit_is_seen_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, capabilities: str, may: bool
) -> None:
    status = tmp_path / "status"
    status.write_text(f"Name:\tx\nCapPrm:\t0\nCapEff:\t{capabilities}\n")
    monkeypatch.setattr("resource.getrlimit", lambda which: (0, most))
    assert (why_no_locked_memory(status) == "") is may
