"""The disks of a real guest that writes are switched to and fro: every file's O_DIRECT flips, and nothing is lost."""

import json
import os
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.journal import Journal

pytestmark = [pytest.mark.exhaustive, pytest.mark.guests, pytest.mark.usefixtures("image"), pytest.mark.timeout(1200)]
SWITCHES = int(os.environ.get("SWITCHES", "4"))
"""`SWITCHES=100 pytest …` tries a hundred, and takes some minutes."""


def test_a_guest_that_writes_is_switched_and_loses_nothing(isolated: Start, runtime: Path, tmp_path: Path) -> None:
    lab = isolated("switching", str(runtime), str(tmp_path), str(SWITCHES))
    answer, complaints = lab.communicate(timeout=1100)
    assert lab.returncode == 0, complaints
    said = json.loads(answer)
    switches = said["switches"]
    assert len(switches) >= SWITCHES
    for one in switches:
        # The overlay, the image and the data disk's device.
        assert one["o_direct"] == [one["mode"] == "none"] * 3
        assert one["agrees"], one
    assert [one["mode"] for one in switches[:4]] == ["none", "writeback"] * 2
    assert said["fio"] == 0, said["said"]
    assert said["read"][::2] == [said["wanted"], said["wanted"], "0"]
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []
