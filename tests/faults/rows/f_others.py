"""Other commands during a live run: a second lab, and whatever removes."""

from __future__ import annotations

import json
import signal
import subprocess

from tests.faults.row import Act, Rows
from tests.faults.world import STRUCK, TWO_CELLS, World

ROWS = Rows()
_PRIMES = "{kind: cpu, on: host, threads: 1, max_prime: 50000, events: 4000}"
_ON_HOST = f"name: struck\nworkloads: {{primes: {_PRIMES}}}\n{TWO_CELLS}"
_NAMES = ("anna", "bert", "carl")


@ROWS.add(
    "second-lab",
    "a second run is started while the first one measures",
    "exit code 3 with the first one's name; the first passes",
)
def second_lab(world: World) -> str:
    running = world.run()
    world.wait_for("WorkloadStarted", cell=STRUCK)
    world.strike()
    second = world.command("run", str(world.folder / "struck.yaml"), "--size", "full")
    words = world.end_of(second, 60)
    world.end_of(running, 120)
    world.is_over()
    assert (second.returncode, running.returncode) == (3, 0), (second.returncode, running.returncode, words)
    return words.strip().splitlines()[0]


@ROWS.add(
    "two-labs", "two runs are started at the same moment, both with `--wait`", "one waits for the other, both pass", 150
)
def two_labs(world: World) -> str:
    file = world.write_scenario()
    world.strike()
    both = [world.command("run", str(file), "--size", "full", "--wait") for _ in range(2)]
    for one in both:
        world.end_of(one, 300)
    world.is_over()
    assert [one.returncode for one in both] == [0, 0], [one.returncode for one in both]
    runs = world.runs()
    assert [run["outcome"] for run in runs] == ["passed", "passed"], runs
    return "both passed, one after the other"


def _behind_one_that_measures(world: World, count: int) -> list[subprocess.Popen[str]]:
    """So many runs of one cell that wait, in order of their names, while another one measures. None has a guest."""
    world.run(_ON_HOST)
    world.wait_for("CellStarted")
    waiting: list[subprocess.Popen[str]] = []
    for name in _NAMES[:count]:
        file = world.write_scenario(_ON_HOST.replace("struck", name), f"{name}.yaml")
        waiting.append(world.command("run", str(file), "--size", "full", "--wait"))
        world.until(lambda: len(_waiting(world)) == len(waiting), f"{name} in the queue")
    return waiting


def _waiting(world: World) -> list[str]:
    listed = json.loads(world.home.vmlab("ls", "--json").stdout)["waiting"]
    return [str(one["name"]) for one in listed]


def _served(world: World) -> list[str]:
    """The scenarios of the runs that have passed, in the order of their start. Fails where two were at once."""
    world.until(lambda: not _waiting(world), "the end of the queue", 300)
    world.is_over()
    runs = world.runs()[::-1]
    assert all(run["outcome"] == "passed" for run in runs), runs
    moments = [moment for run in runs for moment in (run["started"], run["ended"])]
    assert moments == sorted(moments), moments
    return [str(run["scenario"]) for run in runs]


@ROWS.add(
    "wait-in-order",
    "three runs are started with `--wait` one after the other while a run measures",
    "they begin in that order, one at a time",
    360,
    guests=False,
)
def wait_in_order(world: World) -> str:
    waiting = _behind_one_that_measures(world, 3)
    world.strike(measured=False)
    for one in waiting:
        world.end_of(one, 300)
    served = _served(world)
    assert served == ["struck", *_NAMES], served
    return f"they began in the order {', '.join(served[1:])}; all passed"


@ROWS.add(
    "kill-waiter",
    "kill -9 of the first of two runs that wait",
    "the second one begins as soon as the run has ended",
    360,
    guests=False,
)
def kill_waiter(world: World) -> str:
    first, second = _behind_one_that_measures(world, 2)
    world.strike(measured=False)
    first.kill()
    world.end_of(second, 300)
    served = _served(world)
    assert served == ["struck", "bert"], served
    return "the second one had its turn, and passed"


@ROWS.add(
    "stop-waiter",
    "SIGSTOP to the first of two runs that wait, SIGCONT when the second one has passed",
    "it is skipped while it is stopped, and has its turn when it continues",
    360,
    guests=False,
)
def stop_waiter(world: World) -> str:
    first, second = _behind_one_that_measures(world, 2)
    world.strike(measured=False)
    first.send_signal(signal.SIGSTOP)
    try:
        world.end_of(second, 300)
    finally:
        first.send_signal(signal.SIGCONT)
    world.end_of(first, 300)
    served = _served(world)
    assert served == ["struck", "bert", "anna"], served
    return "the second one was before it, and both passed"


def _beside(command: tuple[str, ...], code: int) -> Act:
    """A command that removes, while guests run from what it would remove."""

    def act(world: World) -> str:
        running = world.run()
        world.wait_for("WorkloadStarted", cell=STRUCK)
        names = [path.name for path in (world.cache / f"{command[0]}s").glob("*") if path.is_dir()]
        named = [name for name in names if "." not in name][:1] if command[0] != "clean" else []
        if command[0] == "snapshot":
            named = [name for name in names if name.startswith("plain-")]
        world.strike()
        done = world.home.vmlab(*command, *named, timeout=60)
        words = world.end_of(running, 120)
        world.is_over()
        assert done.returncode == code, (done.returncode, done.stderr)
        assert running.returncode == 0, (running.returncode, words)
        assert world.ended()["outcome"] == "passed"
        return f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()}; the run passed"

    return act


ROWS.add("clean-live", "`vmlab clean` during a live run", "it leaves the run alone, which passes")(
    _beside(("clean",), 0)
)
ROWS.add("image-rm-live", "`vmlab image rm` of the image that a live run uses", "refused; the run passes")(
    _beside(("image", "rm"), 3)
)
ROWS.add("snapshot-rm-live", "`vmlab snapshot rm` of the snapshot that a live run uses", "refused; the run passes")(
    _beside(("snapshot", "rm"), 3)
)
