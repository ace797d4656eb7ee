"""Overlays on an image, and clear words where there is no room or no O_DIRECT."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.disks.overlays import make_overlay
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.system.file_system import supports_direct


def test_an_overlay_knows_its_base_and_size(tmp_path: Path) -> None:
    base, overlay = tmp_path / "base.raw", tmp_path / "disks" / "web-1.qcow2"
    overlay.parent.mkdir()
    base.write_bytes(bytes(2**20))
    make_overlay(base, overlay, 2**30)
    argv = ["qemu-img", "info", "--output=json", str(overlay)]
    said = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert (said["format"], said["virtual-size"]) == ("qcow2", 2**30)
    assert (said["backing-filename"], said["backing-filename-format"]) == (str(base), "raw")


def test_a_missing_base_is_said_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(HypervisorError, match=r"web-1\.qcow2: .*base\.raw"):
        make_overlay(tmp_path / "base.raw", tmp_path / "web-1.qcow2", 2**30)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_its_image_does_not_fit_into_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "base.raw"
    with base.open("wb") as file:
        file.truncate(2**30 + 2**20)
    with pytest.raises(RefusedError, match=r"^a guest's disk of 1 GiB is too small for its image of 1025 MiB$"):
        make_overlay(base, tmp_path / "web-1.qcow2", 2**30)
    assert list(tmp_path.iterdir()) == [base]


def test_a_folder_on_a_disk_takes_o_direct(tmp_path: Path) -> None:
    assert supports_direct(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_file_systems_that_cannot_are_refused(isolated: Start, tmp_path: Path) -> None:
    program = isolated("filesystems", str(tmp_path))
    said, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    direct, full = json.loads(said)
    assert direct.startswith("cache=none needs O_DIRECT") and "XDG_STATE_HOME" in direct
    assert full.startswith("no room for guests' disks: ")
