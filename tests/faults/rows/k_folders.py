"""A run's or a recording's folder that goes while its processes work in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.faults.row import Rows
from tests.faults.world import STRUCK, World

ROWS = Rows()


def _recording(world: World) -> Path:
    """The folder of a recording that has begun."""
    done = world.home.vmlab("record", "--detach", "--interval", "100 ms")
    assert done.returncode == 0, done.stderr
    folder = world.home.state / "vmlab/runs" / done.stdout.strip()
    world.until((folder / "run.sqlite-wal").exists, "the recording's store")
    return folder


@ROWS.add(
    "recorder-removed",
    "the folder of a recording in the background is removed",
    "the recorder ends, and `vmlab clean` finds nothing",
    guests=False,
)
def _recorder_removed(world: World) -> str:
    folder = _recording(world)
    world.strike(measured=False)
    shutil.rmtree(folder)
    world.is_over()
    return "the recorder ended"


@ROWS.add(
    "recorder-link",
    "the folder of a recording in the background is moved, and replaced by a link to a foreign folder",
    "the recorder ends with the cause in its log, and the foreign folder is untouched",
    guests=False,
)
def _recorder_link(world: World) -> str:
    folder, foreign = _recording(world), world.folder / "foreign"
    foreign.mkdir()
    (foreign / "letter").write_text("dear")
    world.strike(measured=False)
    folder.rename(world.folder / "moved")
    folder.symlink_to(foreign)
    world.is_over()
    assert [one.name for one in foreign.iterdir()] == ["letter"]
    (told,) = (world.folder / "moved/launcher.log").read_text().splitlines()
    folder.unlink()
    return told


@ROWS.add(
    "run-folder-removed",
    "the folder of a run is removed while its guest works",
    "the run ends with exit code 1 and the cause; nothing is left",
)
def _run_removed(world: World) -> str:
    running = world.run()
    world.wait_for("WorkloadStarted", cell=STRUCK)
    folder = world.store.parent
    assert json.loads((folder / "runner.json").read_text())
    world.strike(measured=False)
    shutil.rmtree(folder, ignore_errors=True)
    words = world.end_of(running, 120)
    world.is_over()
    assert running.returncode == 1, f"exit code {running.returncode}: {words}"
    assert "was removed while it was in use" in words, words
    return f"exit code 1: {words.splitlines()[-1]}"
