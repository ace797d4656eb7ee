"""Assets of a run: recorded with their digests, and given to what stages a workload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell
from vmlab.analysis.document import run_document
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.lab.process import launcher
from vmlab.lab.process.prepared import RunRequest, plan_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.snapshot_provider import prepare_alone
from vmlab.model.asset import Asset
from vmlab.plan.terms import HostFacts, Overrides
from vmlab.store.reader import RunReader
from vmlab.workloads.suites.unixbench import Unixbench, UnixbenchParams
from vmlab.workloads.workload_steps import StagingContext, WorkloadContext

ASSET = Asset("unixbench", "/opt/unixbench", "5" * 64, 1000)
HOST = HostFacts(2**36, 2**36, 2**40, 2, "tcg", assets={"unixbench": ASSET})
SCENARIO = """\
name: trial
guests: {vm: {memory: 512 MiB}}
workloads: {ub: {kind: unixbench, on: vm}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that was asked for with an asset."""
    folder = RunFolder("20261122-100000-trial-0000", tmp_path / "20261122-100000-trial-0000")
    folder.path.mkdir()
    overrides = Overrides(size="full", assets=("unixbench=/opt/unixbench",))
    write_request(folder, RunRequest(folder.id, "x.yaml", overrides, 1), SCENARIO, HOST)
    return folder


def test_a_run_has_the_digests_of_its_assets(folder: RunFolder) -> None:
    launcher.begin(folder, plan_of(folder))
    with RunReader(folder.store) as reader:
        assert run_document(reader).run.assets == {"unixbench": ASSET.sha256}


async def test_a_workload_is_staged_with_its_asset(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[StagingContext] = []

    async def stage(_self: Unixbench, context: StagingContext) -> None:
        staged.append(context)

    monkeypatch.setattr(Unixbench, "stage", stage)
    (cell,) = plan_of(folder).cells
    shell = FakeShell("vm", "198.18.1.10")
    await prepare_alone(shell, cell, replace(cell.guests[0], roles=()), 1, 1.0)
    (plan,) = cell.workloads
    context = WorkloadContext(workload="ub", tile=1, cell=1, seed=1, source=shell)
    await WorkloadInstance(1, plan, Unixbench(UnixbenchParams()), context, lambda _event: None).stage()
    assert [one.asset for one in staged] == [ASSET, ASSET]
