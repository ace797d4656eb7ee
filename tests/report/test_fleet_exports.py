"""Exports of a fleet's run: every row, line and label has the host that it came from."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.fleet_store import HOSTS, fleet_store
from vmlab.report.exports.junit import write_junit
from vmlab.report.exports.openmetrics import write_measurements, write_samples
from vmlab.report.exports.perfkit import write_perfkit
from vmlab.report.exports.tidy import Exported, measurements, sampled
from vmlab.report.exports.tidy_tables import write_csv
from vmlab.store.reader import RunReader

HOST_OF = {1: "hv1", 2: "hv1", 3: "hv2", 4: "hv2"}
"""The cells that have figures."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Exported]:
    with RunReader(fleet_store(tmp_path / "run.sqlite", "20261125-120000-tile-f1ee")) as reader:
        yield Exported(reader)


def test_a_row_of_measurements_has_the_host_of_its_cell(run: Exported) -> None:
    file = io.BytesIO()
    write_csv(measurements(run), file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue().decode())))
    taken = {(int(row["cell"]), row["host"]) for row in rows if row["metric"] == "run_time" and row["value"]}
    assert taken == set(HOST_OF.items())
    assert all(row["kernel"] and row["accelerator"] == "tcg" for row in rows if row["host"])


def test_a_row_of_samples_has_the_host_that_took_it(run: Exported) -> None:
    table = sampled(run)
    host, cell = list(table.columns).index("host"), list(table.columns).index("cell")
    places = {(row[host], row[cell]) for row in table.rows}
    assert {name for name, _ in places} == set(HOSTS)
    assert {number: name for name, number in places if number in HOST_OF} == HOST_OF


def test_labels_have_the_host(run: Exported) -> None:
    for write in (write_measurements, write_samples):
        file = io.BytesIO()
        write([run], file)
        lines = [line for line in file.getvalue().decode().splitlines() if line[:1] != "#"]
        infos = [line for line in lines if line.startswith("vmlab_run_info")]
        assert [re.search(r'host="(.*?)"', line)[1] for line in infos] == list(HOSTS)  # type: ignore[index]
        of_cells = [line for line in lines if 'cell="' in line and not line.startswith("vmlab_run_info")]
        for line in of_cells:
            found = re.search(r'[{,]host="(.*?)"', line)
            number = int(re.search(r'cell="(\d+)"', line)[1])  # type: ignore[index]
            assert number not in HOST_OF or (found is not None and found[1] == HOST_OF[number]), line
        assert of_cells
        assert len({line.rpartition(" ")[0] if write is write_measurements else line for line in lines}) == len(lines)


def test_samples_of_perfkit_and_suites_of_junit_have_the_host(run: Exported) -> None:
    file = io.BytesIO()
    write_perfkit([run], file)
    lines = [json.loads(line)["metadata"] for line in file.getvalue().splitlines()]
    assert {(one["cell"], one["hypervisor"]) for one in lines if one["cell"] in HOST_OF} == set(HOST_OF.items())
    file = io.BytesIO()
    write_junit([run], file)
    suites = re.findall(r'<testsuite [^>]*id="(\d+)"[^>]*hostname="(.*?)"', file.getvalue().decode())
    assert {(int(number), host) for number, host in suites if int(number) in HOST_OF} == set(HOST_OF.items())
