"""Load and long runs: ``python -m bench.soak [PART …]`` prints a table for each part; all of them without a name.

- ``recording``: six hours of a recording of 48 guests, a tick each second, handed over as fast as they are taken: what
  the runner keeps and stores, and what the console holds that shows it. Guests' figures and the clock are synthetic.
- ``cells``: a run of 500 cells by the real launcher, init and runner with its recorder; its cells are synthetic:
  they do nothing, and there are no guests. Needs root.
- ``runs``: a state folder with 5,000 runs, whose figures are synthetic: `ls`, the screen Runs, and `compare`.
- ``guests``: 48 real guests of 128 MiB in one lab, each with a small workload. Needs root and the guest image.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import psutil

from bench.many_cells import QUARTERS, Held, held_by, quarters_of
from bench.run_list import LATEST, PROGRAM, make
from bench.support.recorded_runs import sampled_here
from bench.support.timed import heading, in_turn
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.run.recording import RecentFigures
from vmlab.model.cell_event import CellEnded
from vmlab.model.event import HostProbed, RunStarted
from vmlab.model.sample import Sample
from vmlab.store.reader import RunReader
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.tui.app import Console

MIB = 2**20
HOURS, HOUR = 6, 3600
TILES = 12
"""Of four guests each."""
CELLS, RUNS, GUESTS = 500, 5000, 48
_LOOP_SECONDS = 600.0
_FOLLOWED = ("20260101-000000-soak-0000", 40)
"""The run that the console shows, and how many ticks are handed over between two looks of the console."""
SOAKED = """
name: soak
guests: {vm: {vcpus: 1, memory: 128 MiB}}
workloads: {primes: {kind: cpu, on: vm, threads: 1, max_prime: 1000, events: 200}}
limits: {start_skew: 1 h, clock_drift_percent: 100}
allow: {noise: true}
"""
Say = Callable[[str], object]
_MONO = time.monotonic()
"""The console passes over what is older than what it keeps."""


def recording(say: Say) -> None:
    """Six hours in the runner, and six hours that the console follows."""
    seen = sampled_here(TILES)
    with tempfile.TemporaryDirectory() as folder:
        figures, rows = _taken(Path(folder) / "run.sqlite", seen)
    say(
        f"| six hours, {TILES * 4} guests, {len(seen.values)} values a tick | after 1 h | 2 h | 3 h | 4 h | 5 h | 6 h |"
    )
    say("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    _tell(say, "runner", figures)
    say(f"| runner: ticks lost | {HOURS * HOUR - rows} | | | | | |")
    _tell(say, "console", _followed())


def _tell(say: Say, who: str, held: Sequence[Held]) -> None:
    say(f"| {who}: resident, MiB | " + " | ".join(f"{one.resident / MIB:.1f}" for one in held) + " |")
    say(f"| {who}: open files | " + " | ".join(str(one.files) for one in held) + " |")


def _own() -> Held:
    held = held_by(os.getpid())
    assert held is not None
    return held


def _tick(seen: Sample, number: int) -> Sample:
    """The tick of this second; half of its values change."""
    values = array("d", (value + number % 7 if place % 2 else value for place, value in enumerate(seen.values)))
    return Sample(LATEST + number, _MONO + number, 1.0, 0.0, seen.layout, values)


def _taken(store: Path, seen: Sample) -> tuple[list[Held], int]:
    """What this process holds after each hour as a runner, and the number of ticks in the store."""
    writer = RunWriter(store)
    figures = RecentFigures(SampleWriter(writer))
    held = []
    for number in range(1, HOURS * HOUR + 1):
        figures(_tick(seen, number))
        if number % HOUR == 0:
            figures.mean("cpu_outside_lab_percent", _MONO, _MONO + number)
            held.append(_own())
    writer.close()
    with RunReader(store) as reader:
        return held, sum(1 for _ in reader.sample_rows())


def _followed() -> list[Held]:
    """What a process holds after each hour in which the console shows the run live; in a process of its own."""
    program = [sys.executable, "-m", "bench.soak", "--follow"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            program, env={**os.environ, "XDG_STATE_HOME": folder}, capture_output=True, text=True, check=True
        )
    return [Held(**one) for one in json.loads(done.stdout.splitlines()[-1])]


async def follow() -> list[Held]:
    """Have the console show a run, and hand it six hours."""
    seen = sampled_here(TILES)
    run, at_once = _FOLLOWED
    folder = RunFolder.of(run)
    folder.path.mkdir(parents=True)
    lock = folder.take_lock()
    writer = RunWriter(folder.store)
    writer.append(RunStarted(run=run, scenario="soak", size="full", seed=1, cells=1, expected_seconds=HOURS * HOUR))
    writer.append(HostProbed(accelerator="tcg", host={"cpus": 2}))
    keep, held = SampleWriter(writer), []
    console = Console()
    async with console.run_test(size=(140, 40)) as pilot:
        end = time.monotonic() + 60.0
        while "soak" not in _words(console):
            assert time.monotonic() < end, "the console does not show the run"
            await pilot.pause(0.2)
        for number in range(1, HOURS * HOUR + 1):
            keep(_tick(seen, number))
            if number % at_once == 0:
                await pilot.pause(0.02)
            if number % HOUR == 0:
                await pilot.pause(1.0)
                held.append(_own())
    writer.close()
    os.close(lock)
    return held


def _words(console: Console) -> str:
    """All that stands on the screen."""
    return "".join(segment.text for line in console.screen._compositor.render_strips() for segment in line)


def cells(say: Say) -> None:
    """500 cells; in four quarters what the runner held."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        place = Path(folder)
        (place / "host").mkdir()
        (place / "many.yaml").write_text("name: many\nworkloads: {primes: {kind: cpu, on: host, threads: 1}}\n")
        environment = {
            **os.environ,
            "XDG_STATE_HOME": f"{place}/state",
            "XDG_CACHE_HOME": f"{place}/cache",
            "FAKED_CELL_SECONDS": "0.05",
            "VMLAB_RUNTIME_DIR": f"{place}/run",
            "FAKED_HOST": f"{place}/host",
        }
        argv = [sys.executable, "-m", "tests.lab.programs.faked_vmlab", "run", f"{place}/many.yaml", "--size", "full"]
        run = subprocess.Popen(
            [*argv, "--repeats", str(CELLS)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        seen = []
        while run.poll() is None:
            time.sleep(0.5)
            for noted in place.glob("state/vmlab/runs/*/runner.json"):
                pid = json.loads(noted.read_text()).get("runner_pid", 0)
                if pid and (held := held_by(pid)) is not None:
                    seen.append(held)
        (store,) = place.glob("state/vmlab/runs/*/run.sqlite")
        with RunReader(store) as reader:
            ended = sum(isinstance(event, CellEnded) for _, event in reader.events())
    say(f"| {ended} cells of a run, without guests, exit code {run.returncode} | 1st quarter | 2nd | 3rd | 4th |")
    say("| --- | ---: | ---: | ---: | ---: |")
    quarters = [part[-1] for part in quarters_of(seen)]
    assert len(quarters) == QUARTERS
    say("| runner: resident, MiB | " + " | ".join(f"{one.resident / MIB:.1f}" for one in quarters) + " |")
    for name in ("files", "threads", "processes"):
        say(f"| runner: {name} | " + " | ".join(str(getattr(one, name)) for one in quarters) + " |")


def runs(say: Say) -> None:
    """5,000 runs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        make(RUNS)
        time.sleep(3)
        names = sorted(path.name for path in (Path(folder) / "vmlab/runs").iterdir())
        commands = {"ls": [*PROGRAM, "ls"], "compare": [*PROGRAM, "compare", names[-2], names[-1]]}
        in_turn(commands, 1)
        say(heading())
        for name, timed in in_turn(commands, 15).items():
            say(f"| vmlab {name}, {RUNS} runs | {timed} |")
        seconds = asyncio.run(_open_runs())
        say(f"| the screen Runs, from the key to its rows | {1e3 * sorted(seconds)[len(seconds) // 2]:.0f} ms | | |")


async def _open_runs() -> list[float]:
    """Seconds from the key to the newest run in the list, in consoles that have just begun."""
    newest = time.strftime("%m-%d %H:%M", time.localtime(LATEST))
    found = []
    for _ in range(5):
        console = Console()
        async with console.run_test(size=(140, 40)) as pilot:
            await pilot.pause(2.0)
            began = time.perf_counter()
            # A press is over only when nothing is left to do, which is later than the list is seen.
            pressed = asyncio.create_task(pilot.press("3"))
            while newest not in _words(console):  # noqa: ASYNC110 (no event tells what was drawn)
                await asyncio.sleep(0.005)
            found.append(time.perf_counter() - began)
            await pressed
    return found


def guests(say: Say) -> None:
    """48 guests at once."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        file = Path(folder) / "soak.yaml"
        file.write_text(SOAKED)
        environment = {**os.environ, "XDG_STATE_HOME": folder, "VMLAB_RUNTIME_DIR": f"{folder}/run"}
        argv = [*PROGRAM, "run", str(file), "--size", "full", "--tiles", str(GUESTS), "--allow-overcommit", "--json"]
        began = time.monotonic()
        run = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
        output, _ = run.communicate(timeout=_LOOP_SECONDS)
        took = time.monotonic() - began
        left = [p.pid for p in psutil.process_iter(["cmdline"]) if folder in " ".join(p.info["cmdline"] or [])]
        document = json.loads(output)
    (cell,) = document["cells"]
    times = [one["value"] for one in cell["measurements"] if one["metric"] == "run_time"]
    say(f"| {cell['provision']['guests']} guests of 128 MiB in one lab, {document['run']['accelerator']} | |")
    say("| --- | ---: |")
    say(f"| outcome, exit code | {cell['outcome']}, {run.returncode} |")
    say(f"| all ready after | {cell['provision']['seconds']:.0f} s |")
    say(f"| start skew | {cell['start_skew_ms']:.0f} ms |")
    say(f"| workloads measured; the longest | {len(times)}; {max(times):.1f} s |")
    say(f"| the whole command; processes left | {took:.0f} s; {len(left)} |")


PARTS: dict[str, Callable[[Say], None]] = {"recording": recording, "cells": cells, "runs": runs, "guests": guests}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--follow", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.follow:
        print(json.dumps([asdict(one) for one in asyncio.run(follow())]))
        return
    for name in asked.parts or PARTS:
        PARTS[name](print)
        print()


if __name__ == "__main__":
    main()
