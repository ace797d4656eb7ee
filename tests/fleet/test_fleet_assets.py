"""Copies of suites over a fleet: sent once to each host that has none, checked there, and gone with its run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.suites import unixbench_at
from tests.fleet.local_hosts import SCENARIO, SUITE, LocalFleet, LocalHost, events_of
from tests.waiting import until
from vmlab.analysis.document import run_document
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.cli.main import cli
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import VmlabError
from vmlab.model.event import (
    CellWithdrawn,
    HostLeftOut,
    Notice,
)
from vmlab.model.run import Outcome
from vmlab.store.reader import RunReader
from vmlab.workloads.assets import read_assets


@pytest.fixture
def suite(fleet: LocalFleet) -> Path:
    """A copy that hv1 has too, where the controller has it; hv2 and hv3 have no such folder."""
    place = fleet.folder / "suites"
    place.mkdir()
    for name in ("hv2", "hv3"):
        fleet.hosts[name].hidden = place
    return unixbench_at(place)


def _prepared(fleet: LocalFleet, suite: Path) -> RunFolder:
    return fleet.prepared(text=SUITE, assets=(f"unixbench={suite}",))


def _sent(folder: RunFolder) -> Counter[str]:
    """How often a copy was sent to each host."""
    texts = [event.text for event in events_of(folder) if isinstance(event, Notice)]
    return Counter(text.rpartition(" ")[2] for text in texts if text.startswith("asset unixbench is sent to host"))


def _kept(host: LocalHost) -> list[str]:
    place = host.folder / "cache/vmlab/assets"
    return [path.name for path in place.iterdir() if path.name != ".locks"] if place.is_dir() else []


def _outcomes(folder: RunFolder) -> Counter[str]:
    return Counter(cell.told.outcome for cell in RunTimeline.of(events_of(folder)).cells.values() if cell.ended)


async def test_a_copy_goes_once_to_each_host_that_has_none(fleet: LocalFleet, suite: Path) -> None:
    """It is there while the host's run goes on, and not afterwards; a copy of the host's own stays as it is."""
    fleet.hosts["hv2"].seconds = 2.0
    sha256 = read_assets([f"unixbench={suite}"])["unixbench"].sha256
    before = sorted(suite.rglob("*"))
    folder = _prepared(fleet, suite)
    async with fleet.under_way(folder) as run:
        await until(fleet.hosts["hv2"].in_a_cell, "a cell on hv2", run=run)
        assert _kept(fleet.hosts["hv2"]) == [f"unixbench-{sha256}"]
        (started,) = fleet.hosts["hv2"].events("RunStarted")
        assert started["assets"] == {"unixbench": sha256}
        verdict = await run
    assert verdict.outcome is Outcome.PASSED, verdict
    assert _outcomes(folder) == {"passed": 6}
    assert _sent(folder) == {"hv2": 1, "hv3": 1}
    assert [_kept(host) for host in fleet.hosts.values()] == [[], [], []]
    assert sorted(suite.rglob("*")) == before
    with RunReader(folder.store) as reader:
        assert run_document(reader).run.assets == {"unixbench": sha256}
    assert sweep_run(folder) == []
    assert not folder.disks.exists()


async def test_a_line_that_is_cut_meanwhile_is_tried_once_more(fleet: LocalFleet, suite: Path) -> None:
    """Half a copy is none."""
    fleet.hosts["hv2"].spoil = [lambda data: data[: len(data) // 2]]
    folder = _prepared(fleet, suite)
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    assert _outcomes(folder) == {"passed": 6}
    assert _sent(folder) == {"hv2": 2, "hv3": 1}
    notices = [event.text for event in events_of(folder) if isinstance(event, Notice)]
    assert "host hv2 failed: host hv2: the line was cut; it is tried once more" in notices
    assert _kept(fleet.hosts["hv2"]) == []


async def test_a_changed_byte_leaves_the_host_out(fleet: LocalFleet, suite: Path) -> None:
    """With one line that says why; the others measure their cells."""

    def changed(data: bytes) -> bytes:
        place = data.index(b"src/dhry_1.c", 600)
        return data[:place] + b"S" + data[place + 1 :]

    fleet.hosts["hv3"].spoil = [changed]
    folder = _prepared(fleet, suite)
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.ABORTED
    assert _outcomes(folder) == {"passed": 4, "aborted": 2}
    (left_out,) = [event for event in events_of(folder) if isinstance(event, HostLeftOut)]
    assert left_out.name == "hv3"
    assert left_out.reason.startswith("host hv3 did not keep the asset: vmlab: asset unixbench ")
    assert "\n" not in left_out.reason
    assert _kept(fleet.hosts["hv3"]) == []


async def test_a_host_that_begins_anew_is_sent_it_again(fleet: LocalFleet, suite: Path) -> None:
    """What the run that was killed had is cleared first."""
    fleet.hosts["hv2"].seconds = 2.0
    folder = _prepared(fleet, suite)
    async with fleet.under_way(folder) as run:
        await until(fleet.hosts["hv2"].in_a_cell, "a cell on hv2", run=run)
        fleet.hosts["hv2"].kill_runner()
        verdict = await run
    assert verdict.outcome is Outcome.PASSED, verdict
    assert [event.name for event in events_of(folder) if isinstance(event, CellWithdrawn)] == ["hv2"]
    assert _sent(folder) == {"hv2": 2, "hv3": 1}
    assert _kept(fleet.hosts["hv2"]) == []


async def test_a_copy_that_changed_since_is_not_sent(fleet: LocalFleet, suite: Path) -> None:
    """Hosts that need it are left out, and the one line says so."""
    folder = _prepared(fleet, suite)
    (suite / "Run").write_text("quicker")
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.FAILED
    assert "is not what it was when the run began" in verdict.reason
    assert "\n" not in verdict.reason


@pytest.mark.parametrize(
    ("scenario", "options", "words"),
    [
        (SUITE, [], "workload ub needs your own copy of unixbench"),
        (SUITE, ["--asset", "unixbench=/not/there"], "asset unixbench: there is no /not/there"),
        (SUITE, ["--asset", "bonnie=/tmp"], "is not NAME=PATH"),
        (SCENARIO, ["--asset", "unixbench={suite}"], "no workload of probe needs it"),
    ],
)
def test_a_wrong_asset_is_one_line_before_any_host_is_asked(
    tmp_path: Path, scenario: str, options: list[str], words: str
) -> None:
    """These hosts do not exist."""
    (tmp_path / "probe.yaml").write_text(scenario)
    suite = str(unixbench_at(tmp_path))
    given = [word.replace("{suite}", suite) for word in options]
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "probe.yaml"), "--hosts", "hv1.invalid,hv2.invalid", *given])
    assert isinstance(done.exception, VmlabError)
    assert words in str(done.exception)
    assert len(str(done.exception).splitlines()) == 1
