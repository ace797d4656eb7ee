"""Guests that fill their disks, panic, stand still, never boot or fall silent; servers that die, clients that hang."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from tests.faults.row import Act, Rows
from tests.faults.world import SCENARIO, STRUCK, TWO_CELLS, World, beside
from tests.processes import processes

ROWS = Rows()


def _spoilt(text: str, told: str, *, at: str = "execute", code: int = 1, seconds: float = 150.0) -> Act:
    """A run whose second cell spoils itself; `told` is in its reasons."""

    def act(world: World) -> str:
        running = world.run(text)
        world.wait_for("PhaseStarted", cell=STRUCK, phase=at)
        world.strike()
        words = world.end_of(running, seconds)
        world.is_over()
        said = world.reason()
        assert told in said, said
        assert running.returncode == code, (running.returncode, words)
        return said

    return act


ROWS.add(
    "guest-disk-full",
    "the guest's own disk is filled before its workload writes to it",
    "cell 2 failed; the workload's own words",
    90,
)(
    _spoilt(
        beside(
            "fallocate -l $(df --output=avail -B1 / | tail -1) /var/filling; cat /dev/zero > /var/rest; true",
            when="prepare",
            work="{kind: bonnie, on: vm, size: 64 MiB, characters: 0}",
        ),
        "work",
        at="prepare",
    )
)
ROWS.add(
    "guest-panic",
    "the guest's kernel panics while its workload runs",
    "cell 2 failed, with the guest's name, before any deadline of its client",
    120,
)(_spoilt(beside("sleep 1; echo c > /proc/sysrq-trigger"), "vm"))
ROWS.add(
    "client-hangs",
    "a client runs past its deadline of 10 s",
    "cell 2 failed at the deadline, with the client's name",
    60,
)(_spoilt(beside("sleep 300", deadline="10 s"), "bad"))
ROWS.add(
    "client-prints", "a workload prints 512 MiB", "cell 2 failed, at the latest at the deadline of its client", 120
)(_spoilt(beside("head -c 536870912 /dev/zero", deadline="90 s"), "bad"))


@ROWS.add(
    "qemu-stopped",
    "SIGSTOP of QEMU for 5 s while its guest works, then SIGCONT",
    "cell 2 invalid, with the duration",
    90,
)
def qemu_stopped(world: World) -> str:
    running = world.run()
    world.wait_for("WorkloadStarted", cell=STRUCK)
    victim = world.qemu
    world.strike()
    os.kill(victim, signal.SIGSTOP)
    time.sleep(5)
    os.kill(victim, signal.SIGCONT)
    world.end_of(running, 150)
    world.is_over()
    said = world.reason()
    assert "its QEMU was stopped for" in said, said
    assert running.returncode == 4, running.returncode
    return said


@ROWS.add(
    "never-boots",
    "SIGSTOP of QEMU as soon as it starts, so that the guest never boots",
    "the cell failed at the boot's deadline (135 s), guest removed",
    260,
)
def never_boots(world: World) -> str:
    running = world.run(SCENARIO.replace("repeats: 2", "repeats: 1"), "--cold")
    victim = world.until(lambda: processes("qemu-system", world.home.state), "QEMU")[0]
    world.strike()
    os.kill(victim, signal.SIGSTOP)
    world.end_of(running, 260)
    world.is_over()
    assert running.returncode == 1, running.returncode
    return world.reason(1)


def _cable_pulled(world: World, seconds: float | None) -> subprocess.Popen[str]:
    """A run whose only guest loses its cable in phase prepare, for some seconds or for good; it is reached by SSH."""
    running = world.run(SCENARIO.replace("repeats: 2", "repeats: 1"), "--cold")
    world.wait_for("PhaseStarted", cell=1, phase="prepare")
    inside = ["nsenter", "-t", str(world.runner["runner_pid"]), "-n"]
    links = subprocess.run([*inside, "ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    taps = [line.split(": ")[1].split("@")[0] for line in links.splitlines() if ": vnet" in line]
    assert taps, links
    world.strike()
    for tap in taps:
        subprocess.run([*inside, "ip", "link", "set", tap, "down"], check=True)
    if seconds is not None:
        time.sleep(seconds)
        for tap in taps:
            subprocess.run([*inside, "ip", "link", "set", tap, "up"], check=True)
    return running


@ROWS.add(
    "silent-20-s",
    "the guest's cable is pulled for 20 s while its workload is prepared over SSH",
    "the preparation waits for the guest, and the cell passes",
    120,
)
def silent_for_a_while(world: World) -> str:
    running = _cable_pulled(world, 20.0)
    world.end_of(running, 200)
    world.is_over()
    end = world.ended(1)
    assert (end["outcome"], running.returncode) == ("passed", 0), (end["reasons"], running.returncode)
    return "exit code 0, cell 1 passed"


@ROWS.add(
    "silent-for-good",
    "the guest's cable is pulled for good while its workload is prepared over SSH",
    "cell 1 failed at a deadline, with the guest's name; the guest is removed",
    270,
)
def silent_for_good(world: World) -> str:
    running = _cable_pulled(world, None)
    words = world.end_of(running, 290)
    world.is_over()
    said = world.reason(1)
    assert "vm" in said, said
    assert running.returncode == 1, (running.returncode, words)
    return said


@ROWS.add(
    "agent-stopped",
    "the guest's agent is stopped for good while its workload runs",
    "the cell is measured without it, and passes; the guest is removed",
    240,
)
def agent_stopped(world: World) -> str:
    text = beside("sleep 1; pkill -STOP qemu-ga")
    running = world.run(text)
    world.wait_for("WorkloadStarted", cell=STRUCK, workload="bad")
    world.strike()
    world.end_of(running, 240)
    world.is_over()
    end = world.ended()
    assert (end["outcome"], running.returncode) == ("passed", 0), (end["reasons"], running.returncode)
    return "exit code 0, cell 2 passed"


@ROWS.add(
    "server-dies",
    "PostgreSQL is killed with -9 while a client works on it",
    "cell 2 failed, in the client's words",
    120,
)
def server_dies(world: World) -> str:
    text = """
name: struck
guests:
  near: {vcpus: 1, memory: 256 MiB}
  vm: {vcpus: 1, memory: 512 MiB, role: database}
workloads:
  database: {kind: oltp, from: near, to: vm, engine: postgresql, transactions: 300, concurrency: 2}
  bad: {kind: misdeed, on: vm, from_cell: 2, do: "sleep 1; pkill -9 postgres"}
"""
    running = world.run(text + TWO_CELLS)
    world.wait_for("WorkloadStarted", cell=STRUCK, workload="bad")
    world.strike()
    world.end_of(running, 150)
    world.is_over()
    said = world.reason()
    assert "database" in said, said
    return said


@ROWS.add(
    "out-of-memory",
    "a guest of 256 MiB on a limited host of 192 MiB, which `--allow-overcommit` permits",
    "cell failed: the kernel killed its QEMU",
    90,
)
def out_of_memory(world: World) -> str:
    text = beside("sleep 1; mount -o remount,size=240m /dev/shm; head -c 230M /dev/urandom > /dev/shm/filling")
    running = world.run(text + "host: {memory: 192 MiB}\n", "--allow-overcommit")
    world.wait_for("CellStarted", cell=STRUCK)
    world.strike()
    world.end_of(running, 150)
    world.is_over()
    return world.reason()
