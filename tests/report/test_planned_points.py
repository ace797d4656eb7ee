"""Named points, axes that they leave out, and absent ones: from the plan over the store to one right table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.plan.test_planning import plan
from tests.report.told import BUSY
from tests.store.stories import Story
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import AbsentDocument, RunDocument
from vmlab.model.jsonable import jsonable
from vmlab.plan.terms import CellPlan
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

GOLDEN = Path(__file__).parent / "golden"
SCENARIO = """\
name: disks
guests:
  vm: {vcpus: 4, memory: 512 MiB, data: 1 GiB}
workloads:
  job: {kind: fio, on: vm, rw: randread, size: 64 MiB}
axes:
  setup:
    points:
      windows: {absent: needs an image of your own}
      host: {workloads.job.on: host, without: cache}
      guest: {}
      four: {guests.vm.data_queues: 4}
  cache: [none, writeback]
  size: {points: {4k: {workloads.job.block: 4 KiB}, 1m: {workloads.job.block: 1 MiB}}}
"""
RATES = {"host": 1000.0, "guest": 500.0, "four": 800.0}
TABLES = {
    "absent-row": """\
table:
  columns: [cache, size]
  rows: setup
  metrics: [iops, latency_mean]
  relative: percent
  baseline: {setup: host}
""",
    "absent-column": "table: {columns: setup, rows: cache, metrics: iops, baseline: host}\n",
    "absent-block": "table: {columns: size, rows: cache, metrics: iops, relative: ratio, baseline: 4k}\n",
    "absent-default": "",
}


def _rate(cell: CellPlan) -> float:
    factor = 1.5 if cell.axes.get("cache") == "writeback" else 1.0
    return RATES[str(cell.axes["setup"])] * factor * (1.0 if cell.axes["size"] == "4k" else 0.1)


def _document(path: Path, table: str) -> RunDocument:
    made = plan(SCENARIO + table)
    story = Story(path).begin_plan(made)
    for cell in made.cells:
        story.start_plan_cell(cell)
        story.execute(10.0, [BUSY])
        story.measure("job", 10.0)
        story.measure("job", _rate(cell), "iops", "1/s")
        story.measure("job", 1 / _rate(cell), "latency_mean", "s")
        story.end_cell(wall=10.0)
    with RunReader(story.end()) as reader:
        return run_document(reader)


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_planned_points(name: str, tmp_path: Path) -> None:
    text = run_table(_document(tmp_path / "run.sqlite", TABLES[name]))
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("needs an image of your own") == 1
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("VMLAB_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


def test_the_document_has_cells_where_they_were_planned(tmp_path: Path) -> None:
    """A host without a cache stands under both cache modes, and is what guests of both are compared with."""
    document = _document(tmp_path / "run.sqlite", TABLES["absent-row"])
    assert document.run.absent == [AbsentDocument({"setup": "windows"}, "needs an image of your own")]
    assert [cell.axes for cell in document.cells[:3]] == [
        {"setup": "host", "size": "4k"},
        {"setup": "host", "size": "1m"},
        {"setup": "guest", "cache": "none", "size": "4k"},
    ]
    assert document.cells[2].settings["workloads"]["job"]["params"]["block"] == 4096
    (table,) = jsonable(document.tables)
    assert [(row["head"]["setup"], row["absent"]) for row in table["rows"]] == [
        ("windows", "needs an image of your own"),
        ("host", None),
        ("guest", None),
        ("four", None),
    ]
    heads = [(head["cache"], head["size"], head["metrics"]) for head in table["columns"]]
    figures = dict(zip(heads, table["rows"][1]["entries"], strict=True))
    assert figures["none", "4k", "iops"]["mean"] == figures["writeback", "4k", "iops"]["mean"] == 1000.0
    percents = dict(zip(heads, (entry["relative"] for entry in table["rows"][2]["entries"]), strict=True))
    assert percents["none", "4k", "iops"] == pytest.approx(50.0)
    assert percents["writeback", "1m", "iops"] == pytest.approx(75.0)
    assert percents["writeback", "1m", "latency_mean"] == pytest.approx(75.0)
    assert all(entry["mean"] is None for entry in table["rows"][0]["entries"])
