"""The disk below a run's folder, from trees of sysfs as kernels make them: partition, LVM, md and btrfs."""

import os
from pathlib import Path

import pytest

from vmlab.lab.run.host_facts import disk_below
from vmlab.telemetry.source import Roots

ROTATING = {"scheduler": "none [mq-deadline] kyber", "read_ahead_kb": "128", "rotational": "1"}
STACKED = {"scheduler": "none", "read_ahead_kb": "4096", "rotational": "0"}


class Tree:
    """A /sys and a /proc in which the folder of the test lies on one device or another."""

    def __init__(self, place: Path) -> None:
        self.roots = Roots(place / "proc", place / "sys", place / "proc")
        number = place.stat().st_dev
        self.number = f"{os.major(number)}:{os.minor(number)}"
        self.mounted_from("tmpfs", "tmpfs", "0:9999")

    def disk(self, name: str, queue: dict[str, str]) -> Path:
        """A whole disk, as ``/sys/devices`` and ``/sys/block`` show it."""
        device = self.roots.sys / "devices" / name
        (device / "queue").mkdir(parents=True)
        for file, text in queue.items():
            (device / "queue" / file).write_text(text + "\n")
        self.link(f"block/{name}", device)
        self.link(f"class/block/{name}", device)
        return device

    def partition(self, disk: Path, name: str) -> Path:
        """A partition: a folder in its disk's, without a queue of its own."""
        (disk / name).mkdir()
        (disk / name / "partition").write_text("2\n")
        self.link(f"class/block/{name}", disk / name)
        return disk / name

    def link(self, name: str, device: Path) -> None:
        """A link of sysfs."""
        (self.roots.sys / name).parent.mkdir(parents=True, exist_ok=True)
        (self.roots.sys / name).symlink_to(device)

    def holds(self, device: Path) -> None:
        """Have the folder of the test lie on `device`."""
        self.link(f"dev/block/{self.number}", device)

    def mounted_from(self, kind: str, source: str, number: str | None = None) -> None:
        """Have the folder's file system, with a number of no device, be mounted from `source`."""
        (self.roots.proc / "self").mkdir(parents=True, exist_ok=True)
        line = f"36 35 {number or self.number} / / rw,noatime - {kind} {source} rw\n"
        (self.roots.proc / "self/mountinfo").write_text(line)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def told(tree: Tree, folder: Path) -> tuple[object, ...]:
    found = disk_below(folder, tree.roots)
    return tuple(found[name] for name in ("device", "scheduler", "read_ahead_kib", "rotational"))


def test_a_partition_is_told_by_its_disk(tree: Tree, tmp_path: Path) -> None:
    tree.holds(tree.partition(tree.disk("sda", ROTATING), "sda2"))
    assert told(tree, tmp_path) == ("sda", "mq-deadline", "128", True)


def test_a_partition_of_nvme_is_told_by_its_disk(tree: Tree, tmp_path: Path) -> None:
    tree.holds(tree.partition(tree.disk("nvme0n1", {**STACKED, "scheduler": "[none] kyber"}), "nvme0n1p2"))
    assert told(tree, tmp_path) == ("nvme0n1", "none", "4096", False)


@pytest.mark.parametrize("name", ["dm-0", "md127"])
def test_a_logical_volume_and_a_raid_are_disks_of_their_own(tree: Tree, tmp_path: Path, name: str) -> None:
    tree.disk("sda", ROTATING)
    tree.holds(tree.disk(name, STACKED))
    assert told(tree, tmp_path) == (name, "none", "4096", False)


def test_a_partition_of_a_raid_is_told_by_the_raid(tree: Tree, tmp_path: Path) -> None:
    tree.holds(tree.partition(tree.disk("md0", STACKED), "md0p1"))
    assert told(tree, tmp_path)[0] == "md0"


def test_btrfs_is_told_by_what_it_was_mounted_from(tree: Tree, tmp_path: Path) -> None:
    tree.partition(tree.disk("sdq", ROTATING), "sdq7")
    tree.mounted_from("btrfs", "/dev/sdq7")
    assert told(tree, tmp_path) == ("sdq", "mq-deadline", "128", True)


def test_what_lies_on_no_disk_is_not_said_to_rotate_or_not(tree: Tree, tmp_path: Path) -> None:
    assert told(tree, tmp_path) == (None, None, None, None)
