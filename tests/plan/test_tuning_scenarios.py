"""Scenarios of `vmlab tune`: what is varied and what is left as it is, and what cannot be tuned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.tuned_runs import OWN, note_of, of_fio, screening_of
from tests.plan.test_planning import HOST
from vmlab.model.errors import ScenarioError, UsageError
from vmlab.model.scenarios.guest import GuestAttributes
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read, shipped_names
from vmlab.plan.scenario_file.written_text import written_text
from vmlab.plan.scenario_file.yaml_text import parse
from vmlab.plan.terms import Overrides
from vmlab.plan.tuning.data_levers import DATA_LEVERS, level_words
from vmlab.plan.tuning.fio_options import FioOptions, fio_bytes, fio_seconds
from vmlab.plan.tuning.screening_design import MOST_LEVERS, screening
from vmlab.plan.tuning.tuning_scenarios import (
    GENERATED,
    TuningRequest,
    confirmation_file,
    note_of_text,
    plan_screening,
    winning_text,
)


def test_a_screening_is_a_scenario_of_all_settings_in_blocks() -> None:
    found = screening_of()
    assert [*found.note.levers] == ["cache", "queues", "read_ahead", "allocation"]
    plan = make_plan(found.file, Overrides(), HOST)
    assert len(plan.cells) == len(screening(4)) * found.blocks == 24
    assert {cell.axes["setting"] for cell in plan.cells} == {*found.note.settings}
    guests = {str(cell.axes["setting"]): cell.guests[0].resources for cell in plan.cells}
    changed = guests["abcd"]
    assert (changed.data_mode, changed.data_queues) == ("none", 4)
    assert (changed.read_ahead_bytes, changed.allocation) == (4 * 2**20, "full")
    usual = guests["default"]
    assert (usual.data_mode, usual.data_queues) == ("writeback", 1)
    assert (usual.read_ahead_bytes, usual.allocation) == (None, "thin")
    mixed = guests["ab"]
    assert (mixed.data_mode, mixed.data_queues) == ("none", 4)
    assert (mixed.read_ahead_bytes, mixed.allocation) == (None, "thin")
    assert len({cell.guests[0].machine for cell in plan.cells}) == 1, "one frozen guest for all cells"


def test_what_the_guest_has_is_the_default_and_the_other_level_stands_against_it() -> None:
    text = OWN.replace("data: 2 GiB", "data: 2 GiB, cache: none, io: native, read_ahead: 4 MiB, data_queues: 2")
    levers = screening_of(text).note.levers
    assert levers["cache"].default == {"data_cache": "none", "data_io": "native"}
    assert levers["cache"].other == {"data_cache": "writeback", "data_io": "threads"}
    assert (levers["read_ahead"].default, levers["read_ahead"].other) == ({"read_ahead": "4 MiB"}, {"read_ahead": None})
    assert (levers["queues"].default, levers["queues"].other) == ({"data_queues": 2}, {"data_queues": 4})
    capped = screening_of(text.replace("vcpus: 4", "vcpus: host").replace("data_queues: 2", "data_queues: 64"))
    assert capped.note.levers["queues"].default == {"data_queues": HOST.cpus}
    plan = make_plan(screening_of(text).file, Overrides(), HOST)
    last = next(cell for cell in plan.cells if cell.axes["setting"] == "abcd").guests[0].resources
    assert (last.data_mode, last.read_ahead_bytes) == ("writeback", None)


ALL = TuningRequest()


def test_levers_without_effect_are_left_out_and_said() -> None:
    every = screening_of(OWN, ALL)
    assert [*every.note.levers] == ["cache", "iothread", "bus", "queues", "read_ahead", "format"]
    assert dict(every.left_out) == {"allocation": "it does not go with format; --levers names one of them"}
    changed = next(
        cell.guests[0].resources
        for cell in make_plan(every.file, Overrides(), HOST).cells
        if cell.axes["setting"] == "abcdef"
    )
    assert (changed.data_io, changed.data_iothread, changed.data_bus, changed.data_format) == (
        *("native", True, "scsi", "qcow2"),
    )
    direct = dict(screening_of(OWN.replace("direct: false", "direct: true"), ALL).left_out)
    assert [*direct] == ["read_ahead", "allocation"] and "reads ahead" in direct["read_ahead"]
    assert "read_ahead" in dict(screening_of(OWN.replace("rw: read", "rw: write"), ALL).left_out)
    assert "queues" in dict(screening_of(OWN.replace("vcpus: 4", "vcpus: 1"), ALL).left_out)
    block = screening_of(OWN.replace("data: 2 GiB", "data: 2 GiB, backing: block"), ALL)
    assert [*dict(block.left_out)] == ["format"] and "allocation" in block.note.levers
    pool = screening_of(OWN.replace("data: 2 GiB", "data: 2 GiB, backing: 'rbd:rbd'"), ALL)
    assert [*dict(pool.left_out)] == ["format", "allocation"]
    assert pool.note.levers["cache"].other == {"data_cache": "none"}
    qcow2 = screening_of(OWN.replace("data: 2 GiB", "data: 2 GiB, data_format: qcow2"), ALL)
    assert qcow2.note.levers["format"].other == {"data_format": "raw"} and "allocation" in dict(qcow2.left_out)
    full = screening_of(OWN.replace("data: 2 GiB", "data: 2 GiB, allocation: full"), ALL)
    assert "format" in dict(full.left_out) and full.note.levers["allocation"].other == {"allocation": "thin"}
    packed = screening_of(OWN.replace("data: 2 GiB", "data: 2 GiB, data_packed: true"), ALL)
    assert "bus" in dict(packed.left_out)


@pytest.mark.parametrize(
    ("keys", "lever", "why"),
    [
        ("data_format: qcow2, data_cluster: 1 MiB", "format", "data_cluster is for data_format: qcow2, not raw"),
        ("data_format: qcow2, data_preallocation: falloc", "format", "data_preallocation is for data_format: qcow2"),
        ("data_format: qcow2, data_extended_l2: true", "format", "data_extended_l2 is for data_format: qcow2"),
        ("data_format: qcow2, data_table_cache: 1 MiB", "format", "data_table_cache is for data_format: qcow2"),
        ("data_detect_zeroes: unmap", "allocation", "data_detect_zeroes: unmap needs a data disk that discards"),
        ("libvirt: {data/driver/@event_idx: off}", "bus", "data/driver/@event_idx is for data_bus: virtio, not scsi"),
        ("data_packed: true", "bus", "data_packed is for data_bus: virtio, not scsi"),
    ],
)
def test_levers_that_the_guests_other_keys_exclude_are_left_out_and_said(keys: str, lever: str, why: str) -> None:
    text = OWN.replace("data: 2 GiB", f"data: 2 GiB, {keys}")
    others = tuple(one for one in ("cache", "iothread", "bus", "allocation") if one != lever)
    with pytest.raises(UsageError, match=f"--levers: the guest excludes {lever}: {why}"):
        screening_of(text, TuningRequest(levers=(*others[:2], lever)))
    every = screening_of(text, ALL)
    if lever != "allocation":
        assert dict(every.left_out)[lever].startswith(why)
    make_plan(every.file, Overrides(), HOST)


@pytest.mark.parametrize(
    ("text", "request_", "line"),
    [
        (OWN, TuningRequest(levers=("cahce", "queues")), "there is no lever 'cahce'; did you mean 'cache'?"),
        (OWN, TuningRequest(levers=("cache",)), "takes 2 levers or more"),
        (
            OWN.replace("vcpus: 4", "vcpus: 1"),
            TuningRequest(levers=("cache", "queues")),
            "queues can have no effect here: a guest uses at most one queue for each of its CPUs",
        ),
        (OWN, TuningRequest(levers=("allocation", "format")), "allocation and format exclude each other"),
        (OWN, TuningRequest(metric="blocks.iopz"), "did you mean 'blocks.iops'?"),
        (OWN, TuningRequest(metric="bytes"), "no workload of guest vm gives it"),
        (OWN, TuningRequest(guest="host"), "has no data disk that a workload uses; did you mean|known are vm"),
        (OWN.replace(", data: 2 GiB", ""), TuningRequest(), "no guest has a data disk, whose levers these are"),
    ],
)
def test_what_cannot_be_tuned_is_one_line(text: str, request_: TuningRequest, line: str) -> None:
    with pytest.raises(UsageError) as refused:
        screening_of(text, request_)
    assert any(part in str(refused.value) for part in line.split("|"))
    assert "\n" not in str(refused.value)


def test_of_several_guests_with_data_disks_one_is_named() -> None:
    text = OWN.replace("workloads:", "  other: {vcpus: 2, memory: 512 MiB, data: 2 GiB}\nworkloads:")
    text += "  more: {kind: fio, on: other, rw: randwrite, size: 64 MiB, time: 3 s}\n"
    with pytest.raises(UsageError, match="several guests have a data disk; name one with --guest: vm, other"):
        screening_of(text)
    found = screening_of(text, TuningRequest(guest="other"))
    assert (found.note.guest, found.note.workload) == ("other", "more")
    plan = make_plan(found.file, Overrides(), HOST)
    assert {cell.guests[0].resources.data_mode for cell in plan.cells} == {"writeback"}


@pytest.mark.parametrize(
    ("text", "metric", "expected"),
    [
        (OWN, None, "throughput"),
        (OWN, "iops", "iops"),
        (OWN, "run_time", "throughput"),
        (OWN, "blocks.latency_p99", "latency_p99"),
        (OWN.replace("time: 3 s, ", ""), None, "run_time"),
        (f"{OWN}table: {{columns: workloads, rows: metrics, metrics: [iops, throughput]}}\n", None, "iops"),
    ],
)
def test_the_figure_is_the_first_that_is_asked_for(text: str, metric: str | None, expected: str) -> None:
    assert screening_of(text, TuningRequest(metric=metric)).note.metric == expected


def test_one_point_of_the_axes_is_tuned_at_the_size_and_with_the_options() -> None:
    text = (
        f"{OWN}axes: {{memory: [512 MiB, 1 GiB], tiles: [2, 1]}}\nrepeats: 3\n"
        "table: {columns: memory, baseline: 1 GiB}\nsizes: {demo: {blocks: {size: 128 MiB}}}\n"
    )
    found = screening_of(text, sets=("workloads.blocks.depth=1",), seed=7, allow_noise=True)
    plan = make_plan(found.file, Overrides(), HOST)
    guest, work = plan.cells[0].guests[0].resources, plan.cells[0].workloads[0].params
    assert (guest.memory_bytes, plan.cells[0].tiles, work.model_dump()["size"]) == (2**30, 2, 128 * 2**20)
    assert (plan.seed, plan.scenario.allow.noise, plan.scenario.order) == (7, True, "random")
    assert plan.scenario.repeats == found.blocks


def test_its_confirmation_compares_with_the_default_and_the_winner_stands_alone() -> None:
    found = screening_of()
    file = confirmation_file(found.file.text, "RUN", [("cache",), ("cache", "read_ahead")], 7)
    assert note_of(file).settings == {"default": (), "a": ("cache",), "ac": ("cache", "read_ahead")}
    assert (note_of(file).step, note_of(file).screening) == ("confirmation", "RUN")
    plan = make_plan(file, Overrides(), HOST)
    assert len(plan.cells) == 21
    for text in (found.file.text, file.text):
        won = winning_text(text, ("cache", "read_ahead"), "CONFIRMED")
        scenario = read(GENERATED, won, {}).scenario
        guest = scenario.guests["vm"]
        assert (guest.data_mode, guest.read_ahead_bytes, guest.data_queues) == ("none", 4 * 2**20, 1)
        assert (scenario.name, scenario.axes, scenario.repeats) == ("tuned-trial", {}, 1)
        assert "CONFIRMED" in scenario.summary and note_of_text(won) is None
        assert len(make_plan(read(GENERATED, won, {}), Overrides(), HOST).cells) == 1


def test_a_winner_without_read_ahead_has_no_such_key() -> None:
    found = screening_of(OWN.replace("data: 2 GiB", "data: 2 GiB, read_ahead: 4 MiB"))
    won = parse(winning_text(found.file.text, ("read_ahead",), "RUN"), GENERATED, {}).value
    assert "read_ahead" not in won["guests"]["vm"]


def test_damaged_notes_are_one_line() -> None:
    text = screening_of().file.text
    assert note_of_text(OWN) is None
    for damaged in (
        text.replace("step: screening", "step: other"),
        text.replace("default: []", "default: [cache]"),
        text.replace("a: [cache]", "a: [other]") if "a: [cache]" in text else text.replace("[cache", "[other"),
    ):
        assert damaged != text
        with pytest.raises(UsageError, match="what its scenario says of tuning is damaged"):
            note_of_text(damaged)
    with pytest.raises(ScenarioError, match="says nothing of tuning"):
        winning_text(OWN, (), "RUN")


def test_usual_levels_are_those_of_a_guest_that_says_nothing() -> None:
    assert len(DATA_LEVERS) <= MOST_LEVERS
    fields = {field.alias or name: field for name, field in GuestAttributes.model_fields.items()}
    for lever in DATA_LEVERS:
        assert lever.usual.keys() == lever.other.keys() <= fields.keys()
        for key, value in lever.usual.items():
            of_all = fields.get(key.removeprefix("data_"), fields[key])
            assert value == (of_all if fields[key].default is None else fields[key]).default


def test_levels_in_words() -> None:
    assert level_words({"data_cache": "none", "data_io": "native", "read_ahead": None, "data_iothread": True}) == (
        "cache=none, io=native, read_ahead=kernel's, iothread=true"
    )


@pytest.mark.parametrize(
    ("text", "size"), [("4k", 4096), ("512", 512), ("1M", 2**20), ("64mib", 2**26), ("2G", 2**31), ("8kb", 8192)]
)
def test_sizes_are_those_of_fio(text: str, size: int) -> None:
    assert fio_bytes(text) == size


@pytest.mark.parametrize("text", ["", "4 k", "k", "-4k", "4x", "0", "9" * 39, "1.5m"])
def test_other_sizes_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no size of fio's"):
        fio_bytes(text)


def test_times_are_seconds() -> None:
    assert (fio_seconds("3"), fio_seconds("2s"), fio_seconds("1 min")) == (3, 2, 60)
    with pytest.raises(ValueError, match="must be more than 0"):
        fio_seconds("0")
    with pytest.raises(ValueError, match="must be at least 1 ms"):
        fio_seconds("0.1 us")


def test_options_of_fio_make_a_scenario() -> None:
    found = FioOptions("randread", bs=8192, filesize=3 * 2**30, iodepth=16, numjobs=2, runtime=5.0).scenario()
    assert "time: 5 s" in found.text
    work, guest = found.scenario.workloads["disk"].params, found.scenario.guests["vm"]
    assert (work["rw"], work["block"], work["size"], work["depth"]) == ("randread", "8192 B", f"{3 * 2**30} B", 16)
    assert guest.data_bytes == 12 * 2**30
    assert note_of(of_fio().file).metric == "iops"
    assert note_of(of_fio("write").file).metric == "throughput"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ioengine": "psync", "iodepth": 2}, "options of fio: depth must be 1 with the engine psync"),
        ({"bs": 1}, "--bs must be at least 512, not 1"),
        ({"filesize": 2**50}, "--filesize must be at most"),
        ({"filesize": 1, "numjobs": 256}, "--filesize must be at least 4096, not 1"),
        ({"runtime": 2e6}, "--runtime must be at most 86400, not 2000000"),
        ({"filesize": 2**46, "numjobs": 2}, "such a disk cannot be made"),
    ],
)
def test_what_fio_does_not_do_is_one_line_in_the_names_of_its_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{words}") as error:
        FioOptions("randread", **options).scenario()
    assert "\n" not in str(error.value)


_WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**16), 10**16) | st.floats(-1e9, 1e9) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_WORDS.filter(lambda word: word not in ("vars", "<<")), _VALUES, min_size=1, max_size=4))
def test_values_are_written_as_they_are_read(values: dict[str, Any]) -> None:
    try:
        found = parse(written_text(values), "x", {}).value
    except ScenarioError as error:
        # Keys cannot hold everything; values can.
        assert "key" in str(error)
        return
    assert json.dumps(found, sort_keys=True) == json.dumps(_whole(values), sort_keys=True)


def _whole(value: Any) -> Any:
    """Whole floats are read as whole numbers."""
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [*map(_whole, value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_scenarios_can_be_tuned_or_say_why_not(name: str) -> None:
    file = load(name)
    try:
        found = plan_screening(file, Overrides(), 2, TuningRequest())
    except UsageError as refused:
        assert "data disk" in str(refused) or "axis host" in str(refused)
    else:
        assert make_plan(found.file, Overrides(), HOST).cells


def test_disk_matrix_is_tuned_on_its_guest() -> None:
    overrides = Overrides(sets=("axes.setup=[none]", "axes.job=[4k-randwrite]"), size="demo")
    found = plan_screening(load("disk-matrix"), overrides, 2, TuningRequest(levers=("queues", "allocation")))
    plan = make_plan(found.file, Overrides(), HOST)
    assert (found.note.guest, found.note.metric, Path(found.file.path)) == ("vm", "iops", GENERATED)
    assert {cell.guests[0].resources.data_mode for cell in plan.cells} == {"none"}
    assert {cell.guests[0].resources.data_queues for cell in plan.cells} == {1, 4}
