"""A copy is held against what was recorded, and answers where it is like it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.called import ended
from tests.plan.copied_guest.guests import ROOMY
from tests.plan.copied_guest.test_copied_load import BOTH, DAY, recorded, written
from tests.store.stories import Story
from vmlab.analysis.advice.likeness import (
    Copied,
    LikeWay,
    changes_of,
    copied_document,
    copied_of,
    lost_words,
    rate_bound,
)
from vmlab.analysis.document import run_document
from vmlab.model.cell_event import CellStarted
from vmlab.model.event import CellPlaced
from vmlab.model.run import CacheMode, Outcome
from vmlab.plan.planning import make_plan
from vmlab.plan.terms import Overrides
from vmlab.report.run.likeness_text import copied_text
from vmlab.store.reader import RunReader
from vmlab.store.writer import FleetWriter, TakenEvent

RUN = "20261129-093000-like-web01-7f3a"
SECONDS = 20
LATENCY = {"as-it-is": 0.005, "cache-writeback": 0.001}


def copy(
    folder: Path,
    phases: dict[str, Any],
    rate: float = 80.12,
    await_ms: float = 5.2,
    cold_ms: float | None = None,
    lost: Container[int] = (),
) -> None:
    """A run that copied a load: at random as it is said, in sequence each request takes a tenth of that; with what it
    reads in the page cache, too, unless writeback takes `cold_ms` without it. Cells of `lost` repeats are invalid.

    fio does nothing while it starts.
    """
    alike = ("random",) if cold_ms is None else ("random", "cached")
    text, file = written(recorded(**phases))
    plan = make_plan(file, Overrides(), ROOMY)
    store = folder / RUN / "run.sqlite"
    story = Story(store, run=RUN).begin_plan(plan)
    story.writer.document("scenario.yaml", text)
    story.writer.document("request", json.dumps({"overrides": {"variables": {}}}))
    for cell in plan.cells:
        story.start_plan_cell(cell)
        of_order = 1.0 if cell.axes["access"] in alike else 0.1
        for one in cell.workloads:
            story.ran(one.name, 1, 0.0, SECONDS + 2.0)
        story.mono -= 2 * len(cell.workloads)
        idle = {f"guest_data_disk_{name}[t1-vm]": 0.0 for name in FIGURES}
        busy = {
            "guest_data_disk_reads_per_second[t1-vm]": rate,
            "guest_data_disk_writes_per_second[t1-vm]": 300.0,
            "guest_data_disk_read_await_ms[t1-vm]": await_ms * of_order,
            "guest_data_disk_write_await_ms[t1-vm]": 14.0 * of_order,
            # With what the guest does on its root disk.
            "guest_disk_reads_per_second[t1-vm]": rate + 40.0,
            "guest_disk_writes_per_second[t1-vm]": 340.0,
            "guest_disk_read_await_ms[t1-vm]": 90.0,
            "guest_disk_write_await_ms[t1-vm]": 90.0,
        }
        story.execute(SECONDS, [idle, idle, *[busy] * (SECONDS - 2)])
        for one in cell.workloads:
            story.took(one.name, 1, SECONDS)
            latency = LATENCY[str(cell.axes["setting"])]
            if cold_ms is not None and (cell.axes["setting"], cell.axes["access"]) == ("cache-writeback", "random"):
                latency = cold_ms / 1000
            latency *= 1 + cell.repeat / 100
            story.measure(one.name, latency, "latency_mean", "s")
            story.measure(one.name, rate, "iops", "1/s")
        story.end_cell(Outcome.INVALID if cell.repeat in lost else Outcome.PASSED, wall=SECONDS)
    story.end()


def fleet_copy(folder: Path, of_hosts: dict[str, float], *, by_host: bool) -> Path:
    """A fleet whose hosts ran the same cells at the same time, each with its own latency in ms; with `by_host` they are
    an axis.
    """
    store = folder / "fleet" / "run.sqlite"
    store.parent.mkdir()
    writer = FleetWriter(store)
    for number, (host, await_ms) in enumerate(of_hosts.items()):
        copy(folder / host, {"load": DAY}, await_ms=await_ms)
        with RunReader(folder / host / RUN / "run.sqlite") as own:
            events = [event for _, event in own.events()]
            rows, layouts = list(own.sample_rows()), own.sample_layouts()
            if not number:
                for kept in ("scenario", "scenario.yaml", "request"):
                    writer.document(kept, (own.documents().get(kept) or ""))
                writer.append(events[0])
        source, cells = writer.add_source(host, f"{RUN}-{host}", 0.0, 0.0), events[0].cells  # type: ignore[attr-defined]
        for row, event in enumerate(events, start=1):
            if (cell := getattr(event, "cell", None)) is None:
                continue
            changed: dict[str, Any] = {"cell": cell + cells * number}
            if isinstance(event, CellStarted):
                writer.append(CellPlaced(cell=changed["cell"], name=host, wall=event.wall, mono=event.mono))
                changed |= {"axes": {**event.axes, "host": host}} if by_host else {}
                changed |= {} if by_host else {"repeat": event.repeat + 10 * number}
            writer.take_events(source, [TakenEvent(row, replace(event, **changed))], row)
        writer.take_samples(
            source, rows, {id: writer.sample_layout(one.names, one.units) for id, one in layouts.items()}
        )
    writer.close()
    return store


FIGURES = ("reads_per_second", "writes_per_second", "read_await_ms", "write_await_ms")


def copied(store: Path) -> Copied:
    with RunReader(store) as reader:
        found = copied_of(reader, run_document(reader))
    assert found is not None
    return found


@pytest.fixture
def like(tmp_path: Path) -> Path:
    copy(tmp_path, {"load": DAY})
    return tmp_path / RUN / "run.sqlite"


def test_the_order_that_is_like_the_recording_answers(like: Path) -> None:
    found = copied(like)
    assert [(one.access, one.way, one.alike) for one in found.ways] == [
        ("cached", "reads", False),
        ("random", "reads", True),
        ("sequential", "reads", False),
    ]
    (_, random, _) = found.ways
    assert random.rate == pytest.approx(80.12)
    assert random.latency == pytest.approx(0.0052)
    assert found.alike == {"load": ["random"]} and found.is_likeness
    assert {one.access for one in found.answers} == {"random"}
    (answer,) = [one for one in found.answers if one.metric == "latency_mean"]
    assert answer.difference.better and answer.difference.percent == pytest.approx(-80)


def test_advice_and_answer_stand_side_by_side(like: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("advise", str(like)) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "advice: cache: none may cost" in text
    assert (
        "the copy is like the recording (rates within 10 % and mean latencies within a factor of 1.5): random" in text
    )
    assert "answer: random, cache-writeback, reads: latency mean -80.0 %" in text
    assert "virsh edit web01, and in the <driver> of disk vda: cache='writeback' io='threads'" in text
    assert "--unsafe" in text
    assert ended("advise", str(like), "--json") == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "vmlab.advice/1" and body["run"] == RUN
    assert body["copied"]["is_likeness"] is True and body["copied"]["reasons"] == []
    assert [one["alike"] for one in body["copied"]["ways"]] == [False, True, False]
    (change,) = body["copied"]["changes"]
    assert change["cold"] == []
    assert change["setting"] == "cache-writeback" and change["driver"] == {"cache": "writeback", "io": "threads"}
    assert all(f"what is lost: {one}" in text for one in change["lost"]) and "--unsafe" in " ".join(change["lost"])


@pytest.mark.parametrize(("rate", "await_ms"), [(60.0, 5.2), (100.0, 5.2), (80.0, 8.0), (80.0, 3.0)])
def test_a_copy_that_is_not_like_it_answers_nothing(tmp_path: Path, rate: float, await_ms: float) -> None:
    copy(tmp_path, {"load": DAY}, rate, await_ms)
    found = copied(tmp_path / RUN / "run.sqlite")
    assert not found.is_likeness and found.answers == ()
    text = " ".join(copied_text(found, 120).split())
    assert "is no likeness of the recording" in text and "answers nothing about it" in text
    assert "answer:" not in text and "virsh" not in text
    body = copied_document(found)["copied"]
    assert len(body["reasons"]) == 1 and body["reasons"][0] in text


def test_each_host_of_a_fleet_is_judged_by_its_own_samples(tmp_path: Path) -> None:
    """The mean over both hosts, of 5.2 and 10.8 ms, would be no likeness of 5.2 ms on either of them."""
    found = copied(fleet_copy(tmp_path, {"hv1": 5.2, "hv2": 10.8}, by_host=True))
    random = {one.host: one for one in found.ways if one.access == "random"}
    assert {host: round(one.latency, 6) for host, one in random.items()} == {"hv1": 0.0052, "hv2": 0.0108}
    assert {host: round(one.rate, 2) for host, one in random.items()} == {"hv1": 80.12, "hv2": 80.12}
    assert found.alike_on("hv1") == {"load": ["random"]} and found.alike_on("hv2") == {"load": []}
    assert not found.is_likeness
    assert {one.host for one in found.answers} == {"hv1"}
    text = " ".join(copied_text(found, 120).split())
    assert "the copy on hv1 is like the recording" in text and "the copy on hv2 is no likeness of the recording" in text
    assert "answer: hv1, random, cache-writeback, reads" in text


@pytest.mark.parametrize(("other", "answers"), [(5.2, {"random"}), (10.8, set())])
def test_an_answer_over_several_hosts_takes_a_likeness_on_each(tmp_path: Path, other: float, answers: set[str]) -> None:
    found = copied(fleet_copy(tmp_path, {"hv1": 5.2, "hv2": other}, by_host=False))
    assert [one.host for one in found.ways] == ["hv1"] * 3 + ["hv2"] * 3
    assert {one.access for one in found.answers} == answers


def test_each_phase_is_held_against_its_own_part(tmp_path: Path) -> None:
    copy(tmp_path, {"phase-1": DAY, "phase-2": BOTH})
    found = copied(tmp_path / RUN / "run.sqlite")
    # The copy reads 80 blocks a second in both, and phase 2 had 12.
    assert found.alike == {"phase-1": ["random"], "phase-2": []}
    assert not found.is_likeness
    # What phase 1 had no writes of, fio only does as it cannot do nothing.
    assert {(one.phase, one.way) for one in found.answers} == {("phase-1", "reads")}
    writes = [one for one in found.ways if (one.phase, one.access, one.way) == ("phase-2", "random", "writes")]
    assert [one.alike for one in writes] == [True]


def test_a_load_with_flushes_has_answers_and_no_change_follows(tmp_path: Path) -> None:
    """What a commit takes is in the flush, and a better latency of writes need not be a faster VM."""
    copy(tmp_path, {"load": {**DAY, "flushes": "10/s", "writes": BOTH["writes"]}}, rate=80.12)
    found = copied(tmp_path / RUN / "run.sqlite")
    assert found.answers and any(one.difference.better for one in found.answers)
    assert found.better == []
    text = " ".join(copied_text(found, 120).split())
    assert "no change follows from it: the load has flushes" in text and "virsh" not in text
    body = copied_document(found)["copied"]
    assert body["changes"] == [] and [f"no change follows from it: {one}" in text for one in body["reasons"]] == [True]


@pytest.mark.parametrize("said", [{"flushes_known": False}, {"seen_by": "process"}])
@pytest.mark.parametrize(("writes", "changes"), [({"writes": BOTH["writes"]}, []), ({}, ["cache-writeback"])])
def test_flushes_that_were_not_counted_are_not_taken_for_none(
    tmp_path: Path, said: dict[str, Any], writes: dict[str, Any], changes: list[str]
) -> None:
    """A load of reads alone has nothing to flush. Scenarios of older versions only say that no libvirt told of it."""
    copy(tmp_path, {"load": {**DAY, **writes}})
    found = copied(tmp_path / RUN / "run.sqlite")
    assert found.flushes_known and found.better == ["cache-writeback"]
    found = replace(found, recorded=found.recorded.model_copy(update=said))
    assert found.answers and found.better == changes
    body = copied_document(found)["copied"]
    assert body["flushes_known"] is False and [one["setting"] for one in body["changes"]] == changes
    text = " ".join(copied_text(found, 120).split())
    assert ("no change follows from it: how often the guest flushes is not known" in text) is not bool(changes)
    assert ("to change it" in text) is bool(changes)


def test_cells_that_leave_too_few_readings_can_be_measured_again(tmp_path: Path) -> None:
    copy(tmp_path, {"load": DAY}, lost=range(5, 99))
    found = copied(tmp_path / RUN / "run.sqlite")
    assert found.answers and found.lost
    (reason,) = copied_document(found)["copied"]["reasons"]
    measures = f"`vmlab resume {RUN} --invalid` measures again, for enough readings"
    assert reason == f"{found.lost} cells without a result: {measures}"
    assert reason in " ".join(copied_text(found, 200).split())


def test_lost_cells_that_are_not_needed_are_no_reason(tmp_path: Path) -> None:
    copy(tmp_path, {"load": DAY}, lost={1})
    assert copied(tmp_path / RUN / "run.sqlite").reasons == []


def test_what_is_worse_in_one_answer_is_no_change(like: Path) -> None:
    found = copied(like)
    assert found.better == ["cache-writeback"]
    (latency,) = [one for one in found.answers if one.metric == "latency_mean"]
    # Another way of it got worse.
    worse = replace(latency, difference=replace(latency.difference, better=False))
    assert replace(found, answers=(latency, worse)).better == []
    paced = replace(latency, metric="iops")
    assert replace(found, answers=(paced,)).better == [], "the rate was set, and not the disk's"


def test_reads_in_the_page_cache_decide_and_a_cold_one_is_said(tmp_path: Path) -> None:
    copy(tmp_path, {"load": DAY}, cold_ms=5.6)
    found = copied(tmp_path / RUN / "run.sqlite")
    assert found.alike == {"load": ["cached", "random"]} and found.better == ["cache-writeback"]
    (cold,) = changes_of(found)[0].cold
    assert (cold.access, cold.way) == ("random", "reads") and cold.difference.percent == pytest.approx(12)
    text = " ".join(copied_text(found, 120).split())
    assert "answer: cached, cache-writeback, reads: latency mean -80.0 %" in text
    assert (
        "it counts on the VM reading the same blocks again, and on host memory for them; else: random, "
        "cache-writeback, reads: latency mean +12.0 %" in text
    )
    worse = replace(cold, way="writes")
    assert replace(found, answers=(*found.answers, worse)).better == [], "no page cache excuses a slower write"
    cached = next(one for one in found.answers if one.access == "cached" and one.metric == "latency_mean")
    assert replace(found, answers=(replace(cached, metric="iops"), cold)).better == []


def test_cells_of_another_axis_are_not_the_recorded_settings(like: Path) -> None:
    with RunReader(like) as reader:
        document = run_document(reader)
        cells = [replace(cell, axes={**cell.axes, "cache": "none"}) for cell in document.cells]
        found = copied_of(reader, replace(document, cells=cells))
    assert found is not None and found.ways == () and not found.is_likeness
    assert copied_document(found)["copied"]["reasons"] == ["no cell under the recorded settings has passed"]


def test_a_guest_without_libvirt_is_changed_by_the_options_of_its_qemu(like: Path) -> None:
    found = copied(like)
    seen = found.recorded.model_copy(update={"seen_by": "process", "disk": "scsi0"})
    text = " ".join(copied_text(replace(found, recorded=seen), 120).split())
    assert (
        "to change it: give the -drive of disk scsi0 cache=writeback,aio=threads, or its -blockdev "
        "cache.direct=off,cache.no-flush=off,aio=threads and its -device write-cache=on; with Proxmox VE, qm set gives "
        "the disk cache=writeback,aio=threads" in text
    )
    assert "virsh" not in text


def ask(store: Path, *sets: str) -> None:
    """Let the run have been started with these assignments."""
    request = json.dumps({"overrides": {"variables": {}, "sets": sets}})
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE documents SET body = ? WHERE name = 'request'", (request,))


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("guests.vm.data_cache=writeback", "guests.vm.data_cache=writeback"),
        ("@more.yaml:2:3: workloads.reads.rate=5/s", "workloads.reads.rate=5/s"),
    ],
)
def test_other_settings_of_the_command_line_are_no_likeness(like: Path, asked: str, shown: str) -> None:
    ask(like, "repeats=2", asked)
    found = copied(like)
    assert (found.others, found.ways, found.answers, found.is_likeness) == ((shown,), (), (), False)
    text = " ".join(copied_text(found, 200).split())
    assert f"answer: none, as the run has other settings (--set {shown})" in text and "virsh" not in text
    assert copied_document(found)["copied"]["reasons"] == [f"the run has other settings (--set {shown})"]
    ask(like, "repeats=2", "limits.start_skew=1 s")
    assert copied(like).is_likeness


def test_a_name_of_a_domain_is_one_word_of_the_command(like: Path) -> None:
    found = copied(like)
    named = found.recorded.model_copy(update={"domain": "a b; reboot"})
    assert "virsh edit 'a b; reboot', and" in " ".join(copied_text(replace(found, recorded=named), 120).split())


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("writeback", "none", ["page cache"]),
        ("none", "writeback", ["not flushed"]),
        ("directsync", "none", ["once the guest has flushed"]),
        ("writethrough", "none", ["page cache", "once the guest has flushed"]),
        ("directsync", "writeback", ["once the guest has flushed", "not flushed"]),
        ("none", "directsync", []),
    ],
)
def test_what_is_lost_depends_on_the_mode_of_before(before: CacheMode, after: CacheMode, words: list[str]) -> None:
    lost = list(lost_words(before, after))
    assert len(lost) == len(words) and all(word in line for word, line in zip(words, lost, strict=True))


def test_a_rate_of_a_few_requests_is_no_better_than_one_of_them() -> None:
    def slow(rate: float) -> bool:
        bound = rate_bound(0.2, 20, at_random=False)
        return LikeWay("load", "random", "reads", 0.2, rate, 0.01, 0.01, 20, bound).alike

    assert slow(0.25) and slow(0.16) and not slow(0.3)


@pytest.mark.parametrize("rate", [10.0, 500.0])
def test_a_number_of_requests_that_come_at_random_has_a_standard_error(rate: float) -> None:
    """That of Poisson's distribution, the root of the number, is held against numbers that are drawn."""
    draws = np.random.default_rng(7).poisson(rate * 35, 10_000) / 35
    within = np.abs(draws - rate) <= rate_bound(rate, 35, at_random=True)
    assert within.mean() > 0.996
    assert rate_bound(rate, 35, at_random=False) == pytest.approx(rate / 10)
    assert rate_bound(500.0, 35, at_random=True) == pytest.approx(50.0)
