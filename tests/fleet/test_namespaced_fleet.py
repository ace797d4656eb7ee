"""Fleets of real guests over real SSH: hosts in namespaces of this machine (`make test-fleet`)."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import rmtree

import pytest

from tests.fleet.namespaced_hosts import SSHD, NamespacedFleet, namespaced_fleet
from tests.lab.faked import until

pytestmark = [
    pytest.mark.skipif("VMLAB_FLEET" not in os.environ, reason="for `make test-fleet`"),
    pytest.mark.skipif(not SSHD.exists(), reason="needs openssh-server"),
]
SCENARIO = """
name: probe
guests: {one: {memory: 256 MiB}}
workloads: {primes: {kind: cpu, on: one, threads: 1, max_prime: 1000, events: 300}}
axes: {cache: [none, writeback]}
allow: {noise: true}
"""
CLIMB = """
name: climb
guests:
  users: {memory: 256 MiB}
  front: {role: web, memory: 256 MiB}
workloads: {web: {kind: http, from: users, to: front, requests: 24, concurrency: 1, pace: 4/s}}
targets: {web: {latency_p95: 300 s, delivered_percent: 1 %}}
limits: {start_skew: 20 s, tick_lateness: 20 s, clock_drift_percent: 100}
allow: {noise: true}
"""
"""What it asks is kept by emulated guests too, of which the hosts have eight on this machine's CPUs."""
_LONG_SECONDS = 840.0
"""For commands that freeze guests on several hosts or take an image there first; below a test's own limit."""


@pytest.fixture(scope="module")
def fleet() -> Iterator[NamespacedFleet]:
    """Three hosts, whose lines are tried again for some seconds."""
    place = Path(tempfile.mkdtemp(prefix="vmlab-fleet-", dir="/var/tmp"))
    (place / "probe.yaml").write_text(SCENARIO)
    waiting = '\n[waiting]\nreconnect = "20 s"\nhold = "60 s"\n'
    with namespaced_fleet(place, waiting=waiting, ahead=(5, -5, 0)) as found:
        yield found
        for host in found.hosts:
            assert json.loads(host.run(found.vmlab_program, "clean", "--json").stdout)["runs"] == []
            assert not host.processes("qemu")
    rmtree(place)


def _document(fleet: NamespacedFleet) -> dict[str, object]:
    found: dict[str, object] = json.loads(fleet.vmlab("show", "last", "--json").stdout)
    return found


def _cells(fleet: NamespacedFleet) -> list[dict[str, object]]:
    cells = _document(fleet)["cells"]
    assert isinstance(cells, list)
    return cells


def _events(fleet: NamespacedFleet, kind: str) -> list[dict[str, object]]:
    """Those of the newest run, which may have no store yet."""
    runs = sorted(fleet.runs.iterdir())
    try:
        with closing(sqlite3.connect(f"file:{runs[-1]}/run.sqlite?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT body FROM events WHERE kind = ?", (kind,)).fetchall()
    except (IndexError, sqlite3.Error):
        return []
    return [json.loads(body) for (body,) in rows]


def _ended(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=500)
    return said


def test_the_hosts_are_ready(fleet: NamespacedFleet) -> None:
    """Each is reached, has this version and the image, and its clock is known: it is the clock of this machine."""
    found = json.loads(fleet.vmlab("hosts", "check", "--json").stdout)["hosts"]
    assert [one["name"] for one in found] == ["hv1", "hv2", "hv3"]
    for one in found:
        assert one["ready"]
        assert abs(one["clock_offset_ms"]) <= one["clock_uncertainty_ms"] < 1000


def test_every_host_runs_every_cell(fleet: NamespacedFleet) -> None:
    """Host as an axis, on real guests: figures, host figures and proofs of each cell; nothing is left on any host."""
    fleet.vmlab("run", str(fleet.folder / "probe.yaml"), "--hosts", "all")
    cells = _cells(fleet)
    assert Counter(cell["hypervisor"] for cell in cells) == {"hv1": 2, "hv2": 2, "hv3": 2}
    for cell in cells:
        assert cell["outcome"] == "passed", cell["reasons"]
        assert cell["measurements"]
        assert cell["cache_proof"]
        assert cell["host"], "samples of its host"
    for host in fleet.hosts:
        assert not list((host.folder / "state/vmlab/runs").iterdir())


def test_blocks_spread(fleet: NamespacedFleet) -> None:
    """Repeats are placed whole; the hosts are alike, as they are one machine."""
    fleet.vmlab("run", str(fleet.folder / "probe.yaml"), "--hosts", "hv1,hv2,hv3", "--spread", "--repeats", "3")
    cells = _cells(fleet)
    assert Counter(cell["outcome"] for cell in cells) == {"passed": 6}
    hosts: dict[object, set[object]] = {}
    for cell in cells:
        hosts.setdefault(cell["repeat"], set()).add(cell["hypervisor"])
    assert all(len(one) == 1 for one in hosts.values())
    assert "spread over hosts" in fleet.vmlab("show", "last").stdout


def test_hosts_start_together(fleet: NamespacedFleet) -> None:
    """Monotonic clocks differ by up to 10 s, and real guests start within 20 ms of each other, as the store has it."""
    fleet.vmlab("run", str(fleet.folder / "probe.yaml"), "--hosts", "all", "--together")
    (moment, *_) = _events(fleet, "CommonStartSet")
    ahead = sorted(there - moment["moment"] for there in moment["moments"])  # type: ignore[attr-defined]
    assert ahead == pytest.approx([-5.0, 0.0, 5.0], abs=0.5)
    ended = _events(fleet, "TogetherEnded")
    assert len(ended) == 2
    for one in ended:
        assert one["outcome"] == "passed", one["reason"]
        assert set(one["starts_ms"]) == {"hv1", "hv2", "hv3"}  # type: ignore[call-overload]
        assert 0 <= one["skew_ms"] <= 20  # type: ignore[operator]
        assert one["skew_uncertainty_ms"] > 0  # type: ignore[operator]
    shown = fleet.vmlab("show", "last").stdout
    assert "all hosts together" in shown
    assert "hosts started at most" in shown


def test_faults(fleet: NamespacedFleet) -> None:
    """A runner killed in a cell, a line cut for a while, the controller killed: every cell is there once."""
    before = len(list(fleet.runs.iterdir())) if fleet.runs.exists() else 0
    run = fleet.start("run", str(fleet.folder / "probe.yaml"), "--hosts", "all", "--repeats", "2")
    until(lambda: fleet.runs.exists() and len(list(fleet.runs.iterdir())) > before, "a run")
    until(lambda: len(_events(fleet, "CellStarted")) >= 3, "a cell on each host")
    first, second, _ = fleet.hosts
    os.kill(first.runner(), signal.SIGKILL)
    second.cut()
    until(lambda: any("tried again" in str(one["text"]) for one in _events(fleet, "Notice")), "the cut is noticed")
    second.cut(cut=False)
    until(lambda: any("is back" in str(one["text"]) for one in _events(fleet, "Notice")), "the line is back")
    folder = sorted(fleet.runs.iterdir())[-1]
    os.kill(json.loads((folder / "runner.json").read_text())["launcher_pid"], signal.SIGKILL)
    _ended(run)
    resumed = fleet.vmlab("hosts", "resume", folder.name, check=False)
    cells = _cells(fleet)
    assert Counter(cell["outcome"] for cell in cells) == {"passed": 12}, resumed.stderr
    assert len({cell["cell"] for cell in cells}) == 12
    withdrawn = Counter(one["cell"] for one in _events(fleet, "CellWithdrawn"))
    ended = Counter(one["cell"] for one in _events(fleet, "CellEnded"))
    assert set(ended.values()) == {1}
    assert set(withdrawn.values()) == {1}
    assert resumed.returncode == 0


def test_a_climb_of_all_hosts(fleet: NamespacedFleet) -> None:
    """One tile on every host, then two, started together; a limit that each keeps is kept by all of them."""
    scenario = fleet.folder / "climb.yaml"
    scenario.write_text(CLIMB)
    words = ("scale", str(scenario), "--max-tiles", "2", "--hosts", "hv1,hv2", "--together", "--json")
    done = fleet.vmlab(*words, timeout=_LONG_SECONDS)
    document = json.loads(done.stdout)
    assert document["scale"]["stopped_by"] == "max tiles", document["scale"]
    assert document["scale"]["sentence"].startswith("the fleet carries at least 2 tiles on every host at once")
    places = {place["axes"]["host"]: place for place in document["places"]}
    assert {name: place["tiles"] for name, place in places.items()} == {"all": 2, "hv1": 2, "hv2": 2}
    assert [step["delivered"] for step in places["all"]["steps"]] == [1, 1]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder on the disk whose path leaves room for those of sockets, which end at 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="vf-", dir="/var/tmp") as folder:
        yield Path(folder)


def test_a_host_without_the_image_is_sent_it_once(short_path: Path) -> None:
    """Over SSH, by its digest; guests run from it, and a second run sends nothing."""
    (short_path / "probe.yaml").write_text(SCENARIO)
    with namespaced_fleet(short_path, 1, bare=True) as fleet:
        own = short_path / "hv1/cache/vmlab/images"
        assert not list(own.glob("vmlab-*"))
        words = ("run", str(short_path / "probe.yaml"), "--hosts", "hv1", "--cache", "none")
        first = fleet.vmlab(*words, timeout=_LONG_SECONDS)
        (sent,) = own.glob("vmlab-*")
        assert f"{sent.name.removeprefix('vmlab-')} is sent to host hv1" in first.stderr
        assert [cell["outcome"] for cell in _cells(fleet)] == ["passed"]
        assert "is sent" not in fleet.vmlab(*words).stderr
        assert [cell["outcome"] for cell in _cells(fleet)] == ["passed"]
