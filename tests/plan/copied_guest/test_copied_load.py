"""A recorded load as workloads of fio, and as a scenario that this host plans."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plan.copied_guest.guests import ROOMY, WEB01, with_disk
from vmlab.model.domain import DomainDisk
from vmlab.model.quantities import parse_bytes, parse_pace
from vmlab.model.scenarios.recorded import Recorded, RecordedWay
from vmlab.plan.copied_guest.copied_load import fio_keys, load_work, pace_text, recorded_guest, recorded_keys
from vmlab.plan.copied_guest.copied_scenario import copied_scenario
from vmlab.plan.copied_guest.trial import Trial
from vmlab.plan.copied_guest.xml_guest import guest_of_xml
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan, validate_all
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.plan.terms import Overrides
from vmlab.workloads.kinds.fio import FioParams

DAY = {"time": "200.0 s", "reads": {"rate": "80.12/s", "size": "4096 B", "latency": "5.2140 ms"}}
BOTH: dict[str, Any] = {
    "time": "100.0 s",
    "reads": {"rate": "12.25/s", "size": "16384 B", "latency": "1.5000 ms"},
    "writes": {"rate": "300/s", "size": "13000 B", "latency": "14.0000 ms"},
    "flushes": "50.5/s",
}
WRITES = {"time": "60.0 s", "writes": {"rate": "30/s", "size": "512 B", "latency": "0.0500 ms"}}


def recorded(**phases: dict[str, Any]) -> Recorded:
    said = {"run": "20261129-090000-recording-ab12", "domain": "web01", "disk": "vda", "advice": "cache: none may cost"}
    return Recorded.model_validate({**said, "phases": phases})


def way(rate: float, size: int, latency: float, in_flight: int | None = None) -> RecordedWay:
    return RecordedWay.model_construct(rate=rate, size=size, latency=latency, in_flight=in_flight)


def written(load: Recorded, xml: str = WEB01) -> tuple[str, ScenarioFile]:
    text = copied_scenario(guest_of_xml(xml, "x.xml", "a test"), Trial(ROOMY), load_work(load, {}))
    return text, read(Path("try.yaml"), text, {})


def test_a_load_that_is_known_by_hand() -> None:
    assert fio_keys(way(80.12, 4096, 0.005214)) == {
        "block": "4 KiB",
        "jobs": 1,
        "rate": "80/s",
        "rate_process": "poisson",
    }
    # 300/s of 14 ms are 4.2 under way; one flush comes for six writes.
    many = {"block": "12 KiB", "jobs": 5, "rate": "60/s", "rate_process": "poisson", "fdatasync": 6}
    assert fio_keys(way(300, 13000, 0.014), 50.5) == many
    few = {"block": "512 B", "jobs": 1, "rate": "30/s", "rate_process": "poisson", "fdatasync": 1}
    assert fio_keys(way(30, 700, 0.00005), 90.0) == few
    # fio would make 10/s of that at random.
    assert fio_keys(way(10.4, 4096, 0.001)) == {"block": "4 KiB", "jobs": 1, "rate": "10.4/s"}
    # Four were under way nearly all the time, by a limit of 100 requests a second: that is what fio keeps.
    assert fio_keys(way(99.96, 8192, 0.0385, 4)) == {"block": "8 KiB", "depth": 4}


@given(st.floats(0.1, 200_000), st.integers(1, 2**23), st.floats(1e-6, 5.0), st.none() | st.floats(0.05, 20_000))
@example(0.98, 4096, 0.001, None)
def test_fio_does_what_was_recorded(rate: float, size: int, latency: float, flushes: float | None) -> None:
    keys = fio_keys(way(rate, size, latency), flushes)
    block = parse_bytes(keys["block"])
    unit = 4096 if size >= 4096 - 512 else 512
    assert block % unit == 0 and block >= unit
    for other in (block - unit, block + unit):
        # No other one moves as nearly as many bytes.
        assert other == 0 or max(block / size, size / block) <= max(other / size, size / other)
    # Little's law: no fewer places than requests were under way, and less than one more.
    under_way = rate * latency
    places = min(256, max(1, math.ceil(under_way - 0.05)))
    assert keys["jobs"] == places and "depth" not in keys
    at_random = keys.get("rate_process") == "poisson"
    assert parse_pace(keys["rate"]) * keys["jobs"] == pytest.approx(rate, rel=0.031 if at_random else 1e-3)
    params = FioParams.model_validate({"rw": "randwrite", "size": "1 GiB", **keys, "block": "4 KiB"})
    assert params.at_random == at_random
    if flushes is None:
        assert "fdatasync" not in keys
    else:
        each = keys["fdatasync"]
        assert each in (1, 2**20) or rate / each == pytest.approx(flushes, rel=0.5 / (each - 0.5) + 1e-9)


@given(st.floats(1e-5, 1e6))
def test_a_pace_is_read_back(rate: float) -> None:
    assert parse_pace(pace_text(rate)) == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(
    ("phases", "cells"),
    [
        ({"load": DAY}, 6),
        ({"load": BOTH}, 6),
        ({"load": WRITES}, 4),
        ({"phase-1": DAY, "phase-2": BOTH, "phase-3": WRITES}, 18),
    ],
)
def test_the_scenario_is_valid_and_carries_what_was_recorded(phases: dict[str, Any], cells: int) -> None:
    load = recorded(**phases)
    text, file = written(load)
    validate_all(file, {}, ())
    plan = make_plan(file, Overrides(), ROOMY)
    check_fit(plan, ROOMY)
    assert len({tuple(cell.axes.items()) for cell in plan.cells}) == cells
    assert file.scenario.recorded is not None
    assert recorded_keys(file.scenario.recorded) == recorded_keys(load)
    warm = {cell.axes["access"]: cell.warm for cell in plan.cells}
    reads = {"cached": "host"} if any("reads" in phase for phase in phases.values()) else {}
    assert warm == {"random": False, "sequential": False, **reads}
    assert {str(cell.axes["setting"]) for cell in plan.cells} == {"as-it-is", "cache-writeback"}
    assert "Which blocks it read and wrote is not known" in text


def test_each_phase_has_its_own_rates_and_a_way_that_it_lacks_next_to_none() -> None:
    _, file = written(recorded(**{"phase-1": DAY, "phase-2": BOTH}))
    found: dict[tuple[object, object, str], FioParams] = {}
    for cell in make_plan(file, Overrides(), ROOMY).cells:
        for one in cell.workloads:
            assert isinstance(one.params, FioParams)
            found[cell.axes["phase"], cell.axes["access"], one.name] = one.params
    reads, writes = found["phase-1", "random", "reads"], found["phase-1", "random", "writes"]
    assert (reads.rw, reads.block, reads.rate, reads.jobs) == ("randread", 4096, 80.0, 1)
    assert (writes.rate, writes.fdatasync) == (0.1, 0)
    reads, writes = found["phase-2", "sequential", "reads"], found["phase-2", "sequential", "writes"]
    assert (reads.rw, reads.block, reads.rate) == ("read", 16384, 12.0)
    assert (writes.rw, writes.block, writes.rate, writes.jobs, writes.fdatasync) == ("write", 12288, 60.0, 5, 6)
    # Files are no larger than what was moved: 100 s of 300 writes of 13,000 bytes, in whole blocks of each job.
    assert 0 <= 100 * 300 * 13_000 - 5 * writes.size < 5 * 12288


def test_a_way_that_kept_its_places_has_no_rate_in_its_phase_alone() -> None:
    full = {"time": "60.0 s", "writes": {"rate": "99.96/s", "size": "8192 B", "latency": "38.5000 ms", "in_flight": 4}}
    _, file = written(recorded(**{"phase-1": WRITES, "phase-2": full}))
    found = {}
    for cell in make_plan(file, Overrides(), ROOMY).cells:
        (one,) = cell.workloads
        assert isinstance(one.params, FioParams)
        found[cell.axes["phase"]] = (one.params.rate, one.params.depth, one.params.jobs)
    assert found == {"phase-1": (30, 1, 1), "phase-2": (None, 4, 1)}


def test_the_disk_whose_load_it_is_becomes_the_data_disk() -> None:
    one = with_disk("cache='writethrough'")
    source = "<source file='/no/e'/><target dev='vdb' bus='virtio'/>"
    two = one.replace("</devices>", f"<disk type='file'><driver type='raw' cache='none'/>{source}</disk></devices>")
    load = recorded(load=DAY)
    text, file = written(load, two)
    guest = file.scenario.guests["vm"]
    # vda is the one that it boots from, too.
    assert (guest.cache, guest.data_cache) == ("writethrough", None)
    assert "vda is one of its disks" in text and "- vdb (/no/e): the lab's guests have two disks" in text
    other = load.model_copy(update={"disk": "vdb"})
    _, file = written(other, two)
    guest = file.scenario.guests["vm"]
    assert (guest.cache, guest.data_cache) == ("writethrough", "none")


def test_a_guest_of_which_nothing_but_the_recording_is_left() -> None:
    disk = DomainDisk("vda", "/no/db.img", "qcow2", "none", protocol="file")
    guest = recorded_guest("web01", "the recording", (2, 2**30), "kvm", {"vda": disk})
    text = copied_scenario(guest, Trial(ROOMY), load_work(recorded(load=DAY), {}))
    vm = read(Path("try.yaml"), text, {}).scenario.guests["vm"]
    assert (vm.vcpus, vm.memory_bytes, vm.cache, vm.data_format) == (2, 2**30, "none", "qcow2")


def test_words_of_a_domain_end_no_line() -> None:
    load = recorded(load=DAY).model_copy(update={"domain": "a: b\nname: c", "advice": "x\ny: z"})
    _, file = written(load)
    assert file.scenario.name == "like-web01"
    assert file.scenario.recorded is not None and file.scenario.recorded.advice == "x\ny: z"
