"""Whole cells of the tile by the program itself, restored with and without a helper, and cold, from its own JSON.

The last row is the time of a cell beyond its execute phase, over several cells in one run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

from vmlab.model.run import Phase

DONE = "VMLAB_BENCH_ENGINE_DONE"
"""Set once these have run, as the bench starts itself again inside the lab's namespaces."""

_OVER_SSH: tuple[str, ...] = ("--set", "helper=false")
_REPEATS = 5
_RUNS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("restored", 1, ()),
    ("restored, over SSH", 1, _OVER_SSH),
    ("cold", 1, ("--cold",)),
    ("restored", 3, ()),
    ("restored, over SSH", 3, _OVER_SSH),
)


def tell() -> None:
    """Print the table; the snapshots are made by runs before, which are not counted."""
    for words in ((), _OVER_SSH):
        _run(1, words)
    print("\n| tile, smoke | guests | provision | prepare | ready to start | collect | whole command |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for how, tiles, words in _RUNS:
        began = time.monotonic()
        cell = _run(tiles, words)["cells"][0]
        whole = time.monotonic() - began
        provision, phases = cell["provision"], cell["phases"]
        if provision["how"] != how.partition(",")[0]:
            raise SystemExit(f"asked for {how}, was {provision['how']}")
        figures = (phases["provision"], phases["prepare"], provision["seconds"], phases["collect"], whole)
        print(f"| {how} | {provision['guests']} | " + " | ".join(f"{one:.1f} s" for one in figures) + " |", flush=True)
    _tell_beyond()


def _tell_beyond() -> None:
    """A row of what a cell takes beside its workloads: its whole time without the execute phase."""
    run = _run(1, (), repeats=_REPEATS)["run"]["id"]
    cells = [one for one in _vmlab("show", run, "--phases", "--json")["cells"] if one["outcome"] is not None]
    beyond = [sum(seconds for name, seconds in one["parts"].items() if name != Phase.EXECUTE) for one in cells]
    print(f"\n| {len(beyond)} cells in one run | median | shortest | longest |\n| --- | ---: | ---: | ---: |")
    figures = " | ".join(f"{one:.1f} s" for one in (statistics.median(beyond), min(beyond), max(beyond)))
    print(f"| a smoke cell of the tile beyond its execute phase | {figures} |", flush=True)


def _run(tiles: int, words: tuple[str, ...], repeats: int = 1) -> dict[str, Any]:
    argv = ("run", "tile", "--size", "smoke", "--cache", "none", "--repeats", str(repeats), "--tiles", str(tiles))
    return _vmlab(*argv, "--json", *words)


def _vmlab(*words: str) -> dict[str, Any]:
    ended = subprocess.run([sys.executable, "-m", "vmlab", *words], capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 4):
        raise SystemExit(f"vmlab {' '.join(words)} exited with {ended.returncode}:\n{ended.stderr}")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document
