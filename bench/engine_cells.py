"""Whole cells of the tile by the program itself, restored with and without a helper, and cold, from its own JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

DONE = "VMLAB_BENCH_ENGINE_DONE"
"""Set once these have run, as the bench starts itself again inside the lab's namespaces."""

_OVER_SSH: tuple[str, ...] = ("--set", "helper=false")
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


def _run(tiles: int, words: tuple[str, ...]) -> dict[str, Any]:
    argv = [sys.executable, "-m", "vmlab", "run", "tile", "--size", "smoke", "--cache", "none", "--repeats", "1"]
    argv += ["--tiles", str(tiles), "--json", *words]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 4):
        raise SystemExit(f"{' '.join(argv[2:])} exited with {ended.returncode}:\n{ended.stderr}")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document
