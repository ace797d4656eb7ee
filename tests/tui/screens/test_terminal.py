"""The real program on a real terminal (tmux), with real guests at size smoke."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.tui.pictures import keys_to
from tests.tui.tmux import Tmux
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.places import runs_folder
from vmlab.store.reader import RunReader
from vmlab.store.run_list import list_runs

pytestmark = [
    pytest.mark.exhaustive,
    # A run that the console starts is refused while another one measures.
    pytest.mark.alone,
    pytest.mark.guests,
    pytest.mark.usefixtures("image"),
    pytest.mark.timeout(1200),
]


def events_of(folder: RunFolder) -> int:
    with RunReader(folder.store) as reader:
        return sum(1 for _ in reader.events())


def test_the_whole_day_by_keyboard_with_a_terminal_that_is_killed_in_between(tmux: Tmux) -> None:
    tmux.open()
    tmux.shows("LIVE", "CPU", "iowait", "await", "cached")

    # Start the tile at size smoke.
    tmux.press("2")
    tmux.shows("cpu-overhead", "tile")
    tmux.press(*keys_to("tile"))
    tmux.shows("filecopy", "Press s to start it")
    tmux.press("Tab", "Left", "Space")
    tmux.shows("[smoke]", "2, up to 4 guests")
    tmux.press("s")
    tmux.shows("● LIVE", "cell 1/2", "cache none", deadline=300)
    (run,) = list_runs()
    folder = RunFolder(run.id, runs_folder() / run.id)

    # The terminal dies; the run does not.
    tmux.kill()
    until, told = time.monotonic() + 60, events_of(folder)
    while events_of(folder) == told:
        assert time.monotonic() < until, "nothing more is heard of the run"
        time.sleep(0.05)
    assert folder.alive()
    tmux.open()
    tmux.shows("● LIVE", "cell 1/2", "tile smoke")
    attach = [sys.executable, "-m", "vmlab", "attach", "--verbose", run.id]
    with subprocess.Popen(attach, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as watching:
        assert watching.stderr is not None
        assert any("cell 1/2" in line for line in watching.stderr)
        watching.terminate()
        watching.communicate(timeout=240)

    # Real guests work; then the next cell's cache mode is switched, and back, while this cell stays as it is.
    tmux.shows("running", "filecopy", deadline=400)
    tmux.press("b")
    tmux.shows("next cell: tiles 1, cache writeback")
    tmux.press("b")
    tmux.shows("next cell: tiles 1, cache none")

    # The next cell runs as it was switched; then it is stopped, and the guests are gone.
    tmux.shows("cell 2/2", "tiles 1, cache none", deadline=400)
    tmux.press("X")
    tmux.shows("Stop run", "Let it run")
    tmux.press("Right", "Enter")
    tmux.shows("aborted", deadline=300)
    # The cell says aborted before the launcher has cleared up behind it.
    end = time.monotonic() + 240
    while folder.alive():
        assert time.monotonic() < end, "the run is still there four minutes after it was stopped"
        time.sleep(0.1)
    (run,) = list_runs()
    assert (run.outcome, run.cells_done) == ("aborted", 2)

    # Both cells side by side.
    tmux.press("3")
    tmux.shows("■ aborted", "size smoke", "1 of 2 cells passed", "Mark")
    tmux.press("e")
    tmux.shows("tiles 1, cache none")
    tmux.press("Down", "Space", "Space", "c")
    compared = tmux.shows("cell 1: tiles 1", "cell 2: tiles 1", "filecopy", "total wall")
    assert "(base)" in compared

    # The run once more, as a recording, to its end and back.
    tmux.press("Escape")
    tmux.shows("outcome", "tiles 1, cache none")
    tmux.press("Up", "Up", "Enter")
    tmux.shows("RECORDING", "cell 1/2")
    tmux.press("Space", "End")
    tmux.shows("RECORDING at its end", "aborted")
    tmux.press("Home", "n", "n")
    tmux.shows("cell 2/2", "paused", "cache none")
