"""Data disks on file systems that are made for them: what is found of each, and that a kill leaves nothing."""

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import Start, spec
from tests.hypervisor.programs.made_places import lab_of
from tests.waiting import until
from vmlab.hypervisor.disks import loop_devices, made_file_systems
from vmlab.hypervisor.disks.data_disks import DataDisk, DataDisks
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.levers.disk_place import find_place
from vmlab.model.errors import HypervisorUnavailable
from vmlab.model.scenarios.data_backing import FILE_SYSTEMS

SIZE = 64 * 2**20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A run's folder with one of the user's beside it, in which there are files of theirs."""
    (tmp_path / "disks").mkdir()
    (tmp_path / "nvme").mkdir()
    for name in theirs(tmp_path):
        (tmp_path / "nvme" / name).write_text("theirs")
    return tmp_path


def theirs(base: Path) -> tuple[str, str]:
    return f"vmlab.{lab_of(base)}.folder.raw", "notes"


def require_as_it_was(base: Path) -> None:
    assert {file.name: file.read_text() for file in (base / "nvme").iterdir()} == dict.fromkeys(theirs(base), "theirs")
    assert not [one for one in Path("/dev").glob("loop[0-9]*") if str(base) in loop_devices.file_of(one)]
    assert str(base) not in Path("/proc/self/mountinfo").read_text()
    assert list((base / "disks").iterdir()) == [] and Journal(base / "journal.jsonl").open_entries() == []


def test_each_is_where_it_was_asked_for_and_goes_with_its_guest(isolated: Start, base: Path) -> None:
    program = isolated("made_places", str(base), "release")
    answer, complaints = program.communicate(timeout=300)
    assert program.returncode == 0, complaints
    said: dict[str, Any] = json.loads(answer)
    for kind in FILE_SYSTEMS:
        seen = said[kind]
        backing, by = seen["found"]
        assert backing == kind, by
        assert f"{kind}.data.raw on {kind}, /dev/loop" in by and f", over {base}/disks/{kind}.data.fs" in by
        assert ("with copy-on-write" in by) is (kind == "btrfs")
        assert seen["unopened"][0] == "nothing"
        assert seen["block"] == 4096, "also where it is small"
        assert (seen["size"], seen["direct"], seen["lab_sees"], seen["host_sees"]) == (SIZE, True, True, False)
        size, blocks = seen["below"]
        assert size == seen["expected"] and blocks < SIZE * 3
    assert "nodatacow" not in said["btrfs"]["options"] and "compress" not in said["btrfs"]["options"]
    assert "discard=async" not in said["btrfs"]["options"]
    size, blocks = said["full"]["below"]
    assert blocks >= size > SIZE and said["full"]["blocks"] >= SIZE
    backing, by = said["folder"]["found"]
    assert backing == f"folder:{base}/nvme" and by.startswith(f"{base}/nvme/vmlab.{lab_of(base)}.folder.")
    assert said["nocow"][0] == "btrfs" and "without copy-on-write" in said["nocow"][1]
    assert said["marked"] == []
    (base / "nvme/there.raw").unlink()
    (base / "disks/here.raw").unlink()
    require_as_it_was(base)


def test_a_file_elsewhere_than_asked_is_found_where_it_is(isolated: Start, base: Path) -> None:
    program = isolated("made_places", str(base), "release")
    answer, complaints = program.communicate(timeout=300)
    assert program.returncode == 0, complaints
    found = {what: backing for what, (backing, _) in json.loads(answer)["others"].items()}
    assert found == {
        "beside the run, for xfs": "file",
        "beside the run, for a folder": "file",
        "in the folder, for a file": f"folder:{base}/nvme",
        "in the folder, for another one": f"folder:{base}/nvme",
        "on xfs, for btrfs": "xfs",
    }


@pytest.mark.parametrize("victim", ["runner", "launcher"])
def test_whoever_is_killed_nothing_is_left_and_nothing_of_others_is_touched(
    victim: str, isolated: Start, base: Path
) -> None:
    program = isolated("made_places", str(base), "stay")
    assert program.stdout is not None
    said = json.loads(program.stdout.readline())
    assert len(list((base / "disks").iterdir())) == 6 and len(list((base / "nvme").iterdir())) == 3
    os.kill(program.pid if victim == "launcher" else said["runner"], signal.SIGKILL)
    program.communicate(timeout=60)
    asyncio.run(until(lambda: not Path(f"/proc/{said['runner']}").exists(), "the end of the runner"))
    removed = sweep(base / "journal.jsonl", base / "disks", lab_of(base))
    assert sum(path.startswith(str(base / "nvme")) for path in removed) == 1

    def is_as_it_was() -> bool:
        require_as_it_was(base)
        return True

    # The kernel takes mounts of dead processes away some moments later.
    asyncio.run(until(is_as_it_was, "that all is as it was"))


def test_nothing_of_it_is_made_outside_a_lab(tmp_path: Path) -> None:
    made = made_file_systems.MadeFileSystem("ext4", tmp_path, tmp_path / "loop", -1, tmp_path / "point")
    with pytest.raises(HypervisorUnavailable):
        made_file_systems.make(made)
    with pytest.raises(HypervisorUnavailable):
        made.take_away()
    assert not (tmp_path / "point").exists()


@needs_root
def test_a_loop_device_is_found_by_the_file_below_it(tmp_path: Path) -> None:
    (tmp_path / "disks").mkdir()
    disks = DataDisks(tmp_path / "disks", "test", Journal(tmp_path / "journal.jsonl"))
    disk = disks.make(spec("a", data_bytes=SIZE, backing="block"))
    assert isinstance(disk, DataDisk)
    device = disk.source.path
    with device.open("rb") as opened:
        asleep = subprocess.Popen(["sleep", "600"], stdin=opened)
    try:
        process = Path(f"/proc/{asleep.pid}")
        assert find_place(process, device, tmp_path / "disks", "block").backing == "block"
        assert find_place(process, device, tmp_path, "block").backing == device.name
    finally:
        asleep.kill()
        asleep.wait()
        disks.release("a")
