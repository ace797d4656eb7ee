"""Settings of the host that a killed lab had changed, programs on it that stand still, and what a guest reaches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.faults.row import Rows
from tests.faults.rows.b_kills import disk_server
from tests.faults.world import READING_EMULATED, SCENARIO, STRUCK, World, beside
from tests.processes import named
from vmlab.model.names import BRIDGE, HOST_ADDRESS

ROWS = Rows()


@ROWS.add(
    "kill-with-settings",
    "kill -9 of launcher and runner while the read-ahead of the run's disk is changed",
    "`vmlab clean` restores it",
    60,
)
def kill_with_settings(world: World) -> str:
    # A disk of the row's own: no setting of the machine itself is changed.
    world.small_disk(world.home.state, 800)
    device = world.home.state.stat().st_dev
    (setting,) = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue").glob("read_ahead_kb")
    before = setting.read_text()
    running = world.run(SCENARIO + "host: {read_ahead: 4 MiB}\n")
    world.wait_for("WorkloadStarted", cell=STRUCK)
    during = setting.read_text()
    assert during.strip() == "4096", f"the read-ahead is {during}"
    pids = world.runner
    world.strike()
    os.kill(pids["launcher_pid"], signal.SIGKILL)
    # The kernel ends the runner with the launcher, before or after this line.
    with suppress(ProcessLookupError):
        os.kill(pids["runner_pid"], signal.SIGKILL)
    world.end_of(running, 120)
    left = setting.read_text()
    cleaned = world.home.vmlab("clean")
    world.is_over()
    assert cleaned.returncode == 0, cleaned.stderr
    assert setting.read_text() == before, f"the read-ahead is {setting.read_text()}, was {before}"
    told = [f"{text.strip()} KiB" for text in (during, left, before)]
    return f"read-ahead {told[0]} during, {told[1]} after the kill, {told[2]} after `vmlab clean`, as before"


@ROWS.add(
    "host-program-stopped",
    "SIGSTOP of a workload's program on the host for 5 s",
    "the cell is invalid, with the duration",
    90,
)
def host_program_stopped(world: World) -> str:
    text = (
        SCENARIO.replace("on: vm", "on: host")
        .replace("guests: {vm: {vcpus: 1, memory: 256 MiB}}\n", "")
        .replace("events: 2500", "events: 30000")
    )
    running = world.run(text)
    world.wait_for("WorkloadStarted", cell=STRUCK)
    victim = world.until(lambda: named("sysbench"), "sysbench")[0].pid
    world.strike()
    os.kill(victim, signal.SIGSTOP)
    time.sleep(5)
    os.kill(victim, signal.SIGCONT)
    world.end_of(running, 120)
    world.is_over()
    said = world.reason()
    assert running.returncode == 4 and "was stopped for" in said, (running.returncode, said)
    return said


@ROWS.add(
    "emulated-disk-stopped",
    "SIGSTOP of the emulated disk's process for 5 s while the guest reads from it",
    "the cell is invalid, with the duration",
    120,
)
def emulated_disk_stopped(world: World) -> str:
    running = world.run(READING_EMULATED)
    world.wait_for("WorkloadStarted", cell=STRUCK)
    victim = disk_server()
    world.strike()
    os.kill(victim, signal.SIGSTOP)
    time.sleep(5)
    os.kill(victim, signal.SIGCONT)
    world.end_of(running, 150)
    world.is_over()
    said = world.reason()
    assert "disk" in said, said
    return said


@ROWS.add(
    "guest-reaches-out",
    "a guest tries the addresses of the host and of the lab's bridge, and others beyond",
    "nothing answers; no link leads out of the lab's network to another lab; QEMU is in its sandbox, the launcher has "
    "no open port, and no file of the run has a private key",
    90,
)
def guest_reaches_out(world: World) -> str:
    own = [one.address for ones in psutil.net_if_addrs().values() for one in ones if one.family.name == "AF_INET"]
    # Of the internet, addresses that are kept for documentation: no packet is meant to arrive, and none may leave.
    places = [
        *(one for one in own if not one.startswith("127.")),
        HOST_ADDRESS,
        "192.0.2.80",
        "203.0.113.1",
        "198.51.100.1",
        "10.0.0.1",
    ]
    script = "; ".join(
        f'timeout 3 bash -c "exec 3<>/dev/tcp/{place}/{port}" && exit 7' for place in places for port in (22, 80)
    )
    text = beside(f"ip route show default | grep . && exit 8; {script}; true", deadline="80 s")
    running = world.run(text)
    world.wait_for("WorkloadStarted", cell=STRUCK, workload="bad")
    inside = ["nsenter", "-t", str(world.runner["runner_pid"]), "-n", "ip", "-json", "link"]
    links = json.loads(subprocess.run(inside, capture_output=True, text=True, check=True).stdout)
    kept = world.holding(b"PRIVATE KEY-")
    ports = psutil.Process(world.runner["launcher_pid"]).net_connections("inet")
    status = Path(f"/proc/{world.qemu}/status").read_text()
    world.strike()
    words = world.end_of(running, 150)
    world.is_over()
    assert running.returncode == 0, (world.ended()["reasons"], words)
    # A link to another namespace, as a veth pair makes one, would have its peer's number there.
    out = [link["ifname"] for link in links if "link_index" in link or "link_netnsid" in link]
    names = [link["ifname"] for link in links]
    assert BRIDGE in names and not out, links
    assert not kept and not ports, (kept, ports)
    assert "Seccomp:\t2" in status, status
    told = f"none of {len(places)} addresses answered on ports 22 and 80 ({', '.join(places)})"
    return f"no default route; {told}; of {', '.join(names)} none leads out"
