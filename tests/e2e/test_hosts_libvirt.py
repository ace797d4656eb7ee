"""Real runs on a libvirtd that others use: measured, proven, and gone, whoever of the lab is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.private_libvirtd import NEEDED, disk_folder, require_untouched, told_by

__all__ = ["disk_folder"]

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.guests,
    pytest.mark.usefixtures("image"),
    pytest.mark.timeout(1800),
    *NEEDED,
]
PROGRAM = "tests.e2e.programs.on_libvirtd"


def test_a_tile_is_measured_in_both_cache_modes(disk_folder: Path) -> None:
    words = ("tile", "--size", "smoke", "--cache", "none,writeback")
    (document,) = told_by(PROGRAM, disk_folder, "nobody", *words, seconds=1700)
    assert document["status"] == 0, document["said"]
    shown = document["show"]
    host = shown["run"]["host"]
    assert host["hypervisor"] == "qemu:///system"
    assert [one["name"] for one in host["neighbours"]] == ["test", "test-2-web-1", "test-copied", "test-decoy"]
    for cell in shown["cells"]:
        assert cell["outcome"] == "passed", cell["reasons"]
        assert cell["provision"]["how"] == "restored"
        assert len(cell["cache_proof"]) >= 8 and all(proof["agrees"] for proof in cell["cache_proof"])
    assert document["cleaned"] == [] and document["again"] == []
    require_untouched(document)


@pytest.mark.parametrize("victims", ["runner", pytest.param("init,launcher", marks=pytest.mark.nightly)])
def test_whoever_is_killed_nothing_is_left(disk_folder: Path, victims: str) -> None:
    words = ("tile", "--size", "smoke", "--cache", "none")
    for document in told_by(PROGRAM, disk_folder, victims, *words, seconds=1700):
        assert document["status"] != 0
        assert len(document["domains"]) == 4 and document["again"] == []
        require_untouched(document)
