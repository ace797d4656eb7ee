"""Every process of a lab is killed with -9 in turn, on a host of dummies: it lacks nothing and holds nothing new."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.programs.kill_each import BACKINGS, THEIRS
from vmlab.model.places import cache_folder

pytestmark = [pytest.mark.nightly, pytest.mark.guests, pytest.mark.timeout(1200)]

CHECKOUT = Path(__file__).parents[2]
VICTIMS = ["runner", "init", "launcher", "QEMU", "command line"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path on a disk, as O_DIRECT and sockets want it."""
    made = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def test_whoever_is_killed_the_host_lacks_nothing_and_keeps_nothing(image: str, folder: Path) -> None:
    state = folder / "state"
    state.mkdir()
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc"]
    program = [sys.executable, "-m", "tests.e2e.programs.kill_each", str(folder / "host"), str(state)]
    done = subprocess.run(
        [*apart, *program, str(cache_folder()), *VICTIMS],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1100,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["status"] == 0, done.stderr
    for victim, seen in document["seen"].items():
        assert seen["root_was_there"], victim
        assert seen["status"] == (-9 if victim == "command line" else 1), (victim, seen)
        in_folder = BACKINGS[victim] == "folder"
        assert seen["loops"] == [0 if in_folder else 1, 0], victim
        assert seen["outside"] == [2 if in_folder else 1, [THEIRS]], victim
        assert (seen["cleaned"], seen["again"], seen["disks"]) == (0, "nothing to clean", []), (victim, seen)
    assert document["gone"] == []
    assert document["changed"] == []
    ours = ("upper/", "run/vmlab ")
    assert [new for new in document["new"] if not new.startswith(ours)] == []
    assert [new for new in document["new"] if new.startswith("upper/")] == []
