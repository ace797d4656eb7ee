"""Commands over a fleet from their first word to what they print, over hosts without SSH and without guests."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner

import vmlab
from tests.fakes.suites import unixbench_at
from tests.fleet.faked_controller import FLEET
from tests.fleet.local_hosts import SCENARIO, SUITE, LocalFleet
from tests.fleet.test_together import LOADED
from tests.lab.faked import ROOT
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.cli.commands import hosts_commands
from vmlab.cli.main import cli
from vmlab.fleet import starting
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.places import runs_folder
from vmlab.store.reader import RunReader

LOAD = {"hv1": {"none": 0.1}, "hv2": {"none": 0.3}}
"""Seconds of latency that each further tile costs there; targets ask for half a second."""


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalFleet]:
    """Hosts that are ready, and the folders of their controller."""

    async def ready(*_: object) -> None:
        """As hosts say that are; what they are asked has its own tests."""

    with TemporaryDirectory(prefix="vf-", dir="/var/tmp") as place:
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.setenv(name, f"{place}/controller/{name}")
        monkeypatch.setenv("VMLAB_RUNTIME_DIR", f"{place}/controller/run")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setenv(FLEET, json.dumps({"place": place, "load": LOAD, "hidden": {"hv2": f"{place}/suites"}}))
        monkeypatch.setattr(starting, "CONTROLLER", "tests.fleet.faked_controller")
        monkeypatch.setattr(hosts_commands, "demand_ready", ready)
        found = LocalFleet.at(Path(place))
        (Path(place) / "loaded.yaml").write_text(LOADED)
        (Path(place) / "suite.yaml").write_text(SUITE)
        (Path(place) / "suites").mkdir()
        yield found
        for host in found.hosts.values():
            host.end()


def test_a_climb_over_a_fleet_prints_its_answer(fleet: LocalFleet) -> None:
    """Two runs, started together on both hosts: the first carries two tiles at least, the second one."""
    scenario = fleet.folder.parent / "loaded.yaml"
    words = ["scale", str(scenario), "--max-tiles", "2", "--hosts", "hv1,hv2", "--together", "--json"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["scale"]["stopped_by"] == "max tiles"
    places = {place["axes"]["host"]: place for place in document["places"]}
    assert {name: place["tiles"] for name, place in places.items()} == {"all": 1, "hv1": 2, "hv2": 1}
    assert [step["run"] for step in places["all"]["steps"]] == document["scale"]["runs"]
    assert document["scale"]["sentence"].startswith("the fleet carries 1 tile on every host at once")


def test_a_run_over_a_fleet_has_the_users_own_suite(fleet: LocalFleet) -> None:
    """The first host has it where the user named it, the second one is sent it; nothing is left on either."""
    place = fleet.folder.parent
    suite = unixbench_at(place / "suites")
    words = ["run", str(place / "suite.yaml"), "--hosts", "hv1,hv2", "--asset", f"unixbench={suite}", "--verbose"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.stderr
    assert all(name in done.stdout for name in ("hv1", "hv2"))
    assert "asset unixbench is sent to host hv2" in done.stderr
    assert "is sent to host hv1" not in done.stderr
    assert not any(host.records() for host in fleet.hosts.values())
    (folder,) = runs_folder().iterdir()
    assert not (folder / "disks").exists()
    assert len(document_of(folder).run.assets["unixbench"]) == 64


def test_a_program_has_a_run_go_on_whose_controller_was_killed(fleet: LocalFleet) -> None:
    (fleet.folder.parent / "probe.yaml").write_text(SCENARIO)
    words = ["run", str(fleet.folder.parent / "probe.yaml"), "--repeats", "8", "--hosts", "hv1,hv2", "--detach"]
    started = CliRunner().invoke(cli, words)
    assert started.exit_code == 0, started.stderr
    killed = vmlab.attach_run()
    for event in killed:
        if event.kind == "CellEnded" and killed.cells_ended == 1:
            with pytest.raises(vmlab.VmlabError, match="is under way"):
                vmlab.resume_run(killed.id)
            controller = RunFolder.of(killed.id).process("launcher_pid")
            assert controller is not None
            os.kill(controller, signal.SIGKILL)
    assert killed.outcome == "aborted" and killed.cells_ended < killed.cells_planned == 32
    assert vmlab.resume_run(killed.id) == killed.id == started.stdout.strip()
    resumed = vmlab.attach_run()
    assert [event.kind for event in resumed][-1] == "RunEnded"
    assert (resumed.outcome, resumed.cells_ended) == ("passed", 32)
    with pytest.raises(vmlab.VmlabError, match="has ended"):
        vmlab.resume_run(killed.id)


def document_of(folder: Path) -> RunDocument:
    """What the controller has of a run."""
    with RunReader(folder / "run.sqlite") as reader:
        return run_document(reader)
