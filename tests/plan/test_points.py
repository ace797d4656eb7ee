"""Named points of axes: which cells they make, in which order, and what each cell is configured as."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.plan.test_planning import HOST, plan
from vmlab.cli.plan_text import plan_text
from vmlab.model.errors import RefusedError, UsageError
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan, validate_all
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides

GUESTS = """\
name: job
guests:
  vm: {vcpus: 4, memory: 512 MiB}
workloads:
  job: {kind: cpu, on: vm, threads: 1}
"""
SETUP = """\
axes:
  setup:
    points:
      host: {workloads.job.on: host, without: cache}
      four: {queues: 4, tiles: 2, workloads.job.threads: 3, host.thp: never}
      windows: {absent: needs an image of your own}
      plain: {}
"""
BOTH = f"{GUESTS}{SETUP}  cache: [none, writeback]\n"


def test_a_point_runs_once_for_axes_that_it_leaves_out() -> None:
    made = plan(BOTH)
    assert [cell.axes for cell in made.cells] == [
        {"setup": "host"},
        {"setup": "four", "cache": "none"},
        {"setup": "four", "cache": "writeback"},
        {"setup": "plain", "cache": "none"},
        {"setup": "plain", "cache": "writeback"},
    ]
    assert [str(absent) for absent in made.absent] == ["setup windows is absent: needs an image of your own"]


def test_a_cell_spells_out_what_its_point_hides() -> None:
    host, four, *_ = plan(BOTH).cells
    assert (four.tiles, len(four.guests), four.host.asked()) == (2, 2, {"thp": "never"})
    settings = settings_of(four)
    assert (settings["tiles"], settings["cache"], settings["queues"]) == (2, "none", 4)
    assert settings["guests"]["vm"]["memory_bytes"] == 2**29
    assert (settings["workloads"]["job"]["on"], settings["workloads"]["job"]["params"]["threads"]) == ("vm", 3)
    assert settings_of(host)["workloads"]["job"]["on"] == "host"
    assert (settings_of(host)["cache"], settings_of(host)["guests"]) == (None, {})
    assert json.loads(json.dumps(settings)) == settings


def test_sizes_and_assignments_choose_points_by_name_and_order() -> None:
    text = f"{BOTH}sizes: {{smoke: {{axes: {{setup: [plain, host], cache: [none]}}}}}}\n"
    assert [cell.axes["setup"] for cell in plan(text, size="smoke").cells] == ["plain", "host"]
    assert plan(text, size="smoke").absent == ()
    assert {cell.axes["setup"] for cell in plan(text, sets=("axes.setup=four",)).cells} == {"four"}
    assert validate_all(read(Path("x.yaml"), text)).cells == {"full": 5, "smoke": 2}


def test_options_for_what_points_set_are_refused_with_the_points_to_choose_from() -> None:
    text = f"{GUESTS}axes: {{setup: {{points: {{a: {{cache: none}}, b: {{tiles: 2}}, c: {{cache: writeback}}}}}}}}\n"
    with pytest.raises(UsageError) as caught:
        plan(text, cache=("none",))
    words = "points a, c of axis setup set guests.vm.cache; choose points with --set axes.setup="
    assert str(caught.value) == f"--cache none: {words}"
    with pytest.raises(UsageError, match=r"^--tiles 3: point b of axis setup sets tiles; choose"):
        plan(text, tiles=(3,))


def test_a_point_may_set_what_an_axis_that_it_leaves_out_would_set() -> None:
    text = f"{GUESTS}axes: {{s: {{points: {{a: {{without: cache, cache: directsync}}, b: {{}}}}}}, cache: [none]}}\n"
    assert [cell.cache for cell in plan(text).cells] == ["directsync", "none"]


def test_host_settings_come_from_scenario_axis_point_and_option() -> None:
    text = f"{GUESTS}host: {{ksm: off, read_ahead: 64 KiB}}\naxes: {{host.thp: [always, never]}}\n"
    made = plan(text)
    assert [cell.host.asked() for cell in made.cells] == [
        {"ksm": "off", "thp": thp, "read_ahead": 65536} for thp in ("always", "never")
    ]
    assert made.host_settings == ("ksm", "thp", "read_ahead")
    changed = plan(text, sets=("host.ksm=on", "axes.host.thp=madvise"))
    assert [cell.host.asked() for cell in changed.cells] == [{"ksm": "on", "thp": "madvise", "read_ahead": 65536}]


def test_a_setting_that_this_host_does_not_let_change_is_refused() -> None:
    here = replace(HOST, unsettable={"ksm": "/sys/kernel/mm/ksm/run cannot be written here"})
    check_fit(plan(f"{GUESTS}host: {{thp: never}}\n"), here)
    with pytest.raises(RefusedError, match=r"^the scenario sets host\.ksm, and /sys/kernel/mm/ksm/run cannot be"):
        check_fit(plan(f"{GUESTS}host: {{ksm: on}}\n"), here)


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        ("scheduler: none, nr_requests: 1024", "and with the scheduler none the guests' disks take 1023 at most"),
        ("nr_requests: 2049", "and with their present scheduler the guests' disks take 2048 at most"),
        ("scheduler: none, nr_requests: 1023", ""),
        ("scheduler: bfq, nr_requests: 60000", ""),
        ("disk: hdd-7200, nr_requests: 2049", ""),
    ],
)
def test_more_requests_than_the_guests_disks_take_are_refused(host: str, refused: str) -> None:
    here = replace(HOST, most_requests={"none": 1023, "kyber": 2048, "": 2048})
    made = plan(f"{GUESTS}host: {{{host}}}\n")
    if not refused:
        check_fit(made, here)
        return
    with pytest.raises(RefusedError, match=rf"^the scenario sets host\.nr_requests: [0-9]+, {refused}$"):
        check_fit(made, here)


def _drawn(draw: random.Random) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """A scenario with random axes of points, and these; the first axis alone leaves others out."""
    axes: list[tuple[str, dict[str, Any]]] = []
    names = ["one", "two", "three"][: draw.randint(1, 3)]
    keys = ["workloads.job.threads", "workloads.job.events", "workloads.job.max_prime"]
    for number, (name, key) in enumerate(zip(names, keys, strict=False)):
        points: dict[str, Any] = {}
        for index in range(draw.randint(1, 4)):
            point: dict[str, Any] = {key: 1 + index if number == 0 else 1000 + index}
            if draw.random() < 0.25:
                point = {"absent": "it is not there"}
            elif number == 0 and draw.random() < 0.4 and len(names) > 1:
                point["without"] = draw.sample(names[1:], draw.randint(1, len(names) - 1))
            points[f"p{index}"] = point
        axes.append((name, points))
    text = GUESTS + "axes: " + json.dumps({name: {"points": points} for name, points in axes}) + "\n"
    return text, axes


def test_a_scenario_of_absent_points_alone_has_a_plan_and_cannot_run() -> None:
    made = plan(f"{GUESTS}axes: {{setup: {{points: {{a: {{absent: no licence}}}}}}}}\n")
    assert (made.cells, made.guests, made.memory_bytes, made.seconds) == ((), 0, 0, 0)
    assert [str(absent) for absent in made.absent] == ["setup a is absent: no licence"]
    with pytest.raises(RefusedError, match=r"^nothing to run: every axis value is marked absent$"):
        check_fit(made, HOST)
    text = plan_text(made, HOST).splitlines()
    assert text[-2:] == ["no cell to run", "    -  setup a is absent: no licence"]


def test_points_expand_to_the_product_without_absent_ones_in_order() -> None:
    cells = sum(_expanded(seed) for seed in range(60))
    assert cells > 100


def _expanded(seed: int) -> int:
    """Compare the plan of a drawn scenario with the product of its axes; the number of cells."""
    text, axes = _drawn(random.Random(seed))
    expected: list[dict[str, str]] = []
    for chosen in itertools.product(*(points for _, points in axes)):
        pairs = [(name, point, points[point]) for (name, points), point in zip(axes, chosen, strict=True)]
        left_out = {name for _, _, point in pairs for name in point.get("without", ())}
        cell = {name: point for name, point, _ in pairs if name not in left_out}
        absent = any("absent" in what for name, _, what in pairs if name not in left_out)
        if not absent and cell not in expected:
            expected.append(cell)
    file = read(Path("x.yaml"), text)
    made = make_plan(file, Overrides(size="full", sets=("order=as written",)), HOST)
    assert [cell.axes for cell in made.cells] == expected, f"seed {seed}"
    for planned in made.cells:
        params = planned.workloads[0].params.model_dump()
        for name, points in axes:
            if name in planned.axes:
                ((path, value),) = [(k, v) for k, v in points[str(planned.axes[name])].items() if k != "without"]
                assert params[path.rpartition(".")[2]] == value
    absent_points = [(name, point) for name, points in axes for point in points if "absent" in points[point]]
    assert [(one.axis, one.value) for one in made.absent] == absent_points
    return len(made.cells)
