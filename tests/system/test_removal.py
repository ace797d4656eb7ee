"""Removals on dummies: mounts are made in a mount namespace of their own, and only onto folders of the test."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vmlab.system import removal
from vmlab.system.removal import (
    MARK_FILE,
    MountInTheWay,
    remove_cgroup,
    remove_empty_folder,
    remove_file,
    remove_file_beneath,
    remove_tree,
    remove_trees,
)

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a file, folders within folders, and links to a folder and a file outside of it."""
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "precious").write_text("precious")
    tree = tmp_path / "tree"
    (tree / "a" / "b" / "c").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_text("x")
    (tree / "a" / "link").symlink_to(outside)
    (tree / "a" / "file-link").symlink_to(outside / "precious")
    return tree


def survives(tree: Path) -> bool:
    outside = tree.parent / "outside"
    return (outside / "precious").read_text() == "precious" and (outside / "inner").is_dir()


def test_a_tree_goes_and_what_its_links_name_stays(tree: Path) -> None:
    assert remove_tree(tree)
    assert not tree.exists()
    assert survives(tree)
    assert not remove_tree(tree)
    assert not remove_tree(tree / "deeper" / "still")


def test_a_link_to_a_folder_is_no_folder(tree: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tree)
    with pytest.raises(OSError, match="is a link"):
        remove_tree(link)
    assert (tree / "a" / "b" / "file").exists()
    assert remove_file(link)
    assert tree.is_dir()


def test_the_way_to_a_tree_may_lead_over_a_link(tree: Path, tmp_path: Path) -> None:
    """A user may keep the cache, or the runtime folder, behind a link to another disk."""
    (tmp_path / "linked").symlink_to(tree / "a")
    assert remove_tree(tmp_path / "linked" / "b")
    assert not (tree / "a" / "b").exists()
    assert survives(tree)


def test_a_file_below_a_link_stays(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="link"):
        remove_file(tmp_path / "link" / "precious")
    for within in ("link", "../" + tmp_path.name, "/" + str(tmp_path)):
        with pytest.raises(OSError):
            remove_file_beneath(tmp_path, within, "precious")
    with pytest.raises(OSError):
        remove_file_beneath(tmp_path / "link", ".", "precious")
    assert not remove_file_beneath(tmp_path, "nowhere", "precious")
    assert not remove_file_beneath(tmp_path / "nowhere", "outside", "precious")
    assert not remove_file_beneath(tmp_path, "outside", "never-made")
    assert survives(tree)
    assert remove_file_beneath(tmp_path, "outside", "precious")


def test_a_file_goes_by_its_name_and_a_folder_does_not(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert remove_file(tmp_path / "file")
    assert not remove_file(tmp_path / "file")
    assert not remove_file(tmp_path / "nowhere" / "file")
    with pytest.raises(OSError, match="folder"):
        remove_file(tmp_path / "folder")
    assert remove_empty_folder(tmp_path / "folder")
    assert not remove_empty_folder(tmp_path / "folder")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert not remove_empty_folder(tmp_path / "full")


def test_paths_of_mountinfo_are_read_with_their_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    place = tmp_path.resolve() / "with space"
    escaped = str(place).replace(" ", "\\040")
    line = f"36 35 98:0 / {escaped}/dév rw,noatime master:1 - ext3 /dev/root rw\n"
    others = "38 35 98:2 / /a\u2028b\x85c\u00a0d\re rw - ext4 /dev/sdy rw\n".encode()
    mounts.write_bytes(others + line.encode() + b"37 35 98:1 / /media/\xff\xfe rw - ext4 /dev/sdz rw\n")
    monkeypatch.setattr(removal, "_MOUNTS", mounts)
    assert removal.mounts_below(place) == [place / "dév"]
    assert removal.mounts_below(tmp_path / "with") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("seen_before", [True, False], ids=["seen before", "made meanwhile"])
@pytest.mark.parametrize("what", ["folder", "file", "tmpfs", "top"])
def test_no_removal_crosses_a_mount(tree: Path, what: str, seen_before: bool) -> None:
    said = in_namespace(tree, what, seen_before)
    assert said["error"] == "MountInTheWay" or (what == "file" and not seen_before and said["error"] == "OSError")
    assert said["still_mounted"]
    assert survives(tree)
    if seen_before:
        assert (tree / "a" / "b" / "file").read_text() == "x", "nothing goes where a mount can be seen"


def in_namespace(tree: Path, what: str, seen_before: bool) -> dict[str, Any]:
    argv = [sys.executable, "-m", "tests.system.programs.removing", str(tree), what, str(int(seen_before))]
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", *argv],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return dict(json.loads(done.stdout))


def test_the_error_says_where_and_why() -> None:
    assert "never crosses a mount" in str(MountInTheWay(Path("/x/dev")))
    assert "/x/dev" in str(MountInTheWay(Path("/x/dev")))


def unlinked(monkeypatch: pytest.MonkeyPatch, refused: str = "") -> list[str]:
    """The names of the files that are removed from now on, in order; the file named `refused` cannot be."""
    names: list[str] = []
    unlink = os.unlink

    def kept(name: str, *, dir_fd: int | None = None) -> None:
        if name == refused:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)
        unlink(name, dir_fd=dir_fd)
        names.append(name)

    monkeypatch.setattr(os, "unlink", kept)
    return names


@pytest.mark.parametrize("made", ["first", "last"])
def test_the_mark_goes_after_all_else_so_that_what_is_left_still_names_its_owner(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = tmp_path / "marked"
    (marked / "zz").mkdir(parents=True)
    others = [*(f"{'az'[place % 2]}{place}" for place in range(20)), "zz/inner"]
    for name in [MARK_FILE, *others] if made == "first" else [*others, MARK_FILE]:
        (marked / name).touch()
    names = unlinked(monkeypatch)
    assert remove_tree(marked)
    assert (names[-1], len(names)) == (MARK_FILE, 22)


def test_of_several_trees_each_that_stays_is_named_with_the_file_in_its_way_and_the_others_go(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, stays, goes = (tmp_path / name for name in ("link", "stays", "goes"))
    link.symlink_to(tree)
    for folder in (stays, goes):
        (folder / "inner").mkdir(parents=True)
    (stays / "inner" / "held").touch()
    unlinked(monkeypatch, refused="held")
    done = remove_trees([link, stays, goes])
    assert done.removed == (goes,) and not goes.exists()
    assert done.left == (
        f"{link}: is a link, which a removal never follows",
        f"{stays}: Operation not permitted ({stays / 'inner' / 'held'})",
    )
    assert survives(tree)


def test_a_file_is_no_tree_and_not_called_a_link(tree: Path) -> None:
    with pytest.raises(NotADirectoryError, match="Not a directory"):
        remove_tree(tree / "a" / "b" / "file")
    assert (tree / "a" / "b" / "file").exists()


def test_a_cgroup_goes_with_those_below_it_and_none_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "machine" / "guest" / "vcpu0").mkdir(parents=True)
    assert remove_cgroup(tmp_path / "machine")
    assert not (tmp_path / "machine").exists()
    assert not remove_cgroup(tmp_path / "machine")
    assert not remove_cgroup(tmp_path / "machine" / "guest")


def test_no_file_below_a_cgroup_is_ever_removed(tmp_path: Path) -> None:
    """Those of a cgroup are the kernel's: one that can be removed is not of a cgroup."""
    (tmp_path / "machine" / "guest").mkdir(parents=True)
    (tmp_path / "machine" / "guest" / "precious").write_text("precious")
    with pytest.raises(OSError, match="not empty"):
        remove_cgroup(tmp_path / "machine")
    assert (tmp_path / "machine" / "guest" / "precious").read_text() == "precious"


def test_no_removal_leaves_a_descriptor_open(tree: Path) -> None:
    def descriptors() -> list[str]:
        return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = descriptors()
    assert remove_file_beneath(tree, "a/b", "file")
    assert not remove_file_beneath(tree, "a/b", "file")
    assert remove_empty_folder(tree / "a" / "b" / "c")
    assert remove_tree(tree)
    assert descriptors() == before


def test_no_child_process_inherits_a_folder_that_is_being_removed_from(tree: Path) -> None:
    with removal._folder_held(tree) as folder:
        assert folder is not None and not os.get_inheritable(folder)


def test_no_file_goes_from_a_folder_that_is_a_file(tree: Path) -> None:
    with pytest.raises(NotADirectoryError):
        remove_file(tree / "a" / "b" / "file" / "deeper")
    assert not remove_empty_folder(tree / "nowhere" / "deeper")
