"""What `docs/explanation/security.md` says of root: what does without it works, and what needs it is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.inside.taken_away import TAKEN
from vmlab.model.event import RunStarted
from vmlab.report.demo.duration import FOLDER
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE
from vmlab.system.removal import remove_tree

ROOT = Path(__file__).parents[2]
PREFIX = TAKEN["root"].prefix
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root"),
]
RECORDING = FOLDER / STORE
with RunReader(RECORDING) as _reader:
    RUN = next(event.run for _, event in _reader.events(kinds=(RunStarted,)) if isinstance(event, RunStarted))
WORKS = (
    ("ls",),
    ("show", "last"),
    ("compare", "last"),
    ("report", "last", "-o", "page.html"),
    ("export", "last", "-o", "run.vmlab"),
    ("tag", "last", "mine"),
    ("note", "last", "mine"),
    ("reparse", "last"),
    ("validate", "tile"),
    ("plan", "tile", "--size", "smoke", "--tiles", "1"),
    ("schema",),
    ("ls", "--scenarios"),
    ("image", "ls"),
)
PROGRAM = """
import os, vmlab
assert os.geteuid() != 0
run = vmlab.open_run()
assert vmlab.compare(run).differences and run.cells().height and run.measurements().height and run.document()
vmlab.report_runs(run, output="api.md")
vmlab.export_runs(run, output="api.vmlab")
vmlab.tag_run(run, "ours")
vmlab.reparse_run(run)
vmlab.remove_tag("ours")
run.path.parent.rename("elsewhere")
again = vmlab.import_run("api.vmlab")
assert again.document() == run.document()
followed = vmlab.attach_run(again.id)
assert [event.kind for event in followed][-1] == "RunEnded" and followed.outcome == again.outcome
vmlab.tag_run(again, "carried")
assert vmlab.remove_runs(again, tagged=True) == [run.id] and vmlab.runs() == []
assert vmlab.clean_runs()["runs"] == []
print([vmlab.import_run("api.vmlab").id])
"""
REFUSED = (
    ("run", "cache-modes"),
    ("scale", "consolidation", "--until-knee"),
    ("selftest",),
    ("image", "build"),
    ("image", "build", "--force"),
)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The folder of a user who is not root, with a recorded run."""
    if subprocess.run([*PREFIX, sys.executable, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("this checkout is not readable for other users")
    folder = Path(tempfile.mkdtemp(prefix="vmlab-user-", dir="/var/tmp"))
    runs = folder / "state/vmlab/runs" / RUN
    runs.mkdir(parents=True)
    shutil.copy(RECORDING, runs / STORE)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534)
    yield folder
    remove_tree(folder)


def _vmlab(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _python(place, "-m", "vmlab", *arguments)


def _python(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    homes = {
        "HOME": place,
        "XDG_STATE_HOME": place / "state",
        "XDG_CACHE_HOME": place / "cache",
        "VMLAB_RUNTIME_DIR": place,
    }
    environment = {**os.environ, **{name: str(path) for name, path in homes.items()}, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*PREFIX, sys.executable, *arguments],
        env=environment,
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("command", WORKS, ids=" ".join)
def test_what_does_without_root_works(command: tuple[str, ...], place: Path) -> None:
    done = _vmlab(place, *command)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_the_api_does_the_same_without_root(place: Path) -> None:
    done = _python(place, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"['{RUN}']\n"


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_needs_root_says_so_and_leaves_nothing(command: tuple[str, ...], place: Path) -> None:
    done = _vmlab(place, *command)
    assert done.returncode == 3, (done.returncode, done.stderr)
    assert "root" in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert [path.name for path in (place / "state/vmlab/runs").iterdir()] == [RUN]


def test_a_run_is_imported_by_any_user(place: Path) -> None:
    carried = place / "carried.vmlab"
    assert _vmlab(place, "export", RUN, "-o", str(carried)).returncode == 0
    remove_tree(place / "state/vmlab/runs" / RUN)
    done = _vmlab(place, "import", str(carried))
    assert done.returncode == 0, done.stderr
    assert _vmlab(place, "show", RUN).returncode == 0
