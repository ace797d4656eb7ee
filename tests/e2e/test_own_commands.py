"""Commands of users on real guests: their figures go wherever all others go, and each fault fails alone in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Home

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]

ALIKE = """
guests: {vm: {memory: 512 MiB}}
limits: {clock_drift_percent: 100, start_skew: 5 s}
allow: {noise: true}
"""
SCENARIO = """
name: mine
workloads:
  mine:
    kind: command
    on: vm
    user: lab
    files: [./bench.sh]
    prepare: (until [ -e asked ]; do sleep 0.1; done; id -un >named; mv named answered; sleep 1000) & echo serving
    run: ./bench.sh 3
    expect: ^served by lab$
    rounds: 2
    metrics:
      hash_time: {find: "took ([0-9.]+) ms", unit: ms, better: lower}
      blocks: {json: .blocks}
      block_rate: {csv: rate, unit: 1/s, better: higher}
axes: {cache: [none, writeback]}
table: {columns: cache, rows: metrics, metrics: [run_time, hash_time]}
"""
BENCH = """#!/bin/sh
touch asked
until [ -e answered ]; do sleep 0.02; done
echo "served by $(cat answered)"
head -c "$1" /dev/zero | sha256sum >&2
echo "took 12.5 ms"
echo '{"blocks": 7}'
printf 'name,rate\\nall,250.5\\n'
"""
FAULTS = """
name: faults
workloads:
  failing: {kind: command, on: vm, run: "echo a; echo no room >&2; exit 3"}
  lacking: {kind: command, on: vm, run: "echo nothing", metrics: {rate: {find: "rate ([0-9]+)"}}}
  flood: {kind: command, on: vm, run: "yes | head -c 1G"}
  endless: {kind: command, on: vm, run: "echo begun; sleep infinity", timeout: 4 s}
  daemon: {kind: command, on: vm, run: "setsid sleep infinity & echo left"}
  unready: {kind: command, on: vm, run: "true", metrics: {n: {json: .n}}}
"""


def test_figures_of_a_command_go_where_all_others_go(home: Home, tmp_path: Path) -> None:
    (tmp_path / "bench.sh").write_text(BENCH)
    (tmp_path / "bench.sh").chmod(0o755)
    (tmp_path / "mine.yaml").write_text(SCENARIO + ALIKE)
    done = home.vmlab("run", str(tmp_path / "mine.yaml"))
    assert done.returncode == 0, done.stderr
    document = home.show()
    assert [cell["axes"]["cache"] for cell in document["cells"]] in (["none", "writeback"], ["writeback", "none"])
    for cell in document["cells"]:
        found = {one["metric"]: (one["value"], one["unit"]) for one in cell["measurements"]}
        seconds, rate = found.pop("run_time")[0], found.pop("rounds_per_second")[0]
        assert seconds * rate == pytest.approx(2)
        assert found == {"hash_time": (0.0125, "s"), "blocks": (7.0, "1"), "block_rate": (250.5, "1/s")}
        (sent,) = cell["settings"]["workloads"]["mine"]["params"]["files"]
        assert (sent["path"], len(sent["sha256"])) == ("./bench.sh", 64)
        assert {one["metric"]: one["more_is_better"] for one in cell["over_tiles"]} == {
            "run_time": False,
            "rounds_per_second": True,
            "hash_time": False,
            "blocks": None,
            "block_rate": True,
        }
    assert "hash time (ms)" in done.stdout
    assert "took 12.5 ms" in home.vmlab("show", "last:1", "--raw").stdout
    again = json.loads(home.vmlab("reparse", "last", "--json").stdout)
    assert (again["workloads_read"], again["changes"], again["problems"]) == (2, [], [])
    compared = home.vmlab("compare", "last", "--fail-if", "mine.block_rate < -5 %", "--lenient", "--json")
    rows = {one["metric"]: one for one in json.loads(compared.stdout)["rows"]}
    assert rows["block_rate"]["more_is_better"] is True
    page = tmp_path / "run.html"
    assert home.vmlab("report", "last", "-o", str(page)).returncode == 0
    assert "block_rate" in page.read_text()


def test_each_fault_of_a_command_is_one_line_and_fails_alone(home: Home, tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text(FAULTS + ALIKE)
    done = home.vmlab("run", str(tmp_path / "faults.yaml"))
    assert done.returncode == 1, done.stderr
    (cell,) = home.show()["cells"]
    # In a slow guest the daemon still has the name of what starts it.
    reasons = {one["workload"]: one["reason"].replace("(setsid)", "(sleep)") for one in cell["workloads"]}
    assert reasons == {
        "failing": "the command exited with 3; its last output: no room",
        "lacking": "metric rate: nothing in the output matches 'rate ([0-9]+)'; its last output: nothing",
        "flood": "the command printed more than 4 MiB, and was ended; write what is no result to a file",
        "endless": "the command took longer than its timeout of 4.0 s, and was ended; its last output: begun",
        "daemon": "the command left processes running (sleep), which were ended; servers are started in prepare, and "
        "all else is waited for",
        "unready": "metric n: the command should print a JSON document, but printed nothing",
    }
    assert cell["measurements"] == []
    assert (home.processes(), home.leftovers()) == ([], [])
