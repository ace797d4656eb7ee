"""Assets in a plan: given on the command line, checked before anything starts, part of what a snapshot fits."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from vmlab.cli.main import command_line
from vmlab.lab.process.prepared import host_of
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.snapshot_provider import preparation_of
from vmlab.model.asset import Asset
from vmlab.model.errors import RefusedError, UsageError
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan

HOST = HostFacts(2**36, 2**36, 2**40, 2, "tcg", assets={})
ASSET = Asset("unixbench", "/opt/unixbench", "5" * 64, 1000)
SCENARIO = """\
name: trial
guests:
  vm: {memory: 512 MiB}
workloads:
  ub: {kind: unixbench, on: vm, tests: [dhry2reg]}
"""


def planned(host: HostFacts, text: str = SCENARIO) -> Plan:
    return make_plan(read(Path("x.yaml"), text), Overrides(size="full"), host)


def test_a_missing_asset_is_refused_in_one_line() -> None:
    with pytest.raises(RefusedError) as caught:
        check_fit(planned(HOST), HOST)
    (line,) = caught.value.lines()
    assert line.startswith("workload ub needs your own copy of unixbench: the folder of UnixBench's source")
    assert caught.value.remedy == "--asset unixbench=PATH"


def test_a_given_asset_goes_to_its_workload() -> None:
    host = replace(HOST, assets={"unixbench": ASSET})
    plan = planned(host)
    check_fit(plan, host)
    assert plan.cells[0].workloads[0].asset == ASSET and plan.assets == {"unixbench": ASSET}


def test_an_asset_that_nothing_needs_is_a_mistake() -> None:
    host = replace(HOST, assets={"unixbench": ASSET, "specjvm2008": replace(ASSET, name="specjvm2008")})
    with pytest.raises(UsageError, match="--asset specjvm2008 is given, and no workload of trial needs it"):
        check_fit(planned(host), host)


def test_without_a_host_no_asset_is_asked_for() -> None:
    host = replace(HOST, assets=None)
    check_fit(planned(host), host)


def test_another_copy_makes_another_snapshot() -> None:
    def staged(asset: Asset | None) -> object:
        host = replace(HOST, assets={} if asset is None else {"unixbench": asset})
        (cell,) = planned(host).cells
        return preparation_of(cell, cell.guests[0], 1)["stages"]

    assert staged(ASSET) == staged(replace(ASSET, path="/elsewhere"))
    assert staged(ASSET) != staged(replace(ASSET, sha256="6" * 64))


def test_a_run_finds_its_assets_again(tmp_path: Path) -> None:
    host = replace(HOST, assets={"unixbench": ASSET})
    (tmp_path / "host.json").write_text(json.dumps(asdict(host)))
    assert host_of(RunFolder("x", tmp_path)) == host


def test_the_command_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_text(SCENARIO)
    assert command_line(["plan", str(tmp_path / "x.yaml")]) == 3
    assert "needs your own copy of unixbench" in capsys.readouterr().err
    assert command_line(["plan", str(tmp_path / "x.yaml"), "--asset", f"unixbench={tmp_path}"]) == 3
    (line,) = capsys.readouterr().err.splitlines()[:1]
    assert "has no Run" in line
    assert command_line(["plan", str(tmp_path / "x.yaml"), "--asset", "tile=x"]) == 2
