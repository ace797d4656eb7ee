"""Whether anything gets slower or grows over very many cells in a row (``python -m bench.many_cells``).

One run of two small guests with 200 cells, each of which starts, measures, verifies and removes its guests. Its cells
are parted into four quarters, in the order in which they ran; for each the median of every phase is printed, and of
what the runner's process held meanwhile: memory, open files, threads, processes below it, mounts in its namespace, and
the cgroups of guests. The record is weighed at the end. Needs root.
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
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

SCENARIO = Path(__file__).with_name("cells.yaml")
MODES = 2
"""Values of the scenario's only axis: cells in each repeat."""
QUARTERS = 4
EVERY_S = 2.0
MIB = 2**20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Held:
    """What the runner held at one moment; memory in bytes, the rest are numbers of."""

    resident: int
    files: int
    threads: int
    processes: int
    mounts: int
    cgroups: int


NAMES = ("resident MiB", "open files", "threads", "processes below", "mounts", "cgroups of guests")


def held_by(pid: int) -> Held | None:
    """What the runner with this process id holds now; None where it has ended."""
    try:
        runner = psutil.Process(pid)
        with runner.oneshot():
            return Held(
                resident=runner.memory_info().rss,
                files=runner.num_fds(),
                threads=runner.num_threads(),
                processes=len(runner.children(recursive=True)),
                mounts=len(Path(f"/proc/{pid}/mounts").read_text(encoding="ascii", errors="replace").splitlines()),
                cgroups=len(list(Path("/sys/fs/cgroup").glob("**/machine*/*/"))),
            )
    except (psutil.Error, OSError):
        return None


def _runner_of(state: Path) -> int | None:
    for found in (state / "vmlab" / "runs").glob("*/runner.json"):
        try:
            return int(json.loads(found.read_text(encoding="utf-8"))["runner_pid"])
        except (OSError, ValueError, KeyError):
            return None
    return None


def run_and_watch(repeats: int, state: Path) -> tuple[dict[str, Any], list[Held]]:
    """The run's JSON, and what its runner held every two seconds. Raises SystemExit where the run did not pass."""
    argv = [sys.executable, "-m", "vmlab", "run", str(SCENARIO), "--repeats", str(repeats)]
    argv += ["--allow-noise", "--wait", "--json", "--set", "order=as written"]
    log, output = state / "log", state / "output"
    with log.open("wb") as errors, output.open("wb") as out:
        run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=_environment(state))
        seen = []
        while run.poll() is None:
            time.sleep(EVERY_S)
            if (pid := _runner_of(state)) is not None and (held := held_by(pid)) is not None:
                seen.append(held)
    if run.returncode != 0:
        raise SystemExit(f"the run exited with {run.returncode}:\n{log.read_text(encoding='utf-8')[-2000:]}")
    document: dict[str, Any] = json.loads(output.read_bytes())
    return document, seen


def _environment(state: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(state)}


def quarters_of(whole: Sequence[T]) -> list[Sequence[T]]:
    """Four parts of equal length, in order; what is left over goes to the last."""
    each = len(whole) // QUARTERS
    return [whole[at * each : (at + 1) * each if at < QUARTERS - 1 else len(whole)] for at in range(QUARTERS)]


def tell(document: dict[str, Any], seen: list[Held], record_bytes: int) -> None:
    """Print the tables."""
    cells = document["cells"]
    first, second, third, last = quarters_of(cells)
    guests, accelerator = cells[0]["provision"]["guests"], document["run"]["accelerator"]
    print(f"{len(cells)} cells, {guests} guests each, {accelerator}; the record has {record_bytes / MIB:.1f} MiB")
    print(f"Linux {platform.release()}, {psutil.cpu_count()} CPUs, {time.strftime('%Y-%m-%d')}\n")
    print("| median of | first quarter | second | third | last |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for phase in cells[0]["phases"]:
        medians = [statistics.median(cell["phases"][phase] for cell in part) for part in (first, second, third, last)]
        print(f"| {phase} | " + " | ".join(f"{one:.2f} s" for one in medians) + " |")
    parts = quarters_of(seen)
    for name, field in zip(NAMES, Held.__dataclass_fields__, strict=True):
        unit = MIB if field == "resident" else 1
        medians = [statistics.median(getattr(one, field) / unit for one in part) for part in parts]
        print(f"| {name} | " + " | ".join(f"{one:.0f}" for one in medians) + " |")


def main() -> None:
    """Run, watch and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cells", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vmlab-bench-") as folder:
        state = Path(folder)
        document, seen = run_and_watch(asked.cells // MODES, state)
        record = sum(one.stat().st_size for one in state.glob("vmlab/runs/*/*") if one.is_file())
        tell(document, seen, record)


if __name__ == "__main__":
    main()
