"""A dead run's journal is swept: what it names goes, and nothing that does not carry its mark."""

import os
import subprocess
from pathlib import Path

import pytest

from vmlab.hypervisor import cgroups
from vmlab.hypervisor.journal import Entry, Journal
from vmlab.hypervisor.sweep import mark_folder, sweep
from vmlab.model.errors import CleanupIncomplete


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "run" / "journal.jsonl")


def test_what_is_struck_off_is_not_open(journal: Journal) -> None:
    first, second = Entry("file", "/a.qcow2"), Entry("folder", "/b")
    journal.add(first)
    journal.add(second)
    assert journal.open_entries() == [second, first]
    journal.strike(first)
    assert Journal(journal.path).open_entries() == [second]


def test_a_torn_line_counts_for_nothing(journal: Journal) -> None:
    entry = Entry("file", "/a.qcow2")
    journal.add(entry)
    with journal.path.open("a") as file:
        file.write('{"made": {"kind": "fi')
    assert journal.open_entries() == [entry]


def test_a_block_that_raises_stays_in_the_journal(journal: Journal) -> None:
    entry = Entry("loop", "vmlab:x")
    with journal.kept(entry):
        assert journal.open_entries() == [entry]
    assert journal.open_entries() == []
    with pytest.raises(RuntimeError), journal.kept(entry):
        raise RuntimeError
    assert journal.open_entries() == [entry]


def test_a_journal_that_was_never_written_sweeps_nothing(journal: Journal) -> None:
    assert sweep(journal.path) == []


def test_only_what_is_marked_goes(journal: Journal, tmp_path: Path) -> None:
    marked, foreign, overlay, precious = (tmp_path / name for name in ("v", "home", "web-1.qcow2", "thesis.txt"))
    mark_folder(marked)
    (marked / "deep").mkdir()
    foreign.mkdir()
    overlay.touch()
    precious.touch()
    for path in (marked, foreign):
        journal.add(Entry("folder", str(path)))
    for path in (overlay, precious, tmp_path / "never-made.qcow2"):
        journal.add(Entry("file", str(path)))
    assert sorted(sweep(journal.path)) == sorted([str(marked), str(overlay)])
    assert foreign.is_dir() and precious.exists()
    assert sweep(journal.path) == []


def test_a_folder_that_was_moved_under_the_mark_of_another_stays(journal: Journal, tmp_path: Path) -> None:
    mark_folder(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    journal.add(Entry("folder", str(tmp_path / "new")))
    assert sweep(journal.path) == []
    assert (tmp_path / "new").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="cgroups need root")
def test_cgroups_go_and_those_of_other_labs_stay(journal: Journal) -> None:
    prefix, other = f"qemu-embed-test{os.getpid()}-", f"qemu-embed-other{os.getpid()}-"
    partitions = cgroups.partitions(cgroups.hierarchies())
    assert partitions
    made = [partition for partition in partitions if not partition.exists()]
    for partition in partitions:
        if not cgroups.is_shared(partition):
            journal.add(Entry("partition", str(partition)))
        for name in (prefix, other):
            cgroups.hold(partition, name)
        (partition / f"{prefix}1-guest" / "vcpu0").mkdir(parents=True)
    journal.add(Entry("cgroups", prefix))
    try:
        removed = sweep(journal.path)
        assert len(removed) == 2 * len(partitions)
        assert all(prefix in path for path in removed)
        assert all((partition / f"{other}lab").is_dir() for partition in partitions)
    finally:
        for partition in partitions:
            cgroups.remove_groups(partition, other)
        for partition in made:
            cgroups.remove_partition(partition)


@pytest.mark.skipif(os.geteuid() != 0, reason="cgroups need root")
def test_a_cgroup_in_use_is_named_and_the_rest_is_swept(journal: Journal, tmp_path: Path) -> None:
    prefix = f"qemu-embed-busy{os.getpid()}-"
    partition = cgroups.partitions(cgroups.hierarchies())[0]
    made = not partition.exists()
    group = partition / f"{prefix}1-guest" / "vcpu0"
    group.mkdir(parents=True)
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        (group / "cgroup.procs").write_text(str(sleeper.pid))
        (tmp_path / "web-1.qcow2").touch()
        journal.add(Entry("file", str(tmp_path / "web-1.qcow2")))
        journal.add(Entry("cgroups", prefix))
        with pytest.raises(CleanupIncomplete, match=prefix):
            sweep(journal.path)
        assert not (tmp_path / "web-1.qcow2").exists()
    finally:
        sleeper.kill()
        sleeper.wait()
        assert [str(group.parent)] == sweep(journal.path)
        if made:
            partition.rmdir()


def test_libvirts_name_for_a_root_is_known() -> None:
    assert cgroups.prefix_of(Path("/run/vmlab-t/20251121-054435-abcd")) == "qemu-embed-3ca0632a-"


def test_hierarchies_of_both_versions_are_read(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"cgroup2 {tmp_path} cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\nproc /proc proc rw 0 0\n"
    )
    found = cgroups.hierarchies(mounts)
    assert cgroups.available_controllers(found) == ["cpu", "cpuacct"]
    assert cgroups.partitions(found) == [tmp_path / "machine"]
