"""What the recorder costs, how late it is and how it stores, beside the tools that one would otherwise run.

``python -m bench.telemetry`` prints tables; ``--soak 600`` adds ten minutes with twelve guests' worth of figures.
The twelve guests are SYNTHETIC here: figures of libvirt's form, made up each tick, and idle processes that stand for
their QEMUs. The tools run at the same time as the recorder, so that all see the same host.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.busy import busy
from bench.support.process_cpu import TreeCpu
from bench.support.rivals import RIVALS, NotHere, running
from tests.measured_on import processor
from vmlab.model.sample import Sample, SampleNames
from vmlab.store.reader import RunReader
from vmlab.store.samples import SampleWriter, samples, series
from vmlab.store.writer import RunWriter

GUESTS = 12
WARM_UP = 10.0
"""Seconds; a cell is watched more often in its first five."""
LATENESS_TICKS = 1000


@contextmanager
def recorder(interval: float, store: Path, *, realtime: bool = True) -> Iterator[int]:
    """The recorder as in a run: twelve guests, a store of its own, in a PID namespace where that is allowed."""
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] if os.geteuid() == 0 else []
    command = [*alone, sys.executable, "-m", "bench.support.recorder_process", f"{interval:g}", str(store), str(GUESTS)]
    with running([*command, *([] if realtime else ["--no-realtime"])]) as pid:
        yield pid


def cost(interval: float, seconds: float, folder: Path, tools: list[str]) -> dict[str, float | str]:
    """CPU of vmlab and of `tools` in percent of one core over the same `seconds`; a text where one was not measured."""
    figures: dict[str, float | str] = {}
    trees: dict[str, TreeCpu] = {}
    with ExitStack() as stack:
        trees["vmlab"] = TreeCpu([stack.enter_context(recorder(interval, folder / f"cost-{interval:g}.db"))])
        for name in tools:
            try:
                trees[name] = TreeCpu(stack.enter_context(RIVALS[name](interval, folder)))
            except NotHere as why:
                figures[name] = str(why)
        time.sleep(WARM_UP)
        began = time.monotonic()
        for tree in trees.values():
            tree.begin()
        while time.monotonic() < began + seconds:
            time.sleep(min(1.0, seconds / 10))
            for tree in trees.values():
                tree.look()
        passed = time.monotonic() - began
        for name, tree in trees.items():
            figures[name] = tree.seconds / passed * 100 if tree.alive else "ended by itself"
    return figures


def top_cost(seconds: float) -> float:
    """CPU of ``vmlab top --json`` at 1 Hz, the CPUs' probe included, in percent of one core; without guests."""
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] if os.geteuid() == 0 else []
    with running([*alone, sys.executable, "-m", "vmlab", "top", "--json"]) as pid:
        tree = TreeCpu([pid])
        time.sleep(WARM_UP)
        began = time.monotonic()
        tree.begin()
        time.sleep(seconds)
        tree.look()
        return tree.seconds / (time.monotonic() - began) * 100


def lateness(folder: Path, *, realtime: bool) -> tuple[list[float], list[float]]:
    """Seconds after its deadline of each of a thousand ticks at 50 Hz, sorted, with a spinner more than CPUs.

    The second list leaves out ticks in which a hypervisor underneath this host took a CPU away (steal).
    """
    interval = 0.02
    seconds = LATENESS_TICKS * interval + 1
    store = folder / f"late-{realtime}.db"
    with busy((os.cpu_count() or 1) + 1, seconds + 60), recorder(interval, store, realtime=realtime):
        time.sleep(seconds)
    with RunReader(store) as reader:
        taken = [sample for _, sample in samples(reader)]
    late = sorted(sample.lateness for sample in taken)
    return late, sorted(sample.lateness for sample in taken if not sample.get("cpu_steal_percent") > 0)


def store_cost(values: int, ticks: int, folder: Path) -> tuple[float, float, float]:
    """Bytes a value, milliseconds of CPU to keep a tick, milliseconds to open the store and read one series."""
    own = ("tick_length_seconds", "tick_lateness_seconds")
    layout = SampleNames.of([*own, *(f"value_ms[{number}]" for number in range(values - 2))])
    path = folder / f"store-{values}.db"
    writer = RunWriter(path)
    sink = SampleWriter(writer)
    rows = [Sample(t, t, 1.0, 0.0, layout, tuple(t * 1.1 + n for n in range(values))) for t in range(ticks)]
    began = time.process_time()
    for row in rows:
        sink(row)
    each = (time.process_time() - began) / ticks * 1e3
    writer.close()
    return (
        path.stat().st_size / values / ticks,
        each,
        min(_read_ms(path, f"value_ms[{values // 2}]") for _ in range(20)),
    )


def _read_ms(path: Path, name: str) -> float:
    began = time.perf_counter()
    with RunReader(path) as reader:
        read = series(reader, name)
    assert len(read.values) > 0
    return (time.perf_counter() - began) * 1e3


def soak(seconds: float, interval: float, folder: Path) -> str:
    """A long recording; what it missed and how late it was."""
    store = folder / "soak.db"
    with recorder(interval, store):
        time.sleep(seconds + 1.5)
    with RunReader(store) as reader:
        taken = [sample for _, sample in samples(reader) if sample.mono]
    taken = taken[: round(seconds / interval)]
    missed = sum(sample.get("ticks_missed") for sample in taken)
    late = sorted(sample.lateness for sample in taken)
    unanswered = sum(
        sample.get("guest_cpu_percent[guest-0]") != sample.get("guest_cpu_percent[guest-0]") for sample in taken
    )
    size = store.stat().st_size / sum(len(sample.values) for sample in taken)
    return (
        f"{len(taken)} of {round(seconds / interval)} ticks, {missed:.0f} missed, {unanswered} without guests,"
        f" {len(taken[-1].values)} values each; late: median {late[len(late) // 2] * 1e3:.2f} ms,"
        f" p99 {late[int(len(late) * 0.99)] * 1e3:.2f} ms, worst {late[-1] * 1e3:.2f} ms;"
        f" {size:.1f} bytes a value; one series in {_read_ms(store, 'cpu_user_percent'):.1f} ms"
    )


def _lateness_words(late: list[float]) -> str:
    return (
        f"{len(late)} ticks, median {late[len(late) // 2] * 1e3:.3f} ms,"
        f" p99 {late[int(len(late) * 0.99)] * 1e3:.3f} ms, worst {late[-1] * 1e3:.3f} ms"
    )


def machine() -> str:
    """What the figures were measured on."""
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    today = datetime.datetime.now().astimezone().date().isoformat()
    return f"{today}, {os.cpu_count()} CPUs {processor()}, Linux {platform.release()}, load before {load}"


def print_cost(tables: dict[float, dict[str, float | str]]) -> None:
    """One row a tool: percent of a core, and that as a multiple of the recorder's."""
    print("| tool | " + " | ".join(f"{1 / interval:g} Hz | times vmlab" for interval in tables) + " |")
    print("| --- |" + " ---: | ---: |" * len(tables))
    for name in next(iter(tables.values())):
        cells = []
        for figures in tables.values():
            value, ours = figures[name], figures["vmlab"]
            if isinstance(value, float) and isinstance(ours, float):
                cells += [f"{value:.3f} %", f"{value / ours:.2f}"]
            else:
                cells += [f"{value}", ""]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each cost window is")
    parser.add_argument("--load", type=int, default=0, help="processes that keep CPUs and caches busy during the cost")
    parser.add_argument("--beside", nargs="*", choices=list(RIVALS), default=list(RIVALS), help="the tools to compare")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of a long recording at 1 Hz")
    parser.add_argument("--only", choices=["cost", "top", "lateness", "store", "soak"], help="one part alone")
    asked = parser.parse_args()
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    folder = Path(tempfile.mkdtemp(prefix="vmlab-bench-"))
    print(f"{machine()}\n")
    try:
        run_parts(asked, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_parts(asked: argparse.Namespace, folder: Path) -> None:
    """The parts in order, each with its heading."""
    if asked.only in (None, "cost"):
        beside = f", beside {asked.load} busy processes" if asked.load else ""
        print(f"CPU, % of one core over {asked.seconds:g} s, {GUESTS} synthetic guests for vmlab{beside}")
        with busy(asked.load, 4 * asked.seconds + 240):
            print_cost({interval: cost(interval, asked.seconds, folder, asked.beside) for interval in (1.0, 0.1)})
    if asked.only in (None, "top"):
        print(
            f"\nvmlab top --json, 1 Hz, no guests: {top_cost(asked.seconds):.3f} % of one core over {asked.seconds:g} s"
        )
    if asked.only in (None, "lateness"):
        for realtime in (True, False):
            every, unstolen = lateness(folder, realtime=realtime)
            print(f"\nLateness, every core busy, {'SCHED_FIFO 1' if realtime else 'no priority'}")
            print(f"  all ticks: {_lateness_words(every)}\n  ticks without steal: {_lateness_words(unstolen)}")
    if asked.only in (None, "store"):
        for values in (394, 2400):
            size, keep, read = store_cost(values, 600, folder)
            print(
                f"\nStore, {values} values, 600 ticks: {size:.2f} bytes a value, {keep:.3f} ms of CPU a tick,"
                f" one series in {read:.2f} ms"
            )
    if asked.soak or asked.only == "soak":
        print(f"\nLong recording at 1 Hz, {GUESTS} synthetic guests: {soak(asked.soak or 600.0, 1.0, folder)}")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
