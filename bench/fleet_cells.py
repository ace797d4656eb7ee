"""Sixty small cells on real guests: on one host of a fleet, over three that take turns, and over three at once.

``python -m bench.fleet_cells [REPEATS]``, as root, usually 30 repeats of two cells; needs openssh-server. The hosts are
namespaces of this machine and share its CPUs. Printed are the comparison of the first two runs, by the program's own
`compare`, and for each run the time from a cell's end to the next one's start, which is what the fleet adds.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from typing import Any

from tests.fleet.namespaced_hosts import NamespacedFleet, namespaced_fleet
from vmlab.model.cell_event import CellEnded, CellStarted

_SCENARIO = """
name: cells
guests: {one: {memory: 256 MiB}}
workloads: {primes: {kind: cpu, on: one, threads: 1, max_prime: 1000, events: 20000}}
axes: {cache: [none, writeback]}
order: random
allow: {noise: true}
"""
_WAYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("one host", ("--hosts", "hv1")),
    ("three in turn", ("--hosts", "all", "--in-turn")),
    ("three at once", ("--hosts", "all")),
)
_LONGEST_SECONDS = 1500.0


def _run(fleet: NamespacedFleet, scenario: Path, words: tuple[str, ...], repeats: int) -> dict[str, Any]:
    argv = ("run", str(scenario), *words, "--spread", "--repeats", str(repeats), "--json")
    done = fleet.vmlab(*argv, check=False, timeout=_LONGEST_SECONDS)
    if done.returncode not in (0, 4):
        raise SystemExit(f"vmlab {' '.join(argv)} exited with {done.returncode}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _gaps_ms(fleet: NamespacedFleet, run: str) -> list[float]:
    """From each cell's end to the next start: of the same host, or of any where they take turns."""
    with closing(sqlite3.connect(f"file:{fleet.runs / run}/run.sqlite?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "SELECT kind, body FROM events WHERE kind IN (?, ?) ORDER BY id", (CellStarted.__name__, CellEnded.__name__)
        ).fetchall()
    events = sorted(((json.loads(body), kind) for kind, body in rows), key=lambda one: float(one[0]["mono"]))
    hosts = {cell["cell"]: cell["hypervisor"] for cell in _document(fleet, run)["cells"]}
    at_once = _at_once(events)
    ended: dict[str, float] = {}
    gaps = []
    for body, kind in events:
        host = hosts[body["cell"]] if at_once else ""
        if kind == CellEnded.__name__:
            ended[host] = body["mono"]
        elif host in ended:
            gaps.append(1000 * (body["mono"] - ended[host]))
    return gaps


def _at_once(events: list[tuple[dict[str, Any], str]]) -> bool:
    under_way = 0
    for _, kind in events:
        under_way += 1 if kind == CellStarted.__name__ else -1
        if under_way > 1:
            return True
    return False


def _document(fleet: NamespacedFleet, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fleet.vmlab("show", run, "--json").stdout)
    return found


def main() -> None:
    """Print what was measured."""
    repeats = int(sys.argv[1]) if sys.argv[1:] else 30
    place = Path(tempfile.mkdtemp(prefix="vmlab-fleet-", dir="/var/tmp"))
    scenario = place / "cells.yaml"
    scenario.write_text(_SCENARIO)
    runs = []
    try:
        with namespaced_fleet(place) as fleet:
            for how, words in _WAYS:
                document = _run(fleet, scenario, words, repeats)
                runs.append(document["run"]["id"])
                outcomes = Counter(cell["outcome"] for cell in document["cells"])
                shares = Counter(cell["hypervisor"] for cell in document["cells"])
                gaps = sorted(_gaps_ms(fleet, runs[-1]))
                print(
                    f"{how}: {dict(outcomes)}, {dict(shares)}; from one cell to the next, of {len(gaps)}: median "
                    f"{statistics.median(gaps):.0f} ms, p90 {gaps[len(gaps) * 9 // 10]:.0f}, longest {gaps[-1]:.0f}",
                    flush=True,
                )
            print(fleet.vmlab("compare", *runs[:2], check=False).stdout)
    finally:
        rmtree(place)


if __name__ == "__main__":
    main()
