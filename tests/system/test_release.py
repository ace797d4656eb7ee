"""`packaging/release` builds what is committed, and says so where that is not all."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "packaging/release"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the program alone, all of it committed."""
    (tmp_path / "packaging").mkdir()
    shutil.copy(PROGRAM, tmp_path / "packaging/release")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All."]):
        identity = ["-c", "user.name=vmlab", "-c", "user.email=vmlab@localhost"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("changed", ["new.py", "packaging/release"])
def test_a_tree_with_changes_is_refused_and_dist_stays(checkout: Path, changed: str) -> None:
    (checkout / ".git/info/exclude").write_text("dist/\n")
    (checkout / "dist").mkdir()
    (checkout / "dist/before").touch()
    with (checkout / changed).open("a") as file:
        file.write("# changed\n")
    done = subprocess.run([checkout / "packaging/release"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("release: the tree is not clean") and changed in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in (checkout / "dist").iterdir()] == ["before"]


def test_a_clean_tree_passes_that_check(checkout: Path) -> None:
    done = subprocess.run([checkout / "packaging/release"], capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 3)
    assert "not clean" not in done.stderr
