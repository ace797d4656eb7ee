"""Every key of every screen on a real terminal, in the states that real guests give: it does something or says why not.

The keys are those that the program binds; told here is what an action does in a state. What ends a run or the program
is pressed last. `make walk` does it; `make test` does not, as it takes minutes and waits for what is seen for moments.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import processes
from tests.tui.bound import LEAVES, keys
from tests.tui.tmux import Tmux
from tests.tui.walk import TITLES
from tests.tui.walk_live import LAST_CELL, NO_RUN, WAITING, WORKING, Live
from tests.tui.walks import (
    walk_coming,
    walk_compare,
    walk_demo,
    walk_help,
    walk_question,
    walk_replay,
    walk_results,
    walk_runs,
    walk_scenarios,
    walk_to_the_start,
)
from vmlab.guests.image.catalog import images_folder
from vmlab.model.run import DONE, RUNNING
from vmlab.store.run_list import list_runs
from vmlab.tui.app import Console
from vmlab.tui.screens.live_screen import LiveScreen

pytestmark = [
    pytest.mark.guests,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not os.environ.get("VMLAB_WALK"), reason="takes minutes: make walk"),
]

VMLAB = (sys.executable, "-m", "vmlab")
SCENARIO = """
name: walked
summary: Two guests that work for as long as somebody walks over the keys of the console.
guests:
  near: {role: fileserver, memory: 320 MiB}
  far: {role: fileserver, memory: 320 MiB}
workloads:
  copy: {kind: filecopy, from: near, to: far, files: 20, bytes: 200 kB, idle: 0 s, back: false}
  primes: {kind: cpu, on: near, threads: 1, max_prime: 10000, events: 20000}
axes: {tiles: [1], cache: [none, writeback, writethrough, directsync]}
order: as written
sizes:
  demo: {axes: {cache: [none, writeback]}}
  smoke: {primes: {events: 1000}}
"""
"""At size smoke for a loop, with cells to come; at size demo two, in which `far` is free long before `near`."""
GUESTS = ("near", "far")
WORKS = f"● {RUNNING}"
"""In the row of a guest in which a workload goes on."""
HOST = "● LIVE host"
"""Live, while no run goes on."""
FROZEN = "They are frozen once"


@pytest.fixture
def scenario(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scenario's file. The image is the user's own; no guest of it was frozen before."""
    if os.geteuid() != 0:
        pytest.skip("real guests need root")
    subprocess.run([*VMLAB, "image", "build"], capture_output=True, timeout=1200, check=True)
    cache = state / "cache/vmlab"
    cache.mkdir(parents=True)
    (cache / "images").symlink_to(images_folder())
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    file = state / "walked.yaml"
    file.write_text(SCENARIO)
    return file


@pytest.mark.parametrize("tmux", [(120, 40)], indirect=True, ids=["120x40"])
def test_every_key_while_real_guests_are_frozen_work_and_are_gone(scenario: Path, tmux: Tmux, state: Path) -> None:
    quits = keys(Console, *LEAVES)
    tmux.open()
    live = Live(tmux)
    tmux.shows("How many guests does this host", "iowait")
    live.walk(NO_RUN)

    subprocess.run([*VMLAB, "run", str(scenario), "--size", "smoke", "--loop", "--detach"], check=True, timeout=300)
    tmux.shows(FROZEN, "boots, ")
    tmux.until(lambda text: text.count("boots, ") == len(qemus(state)), "what is frozen boots")
    with held(qemus(state)):
        live.walk(WAITING)
        assert FROZEN in tmux.text()
    walk_scenarios(tmux)

    tmux.send("1")
    tmux.shows("execute ", WORKS)
    live.walk(WORKING, later=("switch_cache_now", "end_loop"))
    walk_coming(tmux)
    tmux.send(quits[0])
    tmux.gone()
    (run,) = list_runs()
    assert run.outcome == "running"
    tmux.open()
    tmux.shows("execute ", WORKS)
    live = Live(tmux)
    tmux.until(lambda _: len(qemus(state)) == len(GUESTS), "the guests of the tile that was retired are gone")
    for key in keys(LiveScreen, "switch_cache_now"):
        WORKING["switch_cache_now"](live, key)
    tmux.shows("now cache writeback")
    live.walk(WORKING, later=("end_loop",))
    for key in keys(LiveScreen, "end_loop"):
        WORKING["end_loop"](live, key)
    tmux.shows("cell 2/")
    walk_question(tmux)
    tmux.shows("aborted after", HOST)
    live.walk(NO_RUN)

    walk_to_the_start(tmux, scenario)
    tmux.shows(TITLES["live"], "cell 2/2", "execute ", WORKS)
    tmux.until(lambda text: any("copy" in row and f" {DONE} " in row for row in text.splitlines()), "all is copied")
    with held(qemus(state, "far")):
        tmux.shows("collect ")
        live.walk(LAST_CELL)
        assert "collect " in tmux.text()
    tmux.shows(HOST)
    shown = subprocess.run([*VMLAB, "show", "--explain"], check=True, capture_output=True, text=True).stdout
    # The cells do not count: a guest was held, and walking is other work. No proof of the lab's own failed.
    assert "far: its QEMU was stopped for" in shown, shown
    assert "is not what QEMU has" not in shown, shown

    walk_runs(tmux)
    walk_replay(tmux)
    walk_results(tmux)
    walk_compare(tmux)
    walk_help(tmux)
    for place, key in enumerate(quits[1:]):
        if place:
            tmux.open()
            tmux.shows(TITLES["live"])
        tmux.send(key)
        tmux.gone()
    walk_demo(tmux)


def qemus(state: Path, guest: str = "") -> list[int]:
    """The processes of QEMU of the runs in `state`, of all guests or of one."""
    return processes("qemu-system", state, guest)


@contextmanager
def held(processes: list[int]) -> Iterator[None]:
    """Guests that stand still, so that the state of their run lasts."""
    assert processes
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)
