"""How long `vmlab ls` takes beside many runs, as a user runs it: ``python -m bench.run_list [--runs 1000]``.

The runs are small: one tile, two cells and 40 seconds each. Their figures are synthetic, their stores and folders as
runs leave them. *Anew* is a list where nothing is kept of earlier ones, so that every store is opened and read.
"""

from __future__ import annotations

import argparse
import compileall
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from bench.support.recorded_runs import host_alone, make_run
from bench.support.timed import Timed, heading, in_turn
from vmlab.store.run_list import kept_file

PROGRAM = [sys.executable, "-m", "vmlab"]
LATEST = 1795271400.0
_APART = 900.0
_SETTLING = 3.0
"""Seconds until stores that were just made may be kept."""


def make(count: int) -> None:
    """So many runs under the state folder, a quarter of an hour apart."""
    seen = host_alone()
    for number in range(count):
        began = LATEST - number * _APART
        run = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(began))}-tile-{number:04x}"
        make_run(run, seen, tiles=1, repeats=1, seconds=40.0, wall=began)


def report(out: Callable[[str], object], runs: int, times: int) -> None:
    """Make the runs, measure and print."""
    make(runs)
    time.sleep(_SETTLING)
    compileall.compile_dir("vmlab", quiet=1)
    out(heading())
    commands = {name: [*PROGRAM, *name.split()] for name in ("ls", "ls --json", "--help")}
    anew = Timed()
    for _ in range(times):
        kept_file().unlink(missing_ok=True)
        anew.add(in_turn({"ls": commands["ls"]}, 1)["ls"])
    found = in_turn(commands, times)
    out(f"| vmlab ls of {runs} runs, anew | {anew} |")
    for name, timed in found.items():
        out(f"| vmlab {name} | {timed} |")
    ratio = statistics.median(anew.cpu) / statistics.median(found["ls"].cpu)
    out(f"\nAnew it takes {ratio:.1f} times as much CPU time.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--times", type=int, default=11)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        report(print, chosen.runs, chosen.times)
