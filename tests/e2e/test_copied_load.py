"""A domain's load is recorded, and copied by a scenario that this host can plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.private_libvirtd import NEEDED, disk_folder, told_by
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides

__all__ = ["disk_folder"]

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.guests,
    pytest.mark.usefixtures("image"),
    pytest.mark.timeout(900),
    *NEEDED[:2],
]
PROGRAM = "tests.e2e.programs.slow_domain"
WRITES = ("--name=a", "--rw=randwrite", "--bs=4k", "--rate_iops=60", "--fdatasync=6", "--runtime=40", "--time_based")
READS = ("--name=b", "--stonewall", "--rw=randread", "--bs=16k", "--rate_iops=150", "--runtime=600", "--time_based")


def counted_between(readings: list[list[float]], begin: float, end: float) -> tuple[float, float]:
    """Writes, and their nanoseconds, from the last reading before one time to the last before another."""
    first = max((one for one in readings if one[0] <= begin), default=readings[0])
    last = max(one for one in readings if one[0] <= end)
    return last[1] - first[1], last[2] - first[2]


def test_two_rates_and_two_sizes_are_two_phases_with_the_rates_of_each(disk_folder: Path) -> None:
    (document,) = told_by(PROGRAM, disk_folder, "none", "0", "80", *WRITES, *READS, seconds=800)
    file = read(Path("try.yaml"), document["text"], {})
    recorded = file.scenario.recorded
    assert recorded is not None and (recorded.domain, recorded.disk) == ("slow", "vdb")
    writing, reading = recorded.phases.values()
    assert writing.writes is not None and reading.reads is not None
    assert writing.writes.rate == pytest.approx(60, rel=0.1) and writing.writes.size == 4096
    assert writing.flushes == pytest.approx(10, rel=0.1)
    assert reading.reads.rate == pytest.approx(150, rel=0.1)
    # A few larger reads come beside them as the device is opened.
    assert reading.reads.size == pytest.approx(16384, rel=0.02)
    # What was recorded of the phase lies between what QEMU counted two seconds within and two seconds around it: an
    # answer of libvirt counts in the tick that it comes in.
    began, ended = document["began"], document["began"] + writing.time
    least = counted_between(document["counted"], began + 2, ended - 2)
    most = counted_between(document["counted"], began - 2, ended + 2)
    taken = writing.writes.rate * writing.time
    waited = 1e9 * writing.writes.latency * taken
    assert least[0] <= taken <= most[0]
    assert least[1] <= waited <= most[1]
    assert make_plan(file, Overrides(), HostFacts(2**40, 2**40, 2**44, 8, "tcg")).cells
