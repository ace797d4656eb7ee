"""What the console costs and how quick it is: ``python -m bench.console [--seconds 30]`` prints tables.

CPU is that of the process tree, in percent of one core. The console follows a run of twelve guests at 1 Hz on a
terminal of 140 by 40, which shows six charts; glances and btop run at the same time on terminals of the same size, so
that all see one host.
"""

from __future__ import annotations

import argparse
import compileall
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.console_run import busy_run
from bench.support.process_cpu import TreeCpu
from bench.support.rivals import NotHere, btop, glances
from bench.support.terminal import on_terminal

PROGRAM = [sys.executable, "-m", "vmlab"]
BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("READY")
Bare().run()
"""
SIZE = (140, 40)
TURNS = (
    (b"3", "outcome"),
    (b"1", "CPU"),
    (b"4", "Nothing to compare"),
    (b"1", "CPU"),
    (b"?", "This screen"),
    (b"?", "CPU"),
)
"""Keys, and what stands on the screen when it has changed."""
ESCAPE_TURNS = ((b"?", "This screen"), (b"\x1b", "CPU"))
"""Told apart: Textual's driver waits a tenth of a second to tell the key from the start of a sequence."""
WARM_UP = 6.0


def environment(state: Path) -> dict[str, str]:
    """A terminal with all colours, and a state folder of the bench's own."""
    return {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "XDG_STATE_HOME": str(state)}


def cost(seconds: float) -> dict[str, float]:
    """CPU of the console, glances and btop over the same `seconds`, in percent of one core."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        stack.enter_context(busy_run(place))
        console = stack.enter_context(on_terminal(PROGRAM, SIZE, environment(place)))
        trees = {"vmlab": TreeCpu([console.pid])}
        for name, rival in (("glances", glances), ("btop", btop)):
            try:
                trees[name] = TreeCpu(stack.enter_context(rival(1.0, place)))
            except NotHere as why:
                sys.stderr.write(f"{name}: {why}\n")
        console.drain(WARM_UP)
        began = time.monotonic()
        for tree in trees.values():
            tree.begin()
        console.drain(seconds)
        for tree in trees.values():
            tree.look()
        passed = time.monotonic() - began
        return {name: tree.seconds / passed * 100 for name, tree in trees.items()}


def starts(command: list[str], sign: str, times: int) -> list[float]:
    """Milliseconds from the start of `command` to the picture that has `sign` in it, each time."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            began = time.perf_counter()
            with on_terminal(command, (80, 24), environment(Path(folder))) as terminal:
                found.append((terminal.wait_for(sign, 20) - began) * 1e3)
    return found


def ends(command: list[str], times: int) -> list[float]:
    """Milliseconds from the start of `command` to its end, each time."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found.append((time.perf_counter() - began) * 1e3)
    return found


@contextmanager
def all_cores_busy() -> Iterator[None]:
    """A spinning process for each core, at ordinary priority, as a QEMU's vCPU thread is."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.send_signal(signal.SIGKILL)
            spinner.wait()


def key_presses(turns: Sequence[tuple[bytes, str]], times: int) -> list[float]:
    """Milliseconds from each of `turns` to the changed screen, over and over, while a run goes on."""
    found = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(busy_run(folder))
        console = stack.enter_context(on_terminal(PROGRAM, (80, 24), environment(folder)))
        console.wait_for("LIVE", 20)
        console.drain(3)
        for key, sign in turns:  # Every screen once, so that what is loaded late has been loaded.
            console.type(key)
            console.wait_for(sign, 20)
            console.drain(0.5)
        for number in range(times):
            key, sign = turns[number % len(turns)]
            began = time.perf_counter()
            console.type(key)
            found.append((console.wait_for(sign, 20) - began) * 1e3)
            console.drain(0.3)
    return found


def report(out: Callable[[str], object], seconds: float, times: int) -> None:
    """Measure everything and print it."""
    out(f"| what, {os.cpu_count()} CPUs, load before {os.getloadavg()[0]:.1f} | figure | limit |\n| --- | --- | --- |")
    used = cost(seconds)
    for name, percent in used.items():
        out(f"| {name}, CPU of one core over {seconds:.0f} s | {percent:.2f} % | |")
    for name, limit in (("glances", 0.45), ("btop", 2.0)):
        if used.get(name):
            out(f"| vmlab over {name} | {used['vmlab'] / used[name]:.2f} | {limit} |")
    # Bytecode and warm files first: what is measured is neither the compiler nor the disk. Where
    # PYTHONDONTWRITEBYTECODE is set, every start would compile what has changed since `make setup`.
    compileall.compile_dir("vmlab", quiet=1)
    starts(PROGRAM, "LIVE", 2)
    for name, command, sign in (("console", PROGRAM, "LIVE"), ("bare Textual", [sys.executable, "-c", BARE], "READY")):
        out(f"| {name}, start to first picture | {told(starts(command, sign, times))} | 200 ms |")
    out(f"| vmlab --help, start to end | {told(ends([*PROGRAM, '--help'], times))} | 150 ms |")
    with all_cores_busy():
        presses = key_presses(TURNS, times * 4)
        escapes = key_presses(ESCAPE_TURNS, times * 2)[1::2]
    out(f"| key press to changed screen, all cores busy | {told(presses)} | p95 60 ms |")
    out(f"| the Escape key, the same way | {told(escapes)} | |")


def told(milliseconds: list[float]) -> str:
    """Median, 95th percentile and minimum."""
    ordered = sorted(milliseconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"median {statistics.median(ordered):.0f} ms, p95 {p95:.0f} ms, min {ordered[0]:.0f} ms, n {len(ordered)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--times", type=int, default=15)
    chosen = parser.parse_args()
    report(print, chosen.seconds, chosen.times)
