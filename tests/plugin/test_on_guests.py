"""The template's workload on a real guest: its figures are wherever vmlab's own are, and a broken one fails alone."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from tests.e2e.conftest import VMLAB, Home
from tests.plugin.conftest import ROOT, TEMPLATE, Packages

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]

SCENARIO = str(TEMPLATE / "compress.yaml")
CRASH = """
from vmlab.plugin.v1.workload import Collected, Finished, WorkloadContext
from vmlab_compress.compress import Compress
class Crash(Compress):
    kind = "crash"
    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        return {}["nothing"]
"""


@pytest.fixture
def installed(home: Home, template: Packages, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home in which the program finds the template."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{template.folder}")
    yield home


def test_its_figures_go_through_tables_comparison_report_and_export(installed: Home, tmp_path: Path) -> None:
    done = installed.vmlab("run", SCENARIO, "--size", "smoke", "--repeats", "1", "--allow-noise")
    assert done.returncode == 0, done.stderr
    document = installed.show()
    assert document["run"]["host"]["plugins"] == {"vmlab-compress": "1.0"}
    figures = {}
    for cell in document["cells"]:
        found = {one["metric"]: one["value"] for one in cell["measurements"] if one["workload"] == "pack"}
        assert found["bytes"] == 4e6 and 5 < found["packed_share"] < 60
        assert found["compressed_per_second"] * found["run_time"] == pytest.approx(4e6)
        assert cell["host"]["interrupts_per_second"]["mean"] > 10
        figures[cell["axes"]["level"]] = found
    assert figures.keys() == {1, 9}
    assert figures[9]["packed_share"] < figures[1]["packed_share"] and figures[9]["run_time"] > figures[1]["run_time"]

    shown = installed.vmlab("show", "last").stdout
    assert "\ninterrupts 1/s " in shown and "\npack " in shown
    compared = installed.vmlab("compare", "last", "--json")
    assert compared.returncode == 0, compared.stderr
    rows = [one for one in json.loads(compared.stdout)["rows"] if one["metric"] == "packed_share"]
    (row,) = (one for one in rows if one["workload"] == "pack")
    assert row["more_is_better"] is False
    assert row["baseline"]["mean"] == pytest.approx(figures[1]["packed_share"])
    assert row["candidates"][0]["mean"] == pytest.approx(figures[9]["packed_share"])

    page = tmp_path / "run.html"
    assert installed.vmlab("report", "last", "-o", str(page)).returncode == 0
    assert "interrupts" in page.read_text() and "compressed_per_second" in page.read_text()

    names = {}
    for name in ("run.csv", "run.prom", "run.lp"):
        file = tmp_path / name
        assert installed.vmlab("export", "last", "-o", str(file)).returncode == 0
        names[name] = file.read_text()
    table = polars.read_csv(tmp_path / "run.csv").filter(polars.col("metric") == "compressed_per_second")
    assert sorted(table["value"]) == sorted(one["compressed_per_second"] for one in figures.values())
    assert names["run.prom"].count("\nvmlab_compressed_per_second_bytes_per_second{") == 2
    assert names["run.lp"].count("metric=compressed_per_second") == 2

    # Where the package is not installed, the run is still read.
    environment = {**installed.environment, "PYTHONPATH": str(ROOT)}
    for words in (["show", "last"], ["compare", "last"], ["report", "last", "-o", str(page)]):
        alone = subprocess.run([*VMLAB, *words], env=environment, capture_output=True, text=True)
        assert alone.returncode == 0, alone.stderr


def test_one_that_raises_what_nobody_expects_fails_alone(installed: Home, packages: Packages) -> None:
    packages.add("vmlab-crash", {"vmlab.workloads": {"crash": "crash_kind:Crash"}}, crash_kind=CRASH)
    os.environ["PYTHONPATH"] += f"{os.pathsep}{packages.folder}"
    file = packages.state / "both.yaml"
    file.write_text(
        "name: both\nguests: {one: {memory: 512 MiB}}\nallow: {noise: true}\nworkloads:\n"
        "  pack: {kind: compress, on: one, bytes: 1 MB}\n  crash: {kind: crash, on: one, bytes: 1 MB}\n"
    )
    done = installed.vmlab("run", str(file))
    assert done.returncode == 1, done.stderr
    (cell,) = installed.show()["cells"]
    why = "workload crash of vmlab-crash 1.0: collect failed: KeyError: 'nothing'"
    assert {one["workload"]: one["outcome"] for one in cell["workloads"]} == {"pack": "passed", "crash": "failed"}
    assert cell["outcome"] == "failed" and any(why in reason for reason in cell["reasons"]), cell["reasons"]
    assert {one["metric"] for one in cell["measurements"] if one["workload"] == "pack"} >= {"run_time", "packed_share"}
    assert "Traceback" not in done.stderr
    assert (installed.processes(), installed.leftovers()) == ([], [])
