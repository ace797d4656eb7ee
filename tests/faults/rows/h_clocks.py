"""Clocks that step: that of a guest, and that of the host as the lab's processes see it."""

from __future__ import annotations

import os
import subprocess
import time

from tests.faults.row import Act, Rows
from tests.faults.world import CHECKOUT, SCENARIO, STRUCK, World, beside

ROWS = Rows()
_SOURCE = CHECKOUT / "tests/faults/stepped_clock.c"


def _guest(step: str) -> Act:
    def act(world: World) -> str:
        running = world.run(beside(f'sleep 1; date -s "{step}"'))
        world.wait_for("WorkloadStarted", cell=STRUCK, workload="bad")
        world.strike()
        words = world.end_of(running, 150)
        world.is_over()
        end = world.ended()
        assert (end["outcome"], running.returncode) == ("passed", 0), (end["reasons"], words)
        times = [e for e in world.home.events() if e["kind"] == "MeasurementTaken" and e["metric"] == "run_time"]
        first, second = (
            next(e["value"] for e in times if e["cell"] == cell and e["workload"] == "work") for cell in (1, 2)
        )
        assert 0 < second < end["wall_seconds"] + 0.5, (second, end["wall_seconds"], words)
        return f"cell 2 passed, run time {second:.1f} s against {first:.1f} s in cell 1"

    return act


ROWS.add(
    "guest-clock-back",
    "the guest's clock steps back by an hour while it works",
    "cell 2 passes, and its durations are right",
    90,
)(_guest("-1 hour"))
ROWS.add(
    "guest-clock-forward",
    "the guest's clock steps forward by an hour while it works",
    "cell 2 passes, and its durations are right",
    90,
)(_guest("+1 hour"))


def _host(step: str) -> Act:
    """The wall clock of launcher, init, runner and commands steps; the machine's own is left alone."""

    def act(world: World) -> str:
        library, ahead = world.folder / "stepped_clock.so", world.folder / "ahead"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"], check=True)
        ahead.write_text("0")
        stepped = {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(ahead)}
        os.environ.update(stepped)
        starting = world.run(SCENARIO, "--detach")
        for name in stepped:
            del os.environ[name]
        world.end_of(starting, 120)
        world.wait_for("WorkloadStarted", cell=STRUCK)
        world.strike()
        ahead.write_text(step)
        now = time.time()
        finished = world.wait_for("RunnerFinished", 150)
        world.is_over()
        end = world.ended()
        seen = end["wall"] - now
        assert abs(seen) > 1800, f"the clock did not step: {seen:.0f} s"
        assert finished["outcome"] == end["outcome"] == "passed", (finished, end)
        values = [
            e["value"] for e in world.home.events() if e["kind"] == "MeasurementTaken" and e["metric"] == "run_time"
        ]
        assert all(0 < value < 60 for value in values), values
        told = ", ".join(f"{value:.1f} s" for value in values)
        return f"2 cells passed, run times {told}; times of day differ by {seen:+.0f} s"

    return act


ROWS.add(
    "host-clock-back",
    "the wall clock of launcher and runner steps back by an hour (by the test's own library)",
    "the run passes, durations are right",
    90,
)(_host("-3600"))
ROWS.add(
    "host-clock-forward",
    "the wall clock of launcher and runner steps forward by an hour (by the test's own library)",
    "the run passes, durations are right",
    90,
)(_host("3600"))
