"""The document of a run, from real events in a real store."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.report.told import TOLD
from tests.store.stories import HOST, Story
from vmlab.analysis.cell_shape import WorkloadDocument
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.over_tiles import Directions, over_tiles
from vmlab.analysis.shape import AbsentDocument, RunDocument
from vmlab.model.errors import StoreError
from vmlab.model.jsonable import jsonable
from vmlab.model.results import Measurement
from vmlab.report.run.cell_text import cell_text
from vmlab.store.reader import RunReader
from vmlab.workloads.kinds.command import Command
from vmlab.workloads.metrics import Metric


def _document(path: Path) -> RunDocument:
    with RunReader(path) as reader:
        document = run_document(reader)
    json.dumps(jsonable(document), allow_nan=False)
    return document


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "run" / "run.sqlite").begin({"tiles": [2], "cache": ["none", "writeback"]})


def test_the_run_has_what_other_programs_rely_on(story: Story) -> None:
    story.note("memory is overcommitted")
    run = _document(story.end("failed", 1, "cell 1 failed")).run
    assert (run.id, run.scenario, run.size, run.outcome) == (story.run, "tile", "smoke", "failed")
    assert (run.started, run.accelerator, run.seed) == ("2026-11-21T14:30:00.000+00:00", "tcg", 1)
    assert run.ended == "2026-11-21T14:30:03.000+00:00"
    assert (run.host, run.exit_code, run.reason) == (HOST, 1, "cell 1 failed")
    assert run.axes["cache"].values == ["none", "writeback"]
    assert run.table is not None
    promised = {"columns": "cache", "rows": "workloads", "baseline": None}
    assert promised.items() <= jsonable(run.table).items()
    assert run.notices == ["memory is overcommitted"]


def test_a_cell_has_what_other_programs_rely_on(story: Story) -> None:
    story.start_cell({"tiles": 2, "cache": "none"}, guests=8)
    story.prove(o_direct=True, expected="none")
    story.execute(10.0, [{"cpu_user_percent": 50.0, "memory_used_bytes": 2e9}] * 4)
    for tile, seconds in ((1, 30.0), (2, 34.0)):
        story.measure("filecopy", seconds, tile=tile)
        story.measure("filecopy", 100.0 * tile, "throughput", "B/s", tile)
        story.measure("filecopy", float(tile), "files", "1", tile)
    story.end_cell("invalid", ["clients started 700 ms apart"], wall=34.5)
    (cell,) = _document(story.end("invalid", 4)).cells
    assert (cell.axes, cell.repeat) == ({"tiles": 2, "cache": "none"}, 1)
    assert (cell.outcome, cell.reasons) == ("invalid", ["clients started 700 ms apart"])
    assert jsonable(cell.provision) == {"how": "cold", "seconds": 41.5, "guests": 8, "snapshots": {}}
    assert (cell.wall_seconds, cell.start_skew_ms) == (34.5, 3.25)
    assert jsonable(cell.measurements[0]) == {
        "workload": "filecopy",
        "tile": 1,
        "guest": "filecopy-client",
        "metric": "run_time",
        "value": 30.0,
        "unit": "s",
    }
    worst = {over.metric: (over.mean, over.worst, over.tiles) for over in cell.over_tiles}
    assert worst == {"run_time": (32.0, 34.0, 2), "throughput": (150.0, 100.0, 2), "files": (1.5, None, 2)}
    assert jsonable(cell.host["cpu_user_percent"]) == {"mean": 50.0, "max": 50.0, "p95": 50.0, "area": 5.0}
    assert set(cell.host) == {"cpu_user_percent", "memory_used_bytes"}
    assert cell.cache_proof[0].o_direct is True
    assert cell.cache_proof[0].file == "/run/file-a.qcow2"


def test_what_networks_carried_stands_with_its_bounds(story: Story) -> None:
    story.start_cell({"cache": "none"})
    story.carry("tunnel", 9, least=10)
    story.carry("limit", 9, most=9, guest="t1-far", direction="to")
    story.end_cell()
    (cell,) = _document(story.end()).cells
    tunnel, limit = cell.network_proof
    assert jsonable(tunnel) == {
        "device": "tunnel",
        "guest": "",
        "direction": "both",
        "carried_bytes": 9,
        "least_bytes": 10,
        "most_bytes": None,
        "agrees": False,
    }
    assert (limit.guest, limit.direction, limit.most_bytes, limit.agrees) == ("t1-far", "to", 9, True)


def test_what_was_seen_in_a_guest_stands_together(story: Story) -> None:
    disk = {"device": "/dev/vdb", "bytes": 2**30, "queues": 2, "read_ahead_bytes": 2**17, "write_cache": True}
    boot = {"mode": "lab", "state": "running", "target": "vmlab.target", "units": ["vmlab.target"], "failed": []}
    story.start_cell({"tiles": 2, "cache": "none"})
    story.look_inside("vm", data_disk=disk)
    story.look_inside("plain", data_disk={"device": "/dev/vdb"})
    story.look_inside("vm", boot=boot)
    (cell,) = _document(story.end()).cells
    assert jsonable(cell.seen_in_guests) == [
        {"guest": "vm", "tile": 1, "boot": boot, "data_disk": disk},
        {"guest": "plain", "tile": 1, "boot": None, "data_disk": None},
    ]
    text = cell_text(_document(story.writer.path), cell)
    assert "vm of tile 1: boot lab, running in vmlab.target, 1 units active" in text
    assert "vm of tile 1: data disk /dev/vdb of 1 GiB, queues 2, read-ahead 128 KiB" in text


def test_a_cell_that_broke_off_is_aborted_with_what_was_measured(story: Story) -> None:
    story.start_cell({"tiles": 2, "cache": "none"})
    story.measure("web", 2.5)
    document = _document(story.close())
    (cell,) = document.cells
    assert (document.run.outcome, document.run.ended, cell.outcome) == ("aborted", None, "aborted")
    assert cell.wall_seconds is None
    assert jsonable(cell.provision) == {"how": None, "seconds": None, "guests": 4, "snapshots": {}}
    assert [taken.value for taken in cell.measurements] == [2.5]


def test_a_run_that_lives_is_running_and_so_is_its_open_cell(story: Story) -> None:
    story.cell({"tiles": 2, "cache": "none"}, {"web": 2.5}, wall=3.0)
    story.start_cell({"tiles": 2, "cache": "writeback"})
    descriptor = os.open(story.writer.path.parent / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    document = _document(story.writer.path)
    os.close(descriptor)
    assert document.run.outcome == "running"
    assert [cell.outcome for cell in document.cells] == ["passed", "running"]
    story.close()


def test_what_is_no_number_is_null(story: Story) -> None:
    story.start_cell({"tiles": 2, "cache": "none"})
    story.measure("web", math.nan)
    story.end_cell(wall=math.inf)
    (cell,) = _document(story.end()).cells
    assert (cell.measurements[0].value, cell.wall_seconds, cell.over_tiles) == (None, None, [])


def test_a_run_that_said_nothing_has_a_document(tmp_path: Path) -> None:
    document = _document(Story(tmp_path / "the-id" / "run.sqlite").close())
    assert (document.run.id, document.run.outcome, document.cells) == ("the-id", "aborted", [])


def test_a_scenario_that_is_no_json_is_one_line(story: Story) -> None:
    story.writer.document("scenario", "{half a")
    with pytest.raises(StoreError, match="the stored scenario is not JSON"), RunReader(story.end()) as reader:
        run_document(reader)


def test_points_are_spelt_out_and_absent_ones_have_their_reason(tmp_path: Path) -> None:
    document = _document(TOLD["points"](tmp_path / "run.sqlite"))
    assert document.run.axes["setup"].values == ["host", "guest", "windows"]
    assert document.run.absent == [AbsentDocument({"setup": "windows"}, "needs an image of your own")]
    host, guest, _ = document.cells
    assert (host.axes, host.settings["tiles"]) == ({"setup": "host"}, 1)
    assert guest.axes == {"setup": "guest", "cache": "none"}
    assert guest.settings["host"] == {"ksm": "off", "thp": "madvise", "read_ahead_bytes": 131072}


def test_a_record_of_before_has_no_settings_and_nothing_absent(story: Story) -> None:
    story.start_cell({"cache": "none"})
    document = _document(story.end())
    assert (document.run.absent, document.cells[0].settings) == ([], {})


def test_scores_have_what_other_programs_rely_on(tmp_path: Path) -> None:
    document = _document(TOLD["two-tiles"](tmp_path / "run.sqlite"))
    assert document.run.throughput == {}, "the story says nothing of kinds"
    scores = jsonable(document.scores)
    assert scores["share_percent"] == 10
    assert [place["axes"] for place in scores["places"]] == [{"cache": "none"}, {"cache": "writeback"}]
    row = scores["places"][0]["rows"][0]
    assert list(row) == [
        *("workload", "tiles", "tiles_before", "throughput", "efficiency", "gain_percent", "jain", "cv_percent"),
        *("worst_percent", "worst_tile", "together", "one_span"),
    ]
    assert (row["workload"], row["tiles"], row["tiles_before"], row["one_span"]) == ("filecopy", 2, 1, False)
    assert row["efficiency"]["mean"] == pytest.approx((1 + 1.1 / 1.2) / 2)
    assert row["efficiency"]["half_width_95"] is None and row["efficiency"]["count"] == 1
    together = scores["places"][0]["rows"][-1]
    assert (together["workload"], together["throughput"]) == (None, None)
    knee = scores["places"][0]["knee"]
    assert (knee["verdict"], knee["after_tiles"]) == ("cannot tell", None)
    assert _document(TOLD["tile"](tmp_path / "other" / "run.sqlite")).scores == {"share_percent": 10, "places": []}


def test_a_run_names_the_throughput_of_its_workloads(tmp_path: Path) -> None:
    kinds = {"database": {"kind": "oltp"}, "mail": {"kind": "smtp"}, "odd": {"kind": "unheard-of"}}
    story = Story(tmp_path / "run.sqlite").begin({"tiles": [1]}, said={"workloads": kinds})
    assert _document(story.end()).run.throughput == {"database": "transactions_per_second", "mail": "run_time"}


def test_rates_of_one_part_of_a_run_are_not_known_to_have_been_measured_together() -> None:
    measured: list[Measurement] = [
        Measurement(workload=name, tile=tile, guest="vm", metric=metric, value=5.0, unit=unit)
        for name, metric, unit in (("files", "put_block", "B/s"), ("files", "run_time", "s"), ("disk", "iops", "1/s"))
        for tile in (1, 2)
    ]
    ended: list[WorkloadDocument] = [
        WorkloadDocument(
            workload=name,
            tile=tile,
            guest="vm",
            outcome="passed",
            reason="",
            began=0.0,
            ended=8.0 + tile,
            speed_percent=None,
        )
        for name in ("files", "disk")
        for tile in (1, 2)
    ]
    directions = Directions({"files": "bonnie", "disk": "fio"})
    found = {one.metric: one.overlap for one in over_tiles(measured, ended, directions)}
    assert found == {"put_block": None, "run_time": 0.9, "iops": 0.9}
    alone = over_tiles(measured[:1], ended[:1], directions)
    assert alone[0].overlap == 1.0


def test_the_metrics_of_a_workload_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Mapping[str, Any]] = []

    def declared(params: Mapping[str, Any]) -> Mapping[str, Metric]:
        read.append(params)
        return Command.metrics

    monkeypatch.setattr(Command, "declared", declared)
    directions = Directions({"mine": "command"}, {"mine": {"run": "make"}})
    measured = [
        Measurement(workload="mine", tile=1, guest="vm", metric=metric, value=5.0, unit=unit)
        for metric, unit in (("run_time", "s"), ("rounds_per_second", "1/s"))
    ]
    for _ in range(3):
        assert [one.more_is_better for one in over_tiles(measured, [], directions)] == [False, True]
    assert read == [{"run": "make"}]
