"""How long `vmlab compare` takes, as a user runs it, beside scripts that read both exports (``-m bench.compare``).

Two runs of ten minutes with twelve guests, in the real store format, a sample each second; the figures are synthetic.
The script is what a user would otherwise write: polars, which reads the tidy CSV of both runs and prints the mean of
each figure of each workload. A second one reads the CSV of the samples, too, and prints the means of the host's
figures. They test nothing, and find no conditions in which the runs differ; the time to export is not counted.
"""

from __future__ import annotations

import argparse
import compileall
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.support.recorded_runs import make_run, sampled_here
from bench.support.timed import heading, in_turn

PROGRAM = [sys.executable, "-m", "vmlab"]
RUNS = ("20261121-143000-tile-aaaa", "20261121-150000-tile-bbbb")
BEGAN = 1795271400.0
SECONDS = 600.0
FIGURES = """
import sys, polars
both = polars.concat([polars.read_csv(path) for path in sys.argv[1:3]])
by = ["axis_cache", "workload", "metric", "run"]
print(both.group_by(by, maintain_order=True).agg(polars.col("value").mean()))
"""
SAMPLES = (
    FIGURES
    + """
seen = polars.concat([polars.read_csv(path) for path in sys.argv[3:5]])
host = seen.filter(polars.col("instance").is_null() & (polars.col("phase") == "execute"))
print(host.group_by(["axis_cache", "metric", "run"], maintain_order=True).agg(polars.col("value").mean()))
"""
)


def make(tiles: int) -> None:
    """Two runs of the tile, the second of them a fifth quicker."""
    seen = sampled_here(tiles)
    for number, run in enumerate(RUNS):
        pace = 1.0 - 0.2 * number
        make_run(run, seen, tiles=tiles, repeats=3, seconds=SECONDS, wall=BEGAN + 1800 * number, pace=pace)


def exported(folder: Path) -> list[str]:
    """The CSV of both runs' figures, then of both runs' samples."""
    paths = []
    for name, options in (("figures", []), ("samples", ["--samples"])):
        for run in RUNS:
            paths.append(str(folder / f"{run}-{name}.csv"))
            subprocess.run([*PROGRAM, "export", run, "-o", paths[-1], *options], check=True)
    return paths


def report(out: Callable[[str], object], folder: Path, times: int) -> None:
    """Make the runs, measure and print."""
    make(3)
    paths = exported(folder)
    compileall.compile_dir("vmlab", quiet=1)
    own = "vmlab compare A B"
    figures, samples = "polars, both CSVs", "polars, both CSVs and those of the samples"
    out(heading())
    found = in_turn(
        {
            own: [*PROGRAM, "compare", *RUNS],
            "vmlab compare A B --json": [*PROGRAM, "compare", *RUNS, "--json"],
            "vmlab show A": [*PROGRAM, "show", RUNS[0]],
            figures: [sys.executable, "-c", FIGURES, *paths],
            samples: [sys.executable, "-c", SAMPLES, *paths],
        },
        times,
    )
    for name, timed in found.items():
        out(f"| {name} | {timed} |")
    for other in (figures, samples):
        ratio = statistics.median(found[own].cpu) / statistics.median(found[other].cpu)
        wall = statistics.median(found[own].wall) / statistics.median(found[other].wall)
        out(f"\ncompare over {other}: {wall:.2f} by the clock, {ratio:.2f} in CPU time")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=11)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_STATE_HOME"] = place
        report(print, Path(place), chosen.times)
