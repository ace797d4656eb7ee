"""Tools that do less than they were asked for, or say that they took another time: all in the guest of cell 2."""

from __future__ import annotations

import base64

from tests.fakes.sysbench import cpu_report
from tests.faults.row import Act, Rows
from tests.faults.world import STRUCK, TWO_CELLS, World

ROWS = Rows()
_LIMIT, _EVENTS = 10_000, 1200
"""Some two seconds of CPU time under TCG."""
_WORK = f"{{kind: cpu, on: GUEST, threads: 1, max_prime: {_LIMIT}, events: {_EVENTS}}}"
_REAL = "/usr/bin/sysbench.real"


def _replaced(program: str) -> str:
    """A scenario with two guests that do the same, one of them by `program` in place of sysbench in the second cell."""
    coded = base64.b64encode(f"#!/bin/sh\n{program}\n".encode()).decode()
    # While it is prepared, sysbench is run as well.
    put = f"cp /usr/bin/sysbench {_REAL}; echo {coded} | base64 -d > /usr/bin/new; chmod 755 /usr/bin/new"
    do = f"{put}; mv /usr/bin/new /usr/bin/sysbench"
    guest = "{vcpus: 1, memory: 256 MiB}"
    return f"""
name: struck
guests: {{honest: {guest}, vm: {guest}}}
workloads:
  honest: {_WORK.replace("GUEST", "honest")}
  work: {_WORK.replace("GUEST", "vm")}
  bad: {{kind: misdeed, on: vm, from_cell: 2, when: prepare, do: '{do}'}}
{TWO_CELLS}"""


def _told(program: str, reason: str, code: int) -> Act:
    """Its second cell counts for nothing, and `reason` says why."""

    def act(world: World) -> str:
        running = world.run(_replaced(program))
        world.wait_for("CellStarted", cell=STRUCK)
        world.strike()
        words = world.end_of(running, 300)
        world.is_over()
        said = world.reason()
        assert reason in said, said
        assert "honest" not in said, said
        assert running.returncode == code, (running.returncode, words)
        return said

    return act


ROWS.add(
    "work-of-another-size",
    "sysbench in a guest is replaced by one that looks for primes up to 100 instead of 10,000",
    "cell 2 failed, with both numbers",
    240,
)(
    _told(
        f'exec {_REAL} $(echo "$@" | sed s/max-prime={_LIMIT}/max-prime=100/)',
        f"limit of sysbench's prime numbers: 100, but {_LIMIT} were asked for",
        1,
    )
)
ROWS.add(
    "work-in-no-time",
    "sysbench in a guest is replaced by one that works correctly but reports that it took 0.1 s",
    "cell 2 failed, with both times",
    240,
)(
    _told(
        f'{_REAL} "$@" | sed -e "s/total time: .*/total time: 0.1000s/" -e "s/ sum: .*/ sum: 90.00/"',
        "cpu reports 0.100 s of work, but its client ran for ",
        1,
    )
)
ROWS.add(
    "work-not-done",
    "sysbench in a guest is replaced by one that sleeps for 4 s but reports all requested work as done",
    "cell 2 invalid, with the CPU time that its guest used and the least that the same work took before",
    240,
)(_told(f"sleep 4\ncat <<'END'\n{cpu_report(limit=_LIMIT, events=_EVENTS, seconds=4.0)}\nEND", "its guest used ", 4))
