"""Whole cells of the tile by the program itself, restored and cold, from its own JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

DONE = "VMLAB_BENCH_ENGINE_DONE"
"""Set once these have run, as the bench starts itself again inside the lab's namespaces."""

_RUNS = (("restored", 1, ()), ("cold", 1, ("--cold",)), ("restored", 3, ()))


def tell() -> None:
    """Print the table; the snapshots are made by a run before, which is not counted."""
    _run(1, ())
    print("\n| tile, smoke | guests | provision | prepare | ready to start | whole command |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for how, tiles, words in _RUNS:
        began = time.monotonic()
        cell = _run(tiles, words)["cells"][0]
        whole = time.monotonic() - began
        provision, phases = cell["provision"], cell["phases"]
        if provision["how"] != how:
            raise SystemExit(f"asked for {how}, was {provision['how']}")
        figures = (phases["provision"], phases["prepare"], provision["seconds"], whole)
        print(f"| {how} | {provision['guests']} | " + " | ".join(f"{one:.1f} s" for one in figures) + " |", flush=True)


def _run(tiles: int, words: tuple[str, ...]) -> dict[str, Any]:
    argv = [sys.executable, "-m", "vmlab", "run", "tile", "--size", "smoke", "--cache", "none", "--repeats", "1"]
    argv += ["--tiles", str(tiles), "--json", *words]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 4):
        raise SystemExit(f"{' '.join(argv[2:])} exited with {ended.returncode}:\n{ended.stderr}")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document
