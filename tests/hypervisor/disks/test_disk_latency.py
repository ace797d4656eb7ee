"""What QEMU counts of a real guest's disks, against what fio in the guest says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import Start
from tests.hypervisor.programs.latency import BLOCKS
from vmlab.hypervisor.journal import Journal
from vmlab.telemetry.latency_bins import BINS

pytestmark = [pytest.mark.guests, pytest.mark.usefixtures("image"), pytest.mark.timeout(600)]
FIO_BINS = 1.02
"""fio's own bins are 64 in each factor of two, and it gives the end of one."""
OPENING = 16
"""The guest's kernel reads something of a disk when it is opened."""


def added(before: dict[str, list[int]], now: dict[str, list[int]], operation: str) -> list[int]:
    """What was counted between two readings."""
    return [count - was for count, was in zip(now[operation], before[operation], strict=True)]


def test_every_request_is_counted_in_its_time_and_still_after_a_switch(
    isolated: Start, runtime: Path, tmp_path: Path
) -> None:
    lab = isolated("latency", str(runtime), str(tmp_path))
    answer, complaints = lab.communicate(timeout=550)
    assert lab.returncode == 0, complaints
    said = json.loads(answer)
    before: dict[str, list[int]] = {name: [0] * (len(BINS.boundaries) + 1) for name in ("read", "write", "flush")}
    for one in said["told"]:
        now = one["counted"]["data"]
        fio: dict[str, dict[str, Any]] = one["fio"]
        assert fio["read"]["requests"] + fio["write"]["requests"] == BLOCKS
        reads, writes = added(before, now, "read"), added(before, now, "write")
        assert fio["read"]["requests"] <= sum(reads) <= fio["read"]["requests"] + OPENING
        assert sum(writes) == fio["write"]["requests"]
        for percent, slowest in zip((50, 95, 99), fio["write"]["ms"], strict=True):
            found = BINS.percentile_ms(writes, percent)
            assert found is not None
            # A request takes the guest at least as long as QEMU, and so does each percentile of them.
            assert found <= slowest * FIO_BINS * (1 + BINS.error_percent / 100)
        assert sum(added(before, now, "flush")) >= 1
        before = now
    # The guest's own disk was not used for it, but is counted apart.
    assert sum(said["told"][0]["counted"]["root"]["read"]) > 0
    assert sum(sum(counts) for counts in said["emptied"]["data"].values()) == 0
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []
