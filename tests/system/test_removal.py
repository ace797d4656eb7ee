"""Removals on dummies: mounts are made in a mount namespace of their own, and only onto folders of the test."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vmlab.system import removal
from vmlab.system.removal import (
    MountInTheWay,
    remove_empty_folder,
    remove_file,
    remove_file_beneath,
    remove_tree,
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
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for within in ("link", "../" + tmp_path.name, "/" + str(tmp_path)):
            with pytest.raises(OSError):
                remove_file_beneath(folder, within, "precious")
        assert not remove_file_beneath(folder, "nowhere", "precious")
        assert not remove_file_beneath(folder, "outside", "never-made")
        assert survives(tree)
        assert remove_file_beneath(folder, "outside", "precious")
    finally:
        os.close(folder)


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
    mounts.write_bytes(line.encode() + b"37 35 98:1 / /media/\xff\xfe rw - ext4 /dev/sdz rw\n")
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
