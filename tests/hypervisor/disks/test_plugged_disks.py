"""Data disks plugged into QEMUs under embedded libvirt: what is open is proven for each kind, and nothing is left."""

import json
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.journal import Journal
from vmlab.model.run import CACHE_MODES

pytestmark = [pytest.mark.guests, pytest.mark.usefixtures("image"), pytest.mark.timeout(1200)]


def test_every_kind_of_data_disk_is_proven_and_goes_with_its_guest(
    isolated: Start, runtime: Path, tmp_path: Path
) -> None:
    lab = isolated("data_disks", str(runtime), str(tmp_path), *CACHE_MODES)
    answer, complaints = lab.communicate(timeout=900)
    assert lab.returncode == 0, complaints
    said = json.loads(answer)
    assert said.pop("loops") == []
    direct = {mode: mode in ("none", "directsync") for mode in CACHE_MODES}
    for mode in CACHE_MODES:
        (of_file,) = said[f"{mode}-file"]["proofs"]
        device, below = said[f"{mode}-block"]["proofs"]
        assert of_file["agrees"] and of_file["file"].endswith(f"{mode}-file.data.raw")
        assert device["agrees"] and device["file"].startswith("/dev/loop")
        assert of_file["o_direct"] is device["o_direct"] is direct[mode]
        assert below["agrees"] and below["o_direct"] and below["file"].endswith(f"{mode}-block.data.raw")
    for name, seen in said.items():
        assert (seen["allocated"] >= 2**26) is (name == "full")
        assert seen["again"] == f"{name}: has its data disk already"
        assert seen["left"] == []
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []
