"""Real guests that die, each in another way, and one that is stopped: all of it is heard of, with its cause."""

import json
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start

pytestmark = [pytest.mark.guests, pytest.mark.usefixtures("image"), pytest.mark.timeout(1200)]

PROMPT = 10.0
"""Seconds; a second is promised, on a machine that does nothing else."""


def test_each_death_is_heard_of_with_its_cause(isolated: Start, runtime: Path, tmp_path: Path) -> None:
    lab = isolated("dying", str(runtime), str(tmp_path))
    answer, complaints = lab.communicate(timeout=900)
    assert lab.returncode == 0, complaints
    said = json.loads(answer)
    assert {said[name]["guest"] for name in ("killed", "late")} == {"killed"}
    assert said["killed"]["cause"] == said["late"]["cause"] == "its QEMU died: killed by SIGKILL"
    assert said["killed"]["seconds"] < PROMPT and said["ended"]["seconds"] < PROMPT
    assert said["ended"]["guest"] == "ended"
    assert said["ended"]["cause"].startswith("its QEMU died: exit status 0, terminating on signal 15 from pid ")
    off, _, console = said["off"]["cause"].partition(", its console's last line: ")
    assert off == "its QEMU died: exit status 0, the guest shut down or restarted by itself"
    assert "reboot: Power down" in console
    assert said["full"]["guest"] == "full"
    assert "because its disk cannot be written: the host's disk is full" in said["full"]["cause"]
    assert said["stood"]["before"] == 0
    assert 0 < said["stood"]["during"] < said["stood"]["after"]
    assert said["stood"]["paused"] > 0.5
    assert said["tuned"]["changed"] == {
        "devices/disk/iotune/total_iops_sec": "500",
        "devices/interface/link/@state": "down",
    }
    (asked,) = said["tuned"]["asked"]
    assert "blkdeviotune.total_iops_sec 500" in asked
    assert said["destroyed"] == "", "a guest that the lab ends is no loss"
    assert "Domain not found" in said["gone"]
