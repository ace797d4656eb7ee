"""A disk that is full from the start: nothing is begun, nothing stays, and the line names the file."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vmlab.cli.diagnostics import run_and_report
from vmlab.lab.process.measuring_runs import claim
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import ExitCode, RefusedError

CHECKOUT = Path(__file__).parents[3]

_MAKE = """
import os
from pathlib import Path
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError
Path(os.environ["FULL"], "filling").write_bytes(b"x" * 65536)
try:
    RunFolder.of("20261121-150000-two-0001").make()
except RefusedError as error:
    print(error)
left = [path for place in ("STATE", "RUN") for path in Path(os.environ[place]).rglob("*")]
print(sorted(path.name for path in left if path.name != "filling"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("full", ["state", "run"])
def test_a_run_without_room_for_its_folders_leaves_none(full: str, tmp_path: Path) -> None:
    for name in ("state", "run"):
        (tmp_path / name).mkdir()
    environment = {
        **os.environ,
        "FULL": str(tmp_path / full),
        "STATE": str(tmp_path / "state"),
        "RUN": str(tmp_path / "run"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "VMLAB_RUNTIME_DIR": str(tmp_path / "run"),
    }
    script = 'mount -t tmpfs -o size=64k none "$FULL" && exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, sys.executable, _MAKE],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    said, left = done.stdout.splitlines()
    assert said.startswith(f"cannot write {tmp_path / full}") and "No space left on device (set " in said
    assert left == "[]"


def test_where_who_measures_cannot_be_written_the_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = RunFolder("two", tmp_path / "two")
    place = tmp_path / "vmlab-measuring"
    monkeypatch.setattr("vmlab.lab.process.measuring_runs.RUN_FOLDERS", (tmp_path,))
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(RefusedError, match=f"{place / 'two'}: No space left on device"):
            claim(folder)
        assert run_and_report(lambda: claim(folder)) == ExitCode.REFUSED
    assert "standard output" not in capsys.readouterr().err
    assert list(place.iterdir()) == []
    os.close(claim(folder))


def test_an_existing_run_is_not_made_again_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))
    folder = RunFolder.of("20261121-150000-two-0001")
    os.close(folder.make())
    folder.store.write_text("the record")
    with pytest.raises(RefusedError, match="File exists"):
        folder.make()
    assert folder.store.read_text() == "the record"


def test_only_standard_output_itself_is_told_as_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert run_and_report(full) == ExitCode.REFUSED
    assert capsys.readouterr().err == "vmlab: No space left on device\n"
