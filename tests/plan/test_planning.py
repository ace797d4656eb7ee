"""From a scenario to cells: order, axes, sizes, places, what fits."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.plan.bad_scenarios import GOOD
from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.checked import made
from vmlab.model.errors import RefusedError, ScenarioError, UsageError
from vmlab.model.jsonable import jsonable
from vmlab.model.run import CacheMode
from vmlab.model.scenarios.table import Table
from vmlab.plan.checking import plan_targets
from vmlab.plan.hosting import check_fit, read_host_facts
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import ScenarioFile, load, read
from vmlab.plan.terms import HostFacts, Overrides, Plan

GIB = 2**30
HOST = HostFacts(
    memory_available_bytes=16 * GIB,
    memory_total_bytes=16 * GIB,
    disk_free_bytes=100 * GIB,
    cpus=2,
    accelerator_guess="tcg",
)
PRIMES = """\
name: primes
guests:
  vm: {vcpus: host, memory: 512 MiB}
  idle: {memory: 512 MiB}
workloads:
  one: {kind: cpu, on: host, threads: 1}
  two: {kind: cpu, on: vm, threads: 1}
axes:
  place: {values: [host, vm], sets: workloads.one.on}
  threads: {values: [1, 4], sets: workloads.*.threads}
"""


def written(text: str) -> ScenarioFile:
    return read(Path("x.yaml"), text)


def plan(text: str, host: HostFacts = HOST, sets: tuple[str, ...] = (), **overrides: Any) -> Plan:
    """The plan with the cells in the order in which they are written; test_ordering has the other."""
    sets = ("order=as written", *sets)
    return make_plan(written(text), replace(Overrides(size="full", sets=sets), **overrides), host)


def test_repeats_are_outermost_then_axes_as_written() -> None:
    cells = plan(f"{GOOD}axes: {{tiles: [1, 2], cache: [none, writeback]}}\nrepeats: 2\n").cells
    order = [(cell.repeat, cell.axes["tiles"], cell.axes["cache"]) for cell in cells]
    once = [(1, "none"), (1, "writeback"), (2, "none"), (2, "writeback")]
    assert order == [(repeat, *point) for repeat in (1, 2) for point in once]
    assert [cell.index for cell in cells] == list(range(1, 9))


def test_the_same_request_gives_the_same_plan() -> None:
    draw = random.Random(5)
    modes: list[tuple[CacheMode, ...] | None] = [None, ("writeback", "none"), ("directsync",)]
    for _ in range(20):
        overrides = Overrides(
            size=draw.choice(["smoke", "demo", "full"]),
            tiles=draw.choice([None, (1,), (3, 1)]),
            cache=draw.choice(modes),
            repeats=draw.choice([None, 1, 4]),
            seed=draw.randrange(2**32),
            sets=("workloads.web.requests=50",),
        )
        again = made(Overrides, json.loads(json.dumps(jsonable(overrides))))
        assert again == overrides
        first = make_plan(load("tile"), overrides, HOST)
        assert make_plan(load("tile"), again, HOST) == first
        assert first.seed == overrides.seed


def test_every_tile_has_guests_and_workloads_of_its_own() -> None:
    (cell,) = plan(GOOD, tiles=(3,)).cells
    assert cell.axes == {"tiles": 3}
    assert [guest.key for guest in cell.guests] == ["t1-a", "t1-b", "t2-a", "t2-b", "t3-a", "t3-b"]
    assert [(w.tile, w.source, w.target) for w in cell.workloads] == [(n, f"t{n}-a", f"t{n}-b") for n in (1, 2, 3)]
    assert cell.memory_bytes == 3 * GIB
    assert cell.cache == "writeback"


def test_options_replace_axes() -> None:
    text = f"{GOOD}axes: {{tiles: [1, 2], cache: [none, writeback]}}\n"
    assert [cell.axes for cell in plan(text, tiles=(3,), cache=("directsync",)).cells] == [
        {"tiles": 3, "cache": "directsync"}
    ]


def test_a_guest_may_differ_from_its_neighbours_in_cache_mode() -> None:
    text = GOOD.replace("memory: 512 MiB}", "memory: 512 MiB, cache: none}", 1)
    (cell,) = plan(text, tiles=(2,)).cells
    assert [guest.resources.cache for guest in cell.guests] == ["none", "writeback"] * 2
    assert cell.cache is None
    one = plan(f"{text}axes: {{far: {{values: [none, directsync], sets: guests.b.cache}}}}\n").cells
    assert [[guest.resources.cache for guest in cell.guests] for cell in one] == [["none"] * 2, ["none", "directsync"]]


def test_the_axis_cache_sets_the_cache_mode_of_all_guests() -> None:
    text = GOOD.replace("memory: 512 MiB}", "memory: 512 MiB, cache: none}", 1)
    cells = plan(f"{text}axes: {{cache: [writethrough, writeback]}}\n").cells
    assert [{guest.resources.cache for guest in cell.guests} for cell in cells] == [{"writethrough"}, {"writeback"}]
    assert [cell.cache for cell in cells] == [cell.axes["cache"] for cell in cells]
    (cell,) = plan(text, cache=("directsync",)).cells
    assert cell.cache == "directsync"


def test_a_scenario_without_axes_tells_the_cache_mode_that_all_guests_have() -> None:
    own = GOOD.replace("memory: 512 MiB}", "memory: 512 MiB, cache: none}")
    alone = "name: bare\nworkloads: {primes: {kind: cpu, on: host, threads: 1}}\n"
    assert plan(GOOD).cells[0].axes == {"cache": "writeback"}
    assert plan(own).cells[0].axes == {"cache": "none"}
    assert plan(GOOD, sets=("guests.*.cache=none",)).cells[0].axes == {"cache": "none"}
    assert plan(GOOD, sets=("guests.a.cache=none",)).cells[0].axes == {"tiles": 1}
    assert plan(alone).cells[0].axes == {"tiles": 1}


def test_guests_that_no_workload_of_a_cell_uses_are_not_started() -> None:
    cells = plan(PRIMES).cells
    assert {guest.guest for cell in cells for guest in cell.guests} == {"vm"}
    alone = plan(PRIMES, sets=("workloads.two.on=host",)).cells
    assert [[guest.key for guest in cell.guests] for cell in alone] == [[], [], ["t1-vm"], ["t1-vm"]]
    assert alone[0].workloads[0].source == "host"
    assert alone[0].memory_bytes == 0


def test_an_axis_reaches_every_workload_that_has_the_key() -> None:
    cells = plan(PRIMES).cells
    assert [cell.axes for cell in cells] == [
        {"place": place, "threads": threads} for place in ("host", "vm") for threads in (1, 4)
    ]
    assert [[getattr(w.params, "threads") for w in cell.workloads] for cell in cells] == [[1, 1], [4, 4]] * 2  # noqa: B009


def test_vcpus_of_the_host() -> None:
    assert plan(PRIMES, host=replace(HOST, cpus=12)).cells[0].guests[0].resources.vcpus == 12


def test_attributes_of_guests_are_axes_by_name() -> None:
    text = f"{GOOD}axes: {{memory: [256 MiB, 1 GiB], queues: [1, 4], vcpus: [4]}}\n"
    cells = plan(text).cells
    assert [(cell.guests[1].resources.memory_bytes, cell.guests[1].resources.queues) for cell in cells] == [
        (GIB // 4, 1),
        (GIB // 4, 4),
        (GIB, 1),
        (GIB, 4),
    ]
    assert cells[0].axes == {"memory": "256 MiB", "queues": 1, "vcpus": 4}
    assert cells[0].guests[0].resources.vcpus == 4


@pytest.mark.parametrize("key", ["queues", "data_queues", "nic_queues"])
def test_a_guest_has_no_more_queues_than_cpus(key: str) -> None:
    """It uses one for each of its CPUs, so that the others would be set and not delivered."""
    words = "a guest uses at most one queue for each virtual CPU; use {} or fewer, not 4"
    one = PRIMES.replace("vm: {vcpus: host", f"vm: {{data: 1 GiB, {key}: 4, vcpus: 3")
    with pytest.raises(ScenarioError, match=f"{key}: {words.format(3)}"):
        plan(one)
    plan(one.replace("vcpus: 3", "vcpus: 4"))
    of_host = one.replace("vcpus: 3", "vcpus: host")
    check_fit(plan(of_host, host=(four := replace(HOST, cpus=4))), four)
    with pytest.raises(RefusedError, match=f"guest vm: {key}: {words.format(2)}"):
        check_fit(plan(of_host), HOST)


def test_a_size_changes_amounts_axes_and_repeats() -> None:
    text = (
        f"{GOOD}axes: {{tiles: [1, 2]}}\nrepeats: 5\n"
        "sizes: {smoke: {copy: {files: 3}, guests: {a: {memory: 256 MiB}}, axes: {tiles: [1]}, repeats: 1}}\n"
    )
    (cell,) = plan(text, size="smoke").cells
    assert getattr(cell.workloads[0].params, "files") == 3  # noqa: B009
    assert [guest.resources.memory_bytes for guest in cell.guests] == [GIB // 4, GIB // 2]
    assert len(plan(text).cells) == 10
    assert plan(text, size="smoke").size == "smoke"


def test_a_size_that_the_scenario_lacks_is_told() -> None:
    made = plan(GOOD, size="smoke")
    assert made.size == "full"
    assert made.notes == ("the scenario has no size smoke: it runs as it is written, which is full",)


def test_a_scenario_without_sizes_runs_as_it_is_written_without_a_note() -> None:
    made = plan(GOOD, size="demo")
    assert (made.size, made.notes) == ("full", ())
    (note,) = plan(f"{GOOD}sizes: {{smoke: {{copy: {{files: 3}}}}}}\n", size="demo").notes
    assert note.startswith("the scenario has no size demo")


def test_an_assignment_reaches_parameters_guests_limits_and_axes() -> None:
    text = f"{GOOD}axes: {{files: {{values: [1, 2], sets: workloads.copy.files}}}}\n"
    sets = ("guests.*.memory=1 GiB", "limits.start_skew=2 s", "axes.files=[7]", "workloads.copy.idle=3 s")
    made = plan(text, sets=sets)
    assert [cell.axes for cell in made.cells] == [{"files": 7}]
    assert made.scenario.limits.start_skew == 2.0
    assert made.memory_bytes == 2 * GIB


def test_an_assignment_that_an_axis_would_undo_is_refused() -> None:
    text = f"{GOOD}axes: {{files: {{values: [1, 2], sets: workloads.copy.files}}}}\n"
    with pytest.raises(UsageError, match=r"^--set workloads.copy.files=9: axis files sets"):
        plan(text, sets=("workloads.copy.files=9",))


def test_memory_that_is_not_there_is_refused_unless_it_is_meant() -> None:
    tight = replace(HOST, memory_available_bytes=8 * GIB)
    overrides = Overrides(size="full", tiles=(3,))
    refused = make_plan(load("tile"), overrides, tight)
    with pytest.raises(RefusedError, match=r"12 guests need 16\.5 GiB of memory and the host has 8 GiB free"):
        check_fit(refused, tight)
    meant = make_plan(load("tile"), replace(overrides, allow_overcommit=True), tight)
    check_fit(meant, tight)
    assert meant.notes == ("memory is overcommitted on purpose: 16.5 GiB for guests and QEMU, 8 GiB free",)


def test_disk_counts_what_is_written_and_not_the_virtual_size() -> None:
    made = make_plan(load("tile"), Overrides(size="full", tiles=(1,)), HOST)
    assert GIB < made.disk_bytes < 8 * GIB
    with pytest.raises(RefusedError, match="will write"):
        check_fit(made, replace(HOST, disk_free_bytes=GIB // 2))


def test_more_tiles_and_fewer_cores_take_longer() -> None:
    def seconds(tiles: int, cpus: int) -> float:
        return make_plan(load("tile"), Overrides(tiles=(tiles,)), replace(HOST, cpus=cpus)).seconds

    assert seconds(1, 2) < seconds(2, 2) < seconds(3, 2)
    assert seconds(3, 2) > seconds(3, 8)


def test_guests_that_boot_take_longer_than_guests_that_are_restored() -> None:
    cold, restored = (make_plan(load("tile"), Overrides(cold=cold), HOST).seconds for cold in (True, False))
    assert cold > restored + 2 * 10


def test_a_scenario_asks_for_guests_that_boot() -> None:
    made = make_plan(load("tile-memory"), Overrides(size="smoke"), HOST)
    assert made.cold
    assert "4 at most, on 2 CPUs, all of them booted (cold)" in plan_text(made, HOST)
    assert plan_document(made, HOST, None)["plan"]["provision"] == "cold"
    again = make_plan(load("tile-memory"), Overrides(size="smoke", sets=("provision=restored",)), HOST)
    assert not again.cold
    assert again.seconds < made.seconds


@pytest.mark.parametrize("cold", [True, False])
def test_the_option_cold_is_what_the_scenario_then_says(cold: bool) -> None:
    made = make_plan(load("tile"), Overrides(cold=cold), HOST)
    assert (made.scenario.provision, made.cold) == ("cold" if cold else "restored", cold)


def test_the_demo_of_a_tile_is_planned_for_less_than_a_quarter_of_an_hour() -> None:
    made = make_plan(load("tile"), Overrides(), HOST)
    assert [cell.axes for cell in made.cells] == [{"tiles": 1, "cache": mode} for mode in ("none", "writeback")]
    assert made.seconds < 15 * 60


def test_unsafe_is_allowed_by_the_flag_and_noted() -> None:
    with pytest.raises(UsageError, match="may lose guests' data"):
        plan(GOOD, cache=("unsafe",))
    made = plan(GOOD, cache=("unsafe",), allow_unsafe=True)
    assert "unsafe" in made.notes[-1]
    assert plan(f"{GOOD}allow: {{unsafe_cache: true}}\n", cache=("unsafe",)).cells[0].cache == "unsafe"


def test_noise_is_allowed_by_the_flag_and_noted() -> None:
    assert plan(GOOD).notes == ()
    made = plan(GOOD, allow_noise=True)
    assert made.scenario.allow.noise
    assert [note.partition(" (")[0] for note in made.notes] == [
        "the host's other work is reported and invalidates no cell"
    ]


def test_the_table_is_the_scenario_s_or_follows_from_its_axes() -> None:
    assert make_plan(load("cpu-overhead"), Overrides(), HOST).table == Table(
        rows=("setup",), columns=("threads",), relative="ratio", baseline={"setup": "node"}
    )
    assert plan(f"{GOOD}axes: {{cache: [none, writeback], tiles: [1]}}\n").table == Table(
        columns=("cache",), baseline="none"
    )
    one_mode = make_plan(load("tile"), Overrides(cache=("writeback",)), HOST)
    assert one_mode.table == Table(columns=("cache",))
    assert one_mode.scenario.table is not None


def test_full_is_the_amounts_that_were_published() -> None:
    made = make_plan(load("tile"), Overrides(size="full"), HOST)
    params = {workload.name: workload.params.model_dump() for workload in made.cells[0].workloads}
    assert (params["filecopy"]["files"], params["filecopy"]["bytes"], params["filecopy"]["idle"]) == (
        44_500,
        670_000_000,
        30.0,
    )
    assert (params["database"]["transactions"], params["database"]["concurrency"]) == (10_000, 4)
    assert (params["web"]["requests"], params["web"]["concurrency"]) == (2_000, 4)
    mail = params["mail"]
    assert (mail["batches"], mail["messages"], mail["size"], mail["pause"], mail["burst"]) == (100, 5, 56_000, 1.0, 100)


def test_a_bad_value_names_the_axis_where_it_is_written() -> None:
    with pytest.raises(ScenarioError) as caught:
        plan(f"{GOOD}axes:\n  queues: [1, 900]\n")
    assert (caught.value.line, caught.value.column) == (8, 15)


def test_host_facts_are_read_for_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    facts = read_host_facts(tmp_path / "not" / "yet")
    assert 0 < facts.memory_available_bytes <= facts.memory_total_bytes
    assert facts.disk_free_bytes > 0
    assert facts.cpus >= 1


def test_files_on_the_host_are_refused_where_runs_lie_in_memory() -> None:
    in_memory = replace(HOST, in_memory="tmpfs")
    for kind in ("fio, rw: read, size: 1 GiB", "bonnie, size: 1 GiB"):
        text = f"name: x\nguests: {{vm: {{memory: 512 MiB}}}}\nworkloads:\n  disk: {{kind: {kind}, on: %s}}\n"
        check_fit(plan(text % "host"), HOST)
        check_fit(plan(text % "vm"), in_memory)
        with pytest.raises(RefusedError, match=r"disk has its files on the host's disk, .* in memory \(tmpfs\)"):
            check_fit(plan(text % "host"), in_memory)
    check_fit(plan(PRIMES), in_memory)


def test_what_is_written_on_the_host_counts_for_each_tile() -> None:
    text = "name: x\nworkloads: {disk: {kind: fio, on: host, rw: read, size: 1 GiB, jobs: 2}}\naxes: {tiles: [3]}\n"
    made = plan(text)
    assert made.disk_bytes == 6 * GIB
    with pytest.raises(RefusedError, match="workloads will write 6 GiB"):
        check_fit(made, replace(HOST, disk_free_bytes=5 * GIB))


def test_whether_runs_lie_in_memory_is_read_from_the_host() -> None:
    assert read_host_facts(Path("/dev/shm/not/made/yet")).in_memory == "tmpfs"
    assert read_host_facts(Path("/usr/lib/not/made/yet")).in_memory is None


TARGETS = """\
name: load
guests: {a: {memory: 512 MiB}, b: {role: web, memory: 512 MiB}}
workloads: {web: {kind: http, from: a, to: b, requests: 60, pace: 5/s}}
targets: {web: {latency_p95: 500 ms}}
"""


def test_a_plan_has_the_targets_of_a_tile_and_those_that_follow_from_a_pace() -> None:
    asked = [(one.metric, one.limit, one.implied) for one in plan_targets(plan(TARGETS))]
    assert asked == [("latency_p95", 0.5, False), ("delivered_percent", 95.0, True)]
    changed = plan_targets(plan(TARGETS, sets=("targets.web.latency_p95=1 s",)))
    assert [one.limit for one in changed] == [1.0, 95.0]


MIXED = """
name: mixed
guests: {}
workloads: {disk: {kind: fio, on: host, rw: read, size: 8 MiB, time: 2 s}}
axes: {rw: {values: [read, randrw], sets: workloads.disk.rw}}
targets: {disk: {latency_p99: 20 ms, iops: 1/s}}
table: {columns: rw, rows: metrics, metrics: [latency_p99, read_latency_p99]}
"""


def test_a_metric_of_some_points_of_the_axes_is_not_applicable_at_the_others() -> None:
    assert plan(MIXED).notes[-2:] == (
        "disk.latency_p99 is not applicable at rw randrw: disk does not give it there",
        "disk.read_latency_p99 is not applicable at rw read: disk does not give it there",
    )
    narrowed = plan(MIXED, sets=("axes.rw=[randrw]",))
    assert [one.metric for one in plan_targets(narrowed)] == ["iops"]


def test_a_metric_of_no_point_of_the_axes_is_refused_with_those_that_there_are() -> None:
    message = r":6:18: disk never gives latency_p99 with these parameters; it gives run_time, iops, .*read_latency_p99"
    with pytest.raises(UsageError, match=message):
        plan(MIXED.replace("[read, randrw]", "[rw, randrw]").replace("rw: read,", "rw: rw,"))


@pytest.mark.parametrize(
    ("assignment", "line"),
    [
        ("targets.web.latency=1 s", "kind http has no metric 'latency'"),
        ("targets.web.latency_p95=1", "needs a number and a unit"),
        ("targets.web=1 s", "targets is set as targets.web.latency_p95"),
    ],
)
def test_an_assignment_to_targets_that_is_wrong_names_its_option(assignment: str, line: str) -> None:
    with pytest.raises(UsageError, match=f"^--set {assignment}: .*{line}"):
        plan(TARGETS, sets=(assignment,))


def test_guests_share_a_snapshot_where_they_differ_in_nothing_that_a_guest_sees() -> None:
    """So `plan` asks for no --cold, and counts one snapshot."""
    for scenario in ("tile-backing", "disk-allocation"):
        plan = make_plan(load(scenario), Overrides(size="full"), HOST)
        machines: dict[str, set[str]] = {}
        for guest in (guest for cell in plan.cells for guest in cell.guests):
            machines.setdefault(guest.guest, set()).add(guest.machine)
        assert machines and all(len(found) == 1 for found in machines.values())
    unlike = make_plan(load("tile"), Overrides(cache=("none", "writethrough")), HOST)
    assert len({guest.machine for cell in unlike.cells for guest in cell.guests if guest.guest == "file-a"}) == 2


def wrong(text: str) -> list[str]:
    """What is said of a scenario, a line for each problem, without the file's name."""
    with pytest.raises(ScenarioError) as caught:
        plan(text)
    return [line.removeprefix("x.yaml") for line in str(caught.value).splitlines()]


DISKS = """\
name: disks
guests: {vm: {memory: 512 MiB, disk: 8 GiB, data: 2 GiB}, other: {memory: 512 MiB, disk: 9 GiB}}
workloads:
  system: {kind: fio, rw: read, on: vm, folder: /srv, size: 8 GiB}
  data: {kind: fio, rw: read, on: vm, folder: /data/fio, size: 2 GiB}
  other: {kind: fio, rw: read, on: other, size: 9 GiB}
  rest: {kind: fio, rw: read, on: host, size: 10 GiB}
"""


def test_files_may_fill_each_disk_of_each_guest_to_the_last_byte() -> None:
    assert len(plan(DISKS).cells) == 1
    assert wrong(DISKS.replace("on: host, size: 10 GiB", "on: vm, folder: /srv, size: 1 GiB")) == [
        ":7:59: 9 GiB of files and tables do not fit the disk of guest vm: 8 GiB"
    ]
    assert wrong(DISKS.replace("8 GiB}", "9 GiB}").replace("2 GiB}\n  other", "3 GiB}\n  other")) == [
        ":4:61: 9 GiB of files and tables do not fit the disk of guest vm: 8 GiB",
        ":5:64: 3 GiB of files and tables do not fit the data disk of guest vm: 2 GiB",
    ]


def test_one_wrong_workload_hides_no_other() -> None:
    text = "name: x\nguests: {vm: {memory: 512 MiB}}\nworkloads:\n  a: {kind: cup, on: vm}\n  b: {kind: fij, on: vm}\n"
    assert wrong(text) == [
        ":4:13: there is no kind of workload 'cup'; did you mean 'cpu'?",
        ":5:13: there is no kind of workload 'fij'; did you mean 'fio'?",
    ]
    first, second = wrong(text.replace("cup, on: vm", "[cpu]").replace("fij", "cpu, threads: 0"))
    assert first.startswith(":4:13: workloads.a.kind: ")
    assert second.startswith(":5:27: workloads.b.threads: ")


def test_each_disk_in_a_mode_that_may_lose_data_is_named() -> None:
    text = GOOD.replace(
        "a: {role: fileserver, memory: 512 MiB}",
        "a: {role: fileserver, memory: 512 MiB, data: 1 GiB, data_cache: unsafe}",
    )
    text = text.replace(
        "b: {role: fileserver, memory: 512 MiB}", "b: {role: fileserver, memory: 512 MiB, cache: unsafe}"
    )
    assert [line.split(" cache mode unsafe")[0] for line in wrong(text)] == [":3:67:", ":4:49:"]
    assert len(plan(f"{text}allow: {{unsafe_cache: true}}\n").cells) == 1


def test_an_image_in_a_pool_is_thin() -> None:
    text = GOOD.replace("memory: 512 MiB", "memory: 512 MiB, data: 1 GiB, backing: 'rbd:lab', allocation: thin", 1)
    assert plan(text).cells[0].guests[0].resources.allocation == "thin"
    on_disk = text.replace("backing: 'rbd:lab', allocation: thin", "allocation: full")
    assert plan(on_disk).cells[0].guests[0].resources.allocation == "full"


def test_a_role_that_a_guest_lacks_is_named_at_its_side() -> None:
    assert wrong(GOOD.replace("b: {role: fileserver, ", "b: {")) == [
        ":6:39: guest b needs the role fileserver for kind filecopy"
    ]


def test_a_place_that_is_no_guest_is_named_whatever_its_name() -> None:
    for name in ("gm", "wm"):
        (line,) = wrong(
            PRIMES.replace("on: vm", f"on: {name}").replace("place: {values: [host, vm]", "place: {values: [host]")
        )
        assert line.startswith(f":7:24: there is no guest '{name}'; "), line


def test_files_that_do_not_fit_are_named_beside_a_guest_that_is_not_there() -> None:
    known, size = wrong(GOOD.replace("from: a", "from: z").replace("bytes: 1 MB", "bytes: 9 GB"))
    assert known.startswith(":6:32: there is no guest 'z'; ")
    assert size == ":6:60: 8.38 GiB of files and tables do not fit the disk of guest b: 8 GiB"
