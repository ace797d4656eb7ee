"""One flipped bit below real guests: it is noticed, what is damaged is made again, and nothing runs from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Home, wait_until
from tests.integrity.damage import flip
from vmlab.guests.image import catalog

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]

SCENARIO = """
name: one
guests: {vm: {memory: 256 MiB}}
workloads: {cpu: {kind: cpu, on: vm, threads: 1, max_prime: 1000, events: 2000}}
limits: {clock_drift_percent: 100}
allow: {noise: true}
"""


@pytest.fixture
def cache(home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own with a copy of the image; what is flipped in it is nobody else's."""
    current = catalog.find()
    assert current is not None
    cache = home.state.with_name("cache") / "vmlab"
    (cache / "images").mkdir(parents=True)
    copied = ["cp", "-r", "--sparse=always", "--reflink=auto", str(current.folder), str(cache / "images")]
    subprocess.run(copied, check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    return cache


@pytest.mark.nightly
def test_a_damaged_image_is_refused_and_a_damaged_snapshot_is_made_again(
    home: Home, cache: Path, tmp_path: Path
) -> None:
    scenario = tmp_path / "one.yaml"
    scenario.write_text(SCENARIO)
    (disk,) = cache.glob("images/*/root.raw")
    flip(disk, 1024)
    refused = home.vmlab("run", str(scenario))
    assert refused.returncode == 3, refused.stderr
    assert "root.raw is not what it was" in refused.stderr and "vmlab image build --force" in refused.stderr
    assert not list(home.state.rglob("*.qcow2")), "no guest had a disk"

    flip(disk, 1024)
    first = home.vmlab("run", str(scenario))
    assert first.returncode == 0, first.stderr
    (snapshot,) = cache.glob("snapshots/plain-*")
    whole = home.show()["cells"][0]["provision"]["snapshots"]

    for file in ("ram", "disk.qcow2"):
        flip(snapshot / file)
        mended = home.vmlab("run", str(scenario), "--verbose")
        assert mended.returncode == 0, mended.stderr
        (told,) = [line for line in mended.stderr.splitlines() if "is discarded" in line]
        assert f"snapshot {snapshot.name} is discarded, and made again" in told and f"{file} is not what it was" in told
        assert home.show()["cells"][0]["provision"]["snapshots"] != whole
    assert home.leftovers() == []


@pytest.mark.nightly
def test_an_image_that_changes_below_a_run_ends_it_with_the_cell_that_saw_it(
    home: Home, cache: Path, tmp_path: Path
) -> None:
    scenario = tmp_path / "one.yaml"
    scenario.write_text(SCENARIO.replace("events: 2000", "events: 20000"))
    (disk,) = cache.glob("images/*/root.raw")
    running = home.spawn("run", str(scenario), "--cold", "--repeats", "3")
    wait_until(lambda: any(event["kind"] == "WorkloadStarted" for event in home.events()), 300, "the start")
    flip(disk, 1024)
    _, words = running.communicate(timeout=300)
    assert running.returncode == 4, words
    document = home.show()
    (cell,) = document["cells"]
    assert cell["outcome"] == "invalid" and "root.raw is not what it was" in cell["reasons"][0]
    assert "vmlab image build --force" in words
    assert home.leftovers() == []
