"""The cgroups of guests on the host: over a tree of plain files, and in the kernel's own."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from vmlab.hypervisor.isolation import cgroups, host_cgroups
from vmlab.hypervisor.isolation.host_cgroups import BareCgroups
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.errors import RefusedError
from vmlab.system.mounts import Mount, hierarchies, mount_of
from vmlab.telemetry.setting_files import why_no_ordered_host

MIB = 2**20
PREFIX = "qemu-embed-0123abcd-"
HERE = hierarchies()
NEEDS_KERNEL = pytest.mark.skipif(
    os.geteuid() != 0 or any(why_no_ordered_host(name, HERE) for name in cgroups.OF_ORDERED_HOST),
    reason="needs root and the controllers cpuset and memory",
)


@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mount]:
    """Version 2 as plain files, which no kernel removes with their folder."""
    monkeypatch.setattr(host_cgroups, "remove_cgroup", lambda group: True)
    (tmp_path / "machine").mkdir()
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    (tmp_path / "machine/cgroup.subtree_control").write_text("")
    (tmp_path / "machine/cpuset.cpus.effective").write_text("0-3\n")
    return [Mount(tmp_path, frozenset({"cpu", "cpuacct", "cpuset", "memory"}), 2)]


def test_in_version_2_the_limits_are_below_a_delegated_partition(tmp_path: Path, unified: list[Mount]) -> None:
    made = BareCgroups(PREFIX, Journal(tmp_path / "journal"), unified)
    assert made.cpus() == [0, 1, 2, 3]
    with made.made("t1-server", [2, 3], 64 * MIB) as groups:
        group = tmp_path / f"machine/{PREFIX}bare-t1-server"
        assert groups == [group / "cgroup.procs"]
        assert ((group / "cpuset.cpus").read_text(), (group / "memory.max").read_text()) == ("2,3", str(64 * MIB))
    assert (tmp_path / "machine/cgroup.subtree_control").read_text() == "+cpu +cpuset +memory"


def test_below_an_ordered_host_its_limits_hold_too(tmp_path: Path, unified: list[Mount]) -> None:
    ordered = tmp_path / f"machine/{PREFIX}host.partition"
    ordered.mkdir()
    (ordered / "cgroup.subtree_control").write_text("")
    (ordered / "cpuset.cpus.effective").write_text("3\n")
    made = BareCgroups(PREFIX, Journal(tmp_path / "journal"), unified)
    assert made.cpus() == [3]
    with made.made("t1-server", [3], 64 * MIB) as (procs,):
        assert procs == ordered / f"{PREFIX}bare-t1-server/cgroup.procs"


def test_a_partition_stands_in_the_journal_before_the_groups_that_empty_it(
    tmp_path: Path, unified: list[Mount]
) -> None:
    journal = Journal(tmp_path / "journal")
    made = BareCgroups(PREFIX, journal, unified)
    for file in (tmp_path / "machine").iterdir():
        file.unlink()
    (tmp_path / "machine").rmdir()
    made.hold()
    made.hold()
    # Newest first, as they are undone.
    partition = JournalEntry("partition", str(tmp_path / "machine"))
    assert journal.open_entries() == [JournalEntry("cgroups", PREFIX), partition]


def test_a_missing_controller_is_told(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no guest on the host: the cgroup controller cpuset is missing"):
        BareCgroups(PREFIX, Journal(tmp_path / "journal"), [Mount(tmp_path, frozenset({"memory"}), 1)]).hold()


@NEEDS_KERNEL
def test_in_the_kernel_limits_are_made_and_go_and_a_sweep_finds_what_a_dead_lab_left(tmp_path: Path) -> None:
    prefix, journal = f"qemu-embed-{secrets.token_hex(4)}-", Journal(tmp_path / "journal")
    made = BareCgroups(prefix, journal)
    made.hold()
    try:
        cpu = made.cpus()[-1]
        with made.made("t1-server", [cpu], 64 * MIB) as groups:
            assert all(group.exists() for group in groups)
            cpuset = mount_of("cpuset", HERE)
            assert cpuset is not None
            folder = next(group.parent for group in groups if group.is_relative_to(cpuset.root))
            assert (folder / "cpuset.cpus").read_text().strip() == str(cpu)
        assert not any(group.parent.exists() for group in groups)
        # As after a kill: nobody leaves the block.
        dead = made.made("t2-server", [cpu], 64 * MIB)
        dead.__enter__()
        assert [mount for mount in HERE if list(mount.root.glob(f"machine/{prefix}bare-*"))]
    finally:
        sweep(journal.path, tmp_path, "nobody")
    assert [found for mount in HERE for found in mount.root.glob(f"machine/{prefix}*")] == []
