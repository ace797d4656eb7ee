"""How often a comparison alarms where nothing differs, and finds what was slowed (``-m bench.alarms``).

Control runs of two short workloads in one real guest, and then runs in which further sides have a CPU quota: one that
makes the guest slower by twice what the control runs can detect, and one by a quarter of it. A quota of q percent gives
each virtual CPU q percent of a CPU, so what is bound by the CPU takes 100 / q times as long.

All readings are kept as JSON; ``-m tests.analysis.alarms_page`` makes the table of the page on statistics from them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "vmlab"]
SCENARIO = Path(__file__).with_name("small.yaml")
KEPT = Path(__file__).parent.parent / "docs" / "evidence" / "alarms.json"
BLOCKS = 8
SLOWED = "primes"
"""The workload that is asked whether the slowdown was found; it does nothing but calculate."""
KEPT_OF_A_DIFFERENCE = ("verdict", "percent", "interval_percent", "detectable_percent")
SLOWER = {"twice": 2.0, "quarter": 0.25}
"""The sides with a quota, and by how many detectable sizes each is slower than base."""


def quota(percent: float) -> float:
    """The quota, in percent, that makes what is bound by the CPU slower by `percent`."""
    return round(100 / (1 + percent / 100), 2)


def started(scenario: Path | str, *options: str) -> str:
    """The id of a run of `scenario`, which has passed. Raises CalledProcessError."""
    asked = [str(scenario), "--repeats", str(BLOCKS), "--allow-noise", "--wait", "--json", *options]
    done = subprocess.run([*PROGRAM, "run", *asked], check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return str(json.loads(done.stdout)["run"]["id"])


def _compared(run: str) -> dict[str, Any]:
    done = subprocess.run([*PROGRAM, "compare", run, "--json"], check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kept_of(run: str, compared: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a run: the readings of each side by figure, seconds, and what was said of each difference."""
    sides = [str(compared["baseline"]), *map(str, compared["candidates"])]
    figures: dict[str, dict[str, list[float]]] = {}
    differences: dict[str, dict[str, dict[str, Any]]] = {}
    for row in compared["rows"]:
        if row["metric"] not in ("run_time", "wall_seconds"):
            continue
        columns = [row["baseline"], *row["candidates"]]
        figures[row["workload"]] = {
            side: [reading["value"] for reading in column["readings"]]
            for side, column in zip(sides, columns, strict=True)
        }
        for side, column in zip(sides[1:], row["candidates"], strict=True):
            said = differences.setdefault(side, {}).setdefault(row["workload"], {})
            found = column["difference"]
            said["difference"] = {name: found.get(name) for name in KEPT_OF_A_DIFFERENCE}
    return {"run": run, "figures": figures, "differences": differences}


def detectable(runs: Sequence[Mapping[str, Any]]) -> float:
    """The median of the sizes, in percent, that the control runs say they can detect in the slowed workload."""
    sizes = [said[SLOWED]["difference"]["detectable_percent"] for run in runs for said in run["differences"].values()]
    return float(statistics.median(size for size in sizes if size is not None))


def _sides(slower: Mapping[str, float]) -> str:
    points = {name: f"{{guests.vm.cpu_quota: {quota(percent):g}}}" for name, percent in slower.items()}
    points = {"base": "{}"} | points
    written = ", ".join(f"{name}: {point}" for name, point in points.items())
    return SCENARIO.read_text() + f"\naxes: {{side: {{points: {{{written}}}}}}}\n"


def main() -> None:
    """Run, and write after each run what is there so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controls", type=int, default=20, help="control runs with two sides")
    parser.add_argument("--slowed", type=int, default=10, help="runs with three sides, two of them slowed")
    parser.add_argument("--go-on", action="store_true", help="go on with the measurement whose readings are kept")
    asked = parser.parse_args()
    release = platform.release()
    kept: dict[str, Any] = {"cpus": os.cpu_count(), "kernel": release, "controls": [], "slowed": []}
    if asked.go_on:
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
    for _ in range(asked.controls - len(kept["controls"])):
        run = started(SCENARIO, "--control")
        kept["controls"].append(kept_of(run, _compared(run)))
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    size = kept["detectable_percent"] = detectable(kept["controls"])
    kept["slower_percent"] = {name: factor * size for name, factor in SLOWER.items()}
    with tempfile.TemporaryDirectory() as folder:
        slowed = Path(folder) / "slowed.yaml"
        slowed.write_text(_sides(kept["slower_percent"]))
        for _ in range(asked.slowed - len(kept["slowed"])):
            run = started(slowed)
            kept["slowed"].append(kept_of(run, _compared(run)))
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
