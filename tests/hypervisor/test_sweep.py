"""A dead run's journal is swept: what it names goes, and nothing that does not carry its mark."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.errors import CleanupIncomplete, StoreError
from vmlab.system.removal import make_marked


def swept(journal: Journal) -> list[str]:
    return sweep(journal.path, journal.path.parents[1] / "disks", "test")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    (tmp_path / "run").mkdir()
    return Journal(tmp_path / "run" / "journal.jsonl")


def test_what_is_struck_off_is_not_open(journal: Journal) -> None:
    first, second = JournalEntry("file", "/a.qcow2"), JournalEntry("folder", "/b")
    journal.add(first)
    journal.add(second)
    assert journal.open_entries() == [second, first]
    journal.strike(first)
    assert Journal(journal.path).open_entries() == [second]


def test_what_follows_a_torn_line_counts(journal: Journal) -> None:
    """A host lost its power in the midst of a line, and the run goes on."""
    journal.path.write_text('{"made": {"kind": "fi')
    entry = JournalEntry("file", str(journal.path))
    journal.add(entry)
    assert journal.open_entries() == [entry]


def test_a_torn_line_counts_for_nothing(journal: Journal) -> None:
    entry = JournalEntry("file", "/a.qcow2")
    journal.add(entry)
    with journal.path.open("a") as file:
        file.write('{"made": {"kind": "fi')
    assert journal.open_entries() == [entry]


@pytest.mark.parametrize(
    "line",
    [
        '{"moved": {"kind": "file", "what": "/x"}}',
        "[]",
        "1",
        "{}",
        '{"made": 3}',
        '{"made": {"kind": "file"}}',
        '{"made": {"of": "later"}}',
        "\udcff",
        "",
    ],
)
def test_a_damaged_line_hides_none_of_the_others(journal: Journal, line: str) -> None:
    first, last = JournalEntry("file", "/a.qcow2"), JournalEntry("setting", "/sys/x", "1", "0")
    journal.add(first)
    with journal.path.open("a", errors="surrogateescape") as file:
        file.write(f"{line}\n")
    journal.add(last)
    assert journal.open_entries() == [last, first]


def test_what_is_struck_off_once_stands_where_it_was_made_twice(journal: Journal) -> None:
    entry, never_made = JournalEntry("file", "/a.qcow2"), JournalEntry("file", "/b.qcow2")
    journal.strike(never_made)
    journal.add(entry)
    journal.add(entry)
    journal.strike(entry)
    assert journal.open_entries() == [entry]


def test_an_entry_is_on_the_disk_before_what_it_names_is_made(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_size))
    sizes = []
    for place in range(3):
        journal.add(JournalEntry("file", f"/{place}.qcow2"))
        sizes.append(journal.path.stat().st_size)
    assert flushed == sizes and len(set(sizes)) == 3


def test_a_journal_is_its_owners_alone_and_is_closed_after_each_entry(journal: Journal) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    journal.add(JournalEntry("file", "/a.qcow2"))
    assert journal.path.stat().st_mode & 0o7777 == 0o600
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_journal_that_cannot_be_read_or_written_names_itself_and_why(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(StoreError, match=f"^cannot write {tmp_path}: Is a directory$"):
        journal.add(JournalEntry("file", "/a.qcow2"))
    with pytest.raises(StoreError, match=f"^{tmp_path} is a folder, and not an ordinary file$"):
        journal.open_entries()


def test_a_block_that_raises_stays_in_the_journal(journal: Journal) -> None:
    entry = JournalEntry("loop", "vmlab:x")
    with journal.kept(entry):
        assert journal.open_entries() == [entry]
    assert journal.open_entries() == []
    with pytest.raises(RuntimeError), journal.kept(entry):
        raise RuntimeError
    assert journal.open_entries() == [entry]


def test_a_journal_that_was_never_written_sweeps_nothing(journal: Journal) -> None:
    assert swept(journal) == []


def test_only_what_is_marked_goes(journal: Journal, tmp_path: Path) -> None:
    marked, foreign, others = (tmp_path / name for name in ("v", "home", "w"))
    make_marked(marked, "test")
    (marked / "deep").mkdir()
    foreign.mkdir()
    make_marked(others, "another run")
    overlay, precious, nested = (tmp_path / "disks" / name for name in ("web-1.qcow2", "mine.qcow2", "deep/x.qcow2"))
    nested.parent.mkdir(parents=True)
    elsewhere = tmp_path / "thesis.txt"
    for file in (overlay, precious, nested, elsewhere):
        file.touch()
    for path in (marked, foreign, others, tmp_path / "never-made"):
        journal.add(JournalEntry("folder", str(path)))
    for path in (overlay, nested, elsewhere, tmp_path / "disks" / "never-made.qcow2"):
        journal.add(JournalEntry("file", str(path)))
    assert sorted(swept(journal)) == sorted([str(marked), str(overlay)])
    assert foreign.is_dir() and others.is_dir()
    assert precious.exists() and nested.exists() and elsewhere.exists()
    assert swept(journal) == []
    assert journal.open_entries() == []


@pytest.mark.parametrize("what", ["copied", "moved", "linked to", "marked by hand"])
def test_a_folder_that_is_not_the_one_that_was_marked_stays(journal: Journal, tmp_path: Path, what: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    make_marked(old, "test")
    (old / "file").touch()
    match what:
        case "copied":
            shutil.copytree(old, new)
        case "moved":
            shutil.copytree(old, new)
            shutil.rmtree(old)
        case "linked to":
            new.symlink_to(old)
        case _:
            new.mkdir()
            (new / "vmlab.mark").write_text('{"owner": ["test"], "inode": true}')
    journal.add(JournalEntry("folder", str(new)))
    assert swept(journal) == []
    assert new.is_dir()
    assert what in ("moved", "marked by hand") or (old / "file").exists()


def test_disks_behind_a_link_stay(journal: Journal, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "x.qcow2").touch()
    (tmp_path / "disks").symlink_to(tmp_path / "precious")
    journal.add(JournalEntry("file", str(tmp_path / "disks" / "x.qcow2")))
    with pytest.raises(CleanupIncomplete, match="link"):
        swept(journal)
    assert (tmp_path / "precious" / "x.qcow2").exists()


@pytest.mark.parametrize(
    "prefix", ["", "qemu-", "qemu-embed-", "user.slice", "qemu-embed-*-", "qemu-embed-1234567g-", "../x"]
)
def test_a_prefix_that_others_have_too_is_none(journal: Journal, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def asks(_partition: Path, prefix: str) -> list[str]:
        asked.append(prefix)
        return []

    monkeypatch.setattr(cgroups, "remove_groups", asks)
    journal.add(JournalEntry("cgroups", prefix))
    journal.add(JournalEntry("partition", "/sys/fs/cgroup/cpu/docker"))
    assert swept(journal) == []
    assert asked == []


@pytest.mark.skipif(os.geteuid() != 0, reason="cgroups need root")
def test_cgroups_go_and_those_of_other_labs_stay(journal: Journal) -> None:
    prefix, other = f"qemu-embed-{os.getpid():08x}-", f"qemu-embed-{os.getpid() + 2**24:08x}-"
    partitions = cgroups.partitions(cgroups.hierarchies())
    assert partitions
    made = [partition for partition in partitions if not partition.exists()]
    for partition in partitions:
        if not cgroups.is_shared(partition):
            journal.add(JournalEntry("partition", str(partition)))
        for name in (prefix, other):
            cgroups.hold(partition, name)
        (partition / f"{prefix}1-guest" / "vcpu0").mkdir(parents=True)
    journal.add(JournalEntry("cgroups", prefix))
    try:
        removed = swept(journal)
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
    prefix = f"qemu-embed-{os.getpid() + 2**25:08x}-"
    partition = cgroups.partitions(cgroups.hierarchies())[0]
    made = not partition.exists()
    group = partition / f"{prefix}1-guest" / "vcpu0"
    group.mkdir(parents=True)
    sleeper = subprocess.Popen(["sleep", "3600"])
    try:
        (group / "cgroup.procs").write_text(str(sleeper.pid))
        overlay = tmp_path / "disks" / "web-1.qcow2"
        overlay.parent.mkdir()
        overlay.touch()
        journal.add(JournalEntry("file", str(overlay)))
        journal.add(JournalEntry("cgroups", prefix))
        with pytest.raises(CleanupIncomplete, match=prefix):
            swept(journal)
        assert not overlay.exists()
    finally:
        sleeper.kill()
        sleeper.wait()
        until = time.monotonic() + 60
        # The kernel lets go of a dead process's cgroup some moments after the process.
        while (group / "cgroup.procs").read_text() and time.monotonic() < until:
            time.sleep(0.02)
        assert [str(group.parent)] == swept(journal)
        if made:
            # Other tests may have groups in it by now.
            cgroups.remove_partition(partition)


def test_libvirts_name_for_a_root_is_known() -> None:
    assert cgroups.prefix_of(Path("/run/vmlab-t/20251121-054435-abcd")) == "qemu-embed-3ca0632a-"


def test_hierarchies_of_both_versions_are_read(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    mounts, blkio = tmp_path / "mounts", tmp_path / "blkio"
    blkio.mkdir()
    (blkio / "cgroup.procs").touch()
    mounts.write_text(
        f"cgroup2 {tmp_path} cgroup2 rw 0 0\ncgroup {blkio} cgroup rw,blkio 0 0\nproc /proc proc rw 0 0\n"
    )
    found = cgroups.hierarchies(mounts)
    assert cgroups.available_controllers(found) == ["cpu", "cpuacct"]
    assert cgroups.partitions(found) == [tmp_path / "machine"]


def test_a_journal_cannot_lead_to_the_record_itself_nor_to_a_loop_device_of_somebody(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[str] = []

    def clears(mark: str, *, clear: bool) -> list[str]:
        cleared.extend([mark] * clear)
        return []

    monkeypatch.setattr(loop_devices, "marked", clears)
    record = tmp_path / "record"
    make_marked(record, "test")
    (record / "run.sqlite").touch()
    journal.add(JournalEntry("folder", str(record)))
    journal.add(JournalEntry("loop", "/srv/backup.img"))
    journal.add(JournalEntry("loop", loop_devices.mark_of("test")))
    sweep(journal.path, record / "disks", "test")
    assert (record / "run.sqlite").exists()
    assert cleared == [loop_devices.mark_of("test")]
