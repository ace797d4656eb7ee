"""Labs without guests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.faked import Home
from tests.lab.one_cell import REPORT

NewHome = Callable[[str], Home]


@pytest.fixture
def homes() -> Iterator[NewHome]:
    """Makes users by their names, all on one host; what still runs in the end is killed. Skips without root."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    # Not in the test's own folder: a socket's path ends at 108 bytes.
    place = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    made: list[Home] = []

    def make(name: str) -> Home:
        (place / name).mkdir()
        made.append(Home(place / name, place))
        return made[-1]

    yield make
    for home in made:
        home.end()
    shutil.rmtree(place)


@pytest.fixture
def home(homes: NewHome) -> Home:
    """One user."""
    return homes("anna")


@pytest.fixture
def captured_events() -> int:
    """The number of events in the captured report of sysbench."""
    line = next(line for line in REPORT.splitlines() if "total number of events" in line)
    return int(line.split()[-1])


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State, cache and runtime folders of the test's own."""
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("VMLAB_RUNTIME_DIR", "run")):
        monkeypatch.setenv(name, str(tmp_path / folder))
