"""A quota that is taken away from real guests before they work: the figures stand, and have no verdict."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import junitparser
import pytest

from tests.e2e.conftest import Home
from vmlab.system.mounts import hierarchies

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(600)]

SCENARIO = """
name: quota
guests: {vm: {memory: 256 MiB}}
workloads: {primes: {kind: cpu, on: vm, threads: 1, max_prime: 10000, events: 2000}}
axes: {cpu_quota: {values: [10, 60]}}
limits: {clock_drift_percent: 100}
allow: {noise: true}
"""
_FREED = {"cpu.cfs_quota_us": ("1000", "-1"), "cpu.max": ("1000 10000", "max 10000")}
"""Of version 1 and 2: 10 % of a CPU, and no limit."""


def _free(home: Home) -> None:
    """Take the quota of 10 % from the guests of this home."""
    mount = next(one for one in hierarchies() if "cpu" in one.controllers)
    for pid in home.processes():
        for thread in Path(f"/proc/{pid}/task").glob("*/cgroup"):
            with suppress(OSError):
                for _, controllers, group in (line.split(":", 2) for line in thread.read_text().splitlines()):
                    if "qemu-embed-" in group and controllers.split(",")[0] in ("cpu", ""):
                        _free_group(mount.root / group.lstrip("/"))


def _free_group(group: Path) -> None:
    for name, (limited, free) in _FREED.items():
        file = group / name
        if file.exists() and file.read_text().strip() == limited:
            file.write_text(free)


@contextmanager
def _without_quota(home: Home) -> Iterator[None]:
    ended = threading.Event()

    def until_ended() -> None:
        while not ended.wait(0.05):
            with suppress(OSError):
                _free(home)

    thread = threading.Thread(target=until_ended)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_quota_that_was_taken_away_gives_no_verdict(home: Home, tmp_path: Path) -> None:
    scenario = tmp_path / "quota.yaml"
    scenario.write_text(SCENARIO)
    with _without_quota(home):
        done = home.vmlab("run", str(scenario), "--repeats", "2")
    assert done.returncode == 0, done.stderr
    told = {(cell["axes"]["cpu_quota"], one["delivered"]) for cell in home.show()["cells"] for one in _quotas(cell)}
    # Where the host has other work, the other quota does not bind.
    assert (10, False) in told and not told & {(10, True), (60, False)}
    shown = " ".join(home.vmlab("show", "last", "--explain").stdout.split())
    assert "(not delivered)" in shown and "of 10 % configured (bound 5 %)" in shown
    gate = home.vmlab("compare", "last", "--fail-if", "primes > +10 %", "--junit", str(tmp_path / "gate.xml"))
    assert gate.returncode == 4, gate.stdout + gate.stderr
    (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    (case,) = suite
    assert [type(one) for one in case.result] == [junitparser.Skipped]
    assert "not delivered: vm CPU quota" in case.result[0].message
    assert home.leftovers() == []


def _quotas(cell: dict[str, object]) -> list[dict[str, object]]:
    levers = cell["delivered"]
    assert isinstance(levers, list)
    return [one for one in levers if one["lever"] == "cpu_quota"]
