"""Where data disks lie: which places there are, what they cannot be asked for, and what a host must have."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.model.places import remedy_for, state_folder
from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.data_backing import DataPlace
from vmlab.plan import data_places
from vmlab.plan.data_places import check_direct
from vmlab.plan.estimate import BOOT_WRITES_BYTES, FILE_SYSTEM_BYTES
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan

GIB, MIB = 2**30, 2**20
HOST = HostFacts(2**36, 2**36, 2**40, 4, "kvm")
TEXT = """\
name: placed
guests: {vm: {memory: 512 MiB, data: 1 GiB, cache: none%s}}
workloads: {blocks: {kind: fio, on: vm, rw: randwrite, size: 64 MiB}}
"""


def plan(backing: str, guest: str = "", more: str = "") -> Plan:
    text = TEXT % f", backing: '{backing}'{guest}" + more
    return make_plan(read(Path("placed.yaml"), text), Overrides(), HOST)


def refusal(backing: str, guest: str = "") -> str:
    with pytest.raises(RefusedError) as refused:
        check_fit(plan(backing, guest), HOST)
    (line,) = str(refused.value).splitlines()
    return line


@pytest.mark.parametrize(
    ("backing", "kind", "name"),
    [
        ("file", "file", ""),
        ("btrfs", "btrfs", ""),
        ("rbd:lab", "rbd", "lab"),
        ("lvm:vg-0.1", "lvm", "vg-0.1"),
        ("folder:/srv/nvme", "folder", "/srv/nvme"),
        ("folder:/srv/two words/ü", "folder", "/srv/two words/ü"),
        ("folder:/srv/..data", "folder", "/srv/..data"),
    ],
)
def test_a_place_is_a_word_or_a_word_and_a_name(backing: str, kind: str, name: str) -> None:
    place = DataPlace.of(backing)
    assert (place.kind, place.name, str(place)) == (kind, name, backing)


@pytest.mark.parametrize(
    "backing",
    [
        *("zfs", "folder:", "folder:srv", "folder:/", "folder:/srv/", "folder://srv", "folder:/srv/../etc"),
        *("folder:/srv/.", "folder:/a\nb", "folder:/a\0b", "lvm:", "lvm:..", "lvm:.", "lvm:-vg", "lvm:vg/lv"),
        *("rbd:a/b", "ext4:vm", "/dev/sdb", "folder:~/disks"),
    ],
)
def test_nothing_else_is_a_place(backing: str) -> None:
    with pytest.raises(ValueError, match="is no backing of a data disk"):
        DataPlace.of(backing)


def test_a_file_system_is_larger_than_its_disk_and_btrfs_has_room_for_two() -> None:
    assert DataPlace.of("folder:/srv").file_bytes(GIB) == DataPlace.of("file").file_bytes(GIB) == GIB
    assert DataPlace.of("xfs").file_bytes(8 * GIB) == DataPlace.of("ext4").file_bytes(8 * GIB) == 10 * GIB
    assert DataPlace.of("btrfs").file_bytes(8 * GIB) == 17 * GIB


@pytest.mark.parametrize(
    ("backing", "guest", "more", "said"),
    [
        ("lvm:vg0", ", allocation: thin", "", "a logical volume has all of its room from the start"),
        ("lvm:vg0", "", "host: {disk: hdd-7200}\n", "an emulated disk does not lie below lvm:vg0; leave host.disk out"),
        ("folder:/srv", "", "host: {disk: hdd-7200}\n", "an emulated disk does not lie below folder:/srv; leave"),
        ("folder:/srv", "", "host: {read_ahead: 4 MiB}\n", "the data disk of guest vm is on folder:/srv"),
        ("folder:/srv", "", "host: {scheduler: none}\n", "host.scheduler is of the disk with the runs"),
    ],
)
def test_what_a_place_cannot_be_asked_for_is_named(backing: str, guest: str, more: str, said: str) -> None:
    with pytest.raises(ScenarioError) as wrong:
        plan(backing, guest, more)
    (line,) = str(wrong.value).splitlines()
    assert said in line


@pytest.mark.parametrize("backing", ["ext4", "xfs", "btrfs", "block"])
def test_what_lies_below_the_runs_may_lie_on_an_emulated_disk(backing: str) -> None:
    assert len(plan(backing, more="host: {disk: hdd-7200}\n").cells) == 1


def test_a_volume_is_reserved_whatever_is_said_of_other_disks() -> None:
    (guest,) = plan("lvm:vg0").cells[0].guests
    assert guest.resources.data_reserved
    assert not plan("file").cells[0].guests[0].resources.data_reserved
    assert plan("file", ", allocation: full").cells[0].guests[0].resources.data_reserved


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A user's folder, which every user may enter."""
    made = tmp_path / "nvme"
    made.mkdir()
    yield made
    made.chmod(0o700)


def test_a_folder_that_has_all_passes_and_nothing_is_left_in_it(folder: Path) -> None:
    check_fit(plan(f"folder:{folder}"), HOST)
    assert list(folder.iterdir()) == []


def test_a_folder_may_be_named_by_a_link(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    check_fit(plan(f"folder:{link}"), HOST)


def test_each_folder_that_cannot_be_is_refused_in_one_line(folder: Path) -> None:
    what = "the data disk of guest vm cannot lie in"
    assert refusal(f"folder:{folder}/none") == f"{what} {folder}/none: there is no such folder"
    (folder / "file").touch()
    assert refusal(f"folder:{folder}/file") == f"{what} {folder}/file: it is no folder"
    (folder / "loop").symlink_to(folder / "loop")
    assert refusal(f"folder:{folder}/loop").startswith(f"{what} {folder}/loop: ")
    long = f"{folder}/{'x' * 300}"
    assert refusal(f"folder:{long}") == f"{what} {long}: File name too long"
    assert refusal("folder:/proc/1") == f"{what} /proc/1: no file of a user's lies there"
    assert refusal("folder:/run").startswith(f"{what} /run: a run does not see the host's /run;")


def test_vmlabs_own_folders_are_none_of_the_users_by_a_link_neither(folder: Path) -> None:
    own = state_folder() / "runs"
    own.mkdir(parents=True, exist_ok=True)
    (folder / "link").symlink_to(own)
    for path in (own, folder / "link"):
        assert f"cannot lie in {path}: it lies in vmlab's own folder {state_folder()}" in refusal(f"folder:{path}")


def test_a_folder_that_cannot_be_written_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)
    assert refusal(f"folder:{folder}").endswith(f"{folder}: this user cannot write there")


def test_a_cache_mode_without_the_page_cache_needs_o_direct(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_places, "supports_direct", lambda path: path != folder)
    assert refusal(f"folder:{folder}").endswith(": cache mode none needs O_DIRECT, which its file system does not have")
    check_fit(plan(f"folder:{folder}", ", data_cache: writeback"), HOST)


@pytest.mark.parametrize("lacking", ["state", "cache"])
def test_so_do_disks_beside_runs_and_images(lacking: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("state", "cache"):
        (folder / name).mkdir()
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(folder / name))
    monkeypatch.setattr(data_places, "supports_direct", lambda path: path != folder / lacking)
    said = f"guest vm: cache mode none needs O_DIRECT, which the file system of {folder / lacking} does not have"
    refused = {}
    for case in ("writeback", "none", "writeback, data_cache: none", "writeback, backing: xfs, data_cache: none"):
        text = (TEXT % "").replace("cache: none", f"cache: {case}")
        try:
            check_direct(make_plan(read(Path("placed.yaml"), text), Overrides(), HOST))
        except RefusedError as error:
            refused[case] = str(error)
    assert refused.keys() == {"none", *(["writeback, data_cache: none"] if lacking == "state" else [])}
    on_emulated = TEXT % "" + "host: {disk: hdd-7200}\n"
    check_direct(make_plan(read(Path("placed.yaml"), on_emulated), Overrides(), HOST))
    assert {*refused.values()} == {f"{said} ({remedy_for(folder / lacking / 'vmlab')})"}


@pytest.mark.parametrize(("apart", "needed"), [(False, GIB + BOOT_WRITES_BYTES), (True, GIB)])
def test_a_folder_needs_room_for_its_disks_and_for_the_run_on_the_same_file_system(
    apart: bool, needed: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_places, "nearest_folder", lambda path: Path("/proc" if apart else folder))
    full = plan(f"folder:{folder}", ", allocation: full")
    for free, said in ((needed, []), (needed - 1, [f"data disks will take {format_bytes(needed)} and {folder} has"])):
        usage = shutil._ntuple_diskusage(2 * needed, 0, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda path, usage=usage: usage)
        lines = list(data_places.lacking_room(full, HOST))
        assert [line.partition(" has")[0] + " has" for line in lines] == said
    assert "another folder" in refusal(f"folder:{folder}", ", allocation: full")


def test_a_missing_program_or_module_is_named_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, path: None)
    line = refusal("xfs")
    assert line.startswith("a data disk on xfs needs mkfs.xfs, which is not installed (") and "xfsprogs" in line
    monkeypatch.setattr(shutil, "which", lambda program, path: f"/sbin/{program}")
    monkeypatch.setattr(data_places, "offers", lambda kind: kind != "btrfs")
    assert refusal("btrfs") == "a data disk on btrfs: this kernel has no such file system"
    monkeypatch.setattr(data_places, "_LOOP", Path("/nonexistent"))
    assert "needs loop devices, and /nonexistent is missing" in refusal("ext4")


def test_what_lies_elsewhere_takes_no_room_where_runs_lie() -> None:
    blocks, booted = 64 * MIB, BOOT_WRITES_BYTES
    assert plan("file").disk_bytes == blocks + booted
    assert plan("file", ", allocation: full").disk_bytes == GIB + booted
    assert plan("folder:/srv").disk_bytes == plan("lvm:vg0").disk_bytes == plan("rbd:lab").disk_bytes == booted
    assert plan("xfs").disk_bytes == blocks + FILE_SYSTEM_BYTES + booted
    assert plan("btrfs").disk_bytes == 2 * blocks + FILE_SYSTEM_BYTES + booted
    assert plan("btrfs", ", allocation: full").disk_bytes == 3 * GIB + booted


def test_the_volumes_of_each_cell_are_listed_by_their_groups() -> None:
    two = TEXT % "" + "axes: {place: {values: ['lvm:vg0', file], sets: guests.vm.backing}}\n"
    planned = make_plan(read(Path("two.yaml"), two), Overrides(), HOST)
    (cells,) = planned.volumes.values()
    assert sorted(cells, key=len) == [{}, {"t1-vm": GIB}] and list(planned.volumes) == ["vg0"]
