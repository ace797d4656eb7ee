"""The cache mode switched a hundred times under guests that saturate an emulated disk."""

from __future__ import annotations

import statistics

from tests.faults.row import Rows
from tests.faults.world import World
from vmlab.lab.commands.verbs import ChangeRunning
from vmlab.lab.process.run_folder import RunFolder

ROWS = Rows()
SWITCHES = 100
LONGEST_MS = 300.0
_FIO = "rw: randread, block: 4 KiB, size: 512 MiB, time: 160 s, depth: 16, engine: posixaio, direct: true"
_SATURATED = f"""
name: struck
guests:
  a: {{vcpus: 1, memory: 256 MiB, cache: none}}
  b: {{vcpus: 1, memory: 256 MiB, cache: none}}
  c: {{vcpus: 1, memory: 256 MiB, cache: none}}
workloads:
  at-a: {{kind: fio, on: a, {_FIO}}}
  at-b: {{kind: fio, on: b, {_FIO}}}
  at-c: {{kind: fio, on: c, {_FIO}}}
host: {{disk: hdd-7200}}
limits: {{start_skew: 1 h, clock_drift_percent: 100}}
allow: {{noise: true}}
"""


@ROWS.add(
    "hundred-switches",
    "the cache mode of three guests with 16 requests each in flight on an emulated disk is switched 100 times",
    "each switch is proved, no guest pauses for more than 300 ms, what was read is verified, the cell is invalid",
    240,
    alone=True,
)
def hundred_switches(world: World) -> str:
    running = world.run(_SATURATED)
    world.wait_for("WorkloadStarted", cell=1)
    (path,) = world.home.state.glob("vmlab/runs/2*")
    folder = RunFolder(path.name, path)
    world.strike()
    pauses: list[float] = []
    for number in range(SWITCHES):
        done = ChangeRunning(origin="tests.faults", cache=("writeback", "none")[number % 2]).ask(folder)
        pauses += [value for value in done["pauses_ms"].values() if value is not None]
    words = world.end_of(running, 200)
    world.is_over()
    said = world.reason(1)
    assert world.ended(1)["outcome"] == "invalid", (said, words)
    told = f"stood still for {statistics.median(pauses):.0f} ms in the median, {max(pauses):.0f} ms at most"
    late = sum(one > LONGEST_MS for one in pauses)
    assert not late, f"{late} of {len(pauses)} times a guest stood still for more than {LONGEST_MS:.0f} ms; {told}"
    return f"{SWITCHES} switches; a guest {told}; cell invalid"
