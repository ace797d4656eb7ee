"""A state folder with a run that was really recorded, and nothing of this machine's own."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vmlab.model.places import runs_folder

RECORDED = Path(__file__).parent / "recorded/tile-smoke.sqlite"
RUN = "20261121-063647-tile-778a"


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same terminal for every test: UTF-8, all colours, no time zone of its own."""
    for name in ("NO_COLOR", "VMLAB_ASCII", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty state folder; its path is short, as sockets' paths end at 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="vmt-") as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        monkeypatch.setenv("VMLAB_RUNTIME_DIR", f"{folder}/run")
        yield Path(folder)


@pytest.fixture
def recorded(state: Path) -> Path:
    """The folder of the recorded run, in the state folder: a tile at size smoke, cache none and writeback."""
    folder = runs_folder() / RUN
    folder.mkdir(parents=True)
    shutil.copy(RECORDED, folder / "run.sqlite")
    return folder
