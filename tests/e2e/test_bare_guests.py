"""Servers on the host itself: measured, and gone with whoever is killed. No virtual machine is started."""

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import Home, wait_until

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]

SERVERS = ("mariadbd", "postgres", "apache2", "smbd", "master")
SCENARIO = """
name: served
guests:
  client: {{vcpus: 1, memory: 256 MiB, on: host}}
  server: {{role: [database, web, mail, fileserver], vcpus: 1, memory: 768 MiB, on: host, smt: false}}
workloads:
  database: {{kind: oltp, from: client, to: server, engine: postgresql, transactions: {transactions}, concurrency: 2}}
  web: {{kind: http, from: client, to: server, requests: {requests}, concurrency: 2}}
allow: {{noise: true}}
"""


def scenario(home: Home, transactions: int, requests: int) -> str:
    home.state.mkdir(parents=True, exist_ok=True)
    file = home.state / "served.yaml"
    file.write_text(SCENARIO.format(transactions=transactions, requests=requests))
    return str(file)


def serving(runner: int) -> dict[str, psutil.Process]:
    """The servers below a lab's runner, which are children of its places' first processes."""
    init = psutil.Process(runner).parent()
    assert init is not None
    found: dict[str, psutil.Process] = {}
    for one in init.children(recursive=True):
        try:
            found.setdefault(one.name(), one)
        except psutil.NoSuchProcess:
            continue
    return {name: found[name] for name in SERVERS if name in found}


def cgroups() -> list[str]:
    return [str(one) for one in Path("/sys/fs/cgroup").rglob("qemu-embed-*-bare-*")]


def test_servers_on_the_host_are_measured_on_their_cpus_and_nothing_is_left(home: Home) -> None:
    done = home.vmlab("run", scenario(home, 200, 20), "--verbose")
    assert done.returncode == 0, done.stderr
    document = home.show()
    (cell,) = document["cells"]
    assert cell["provision"]["guests"] == 0
    assert {one["guest"] for one in cell["measurements"]} == {"host"}
    assert {one["workload"] for one in cell["measurements"] if one["metric"] == "run_time"} == {"database", "web"}
    assert "t1-server on the host has CPU " in done.stderr
    assert "TCG" not in home.vmlab("show", "last").stdout.partition("guests are emulated")[0]
    assert (home.processes(), home.leftovers(), cgroups()) == ([], [], [])


_NIGHTLY = [pytest.param(victim, marks=pytest.mark.nightly) for victim in ("launcher_pid", "init")]


@pytest.mark.parametrize("victim", ["runner_pid", *_NIGHTLY, "first process of a place"])
def test_whoever_is_killed_no_server_stays(home: Home, victim: str) -> None:
    watcher = home.spawn("run", scenario(home, 10**6, 10**5))
    wait_until(lambda: [e["kind"] for e in home.events()].count("WorkloadStarted") == 2, 400, "both workloads")
    noted = json.loads(next(home.state.glob("vmlab/runs/*/runner.json")).read_text())
    servers = serving(noted["runner_pid"])
    assert set(servers) == set(SERVERS)
    assert len({Path(f"/proc/{one.pid}/ns/pid").readlink() for one in servers.values()}) == 1
    # Kept to the one CPU that it was given, in a network that is neither the host's nor the runner's.
    assert {len(os.sched_getaffinity(one.pid)) for one in servers.values()} == {1}
    networks = {os.readlink(f"/proc/{pid}/ns/net") for pid in ("self", noted["runner_pid"])}  # noqa: PTH115
    assert not networks & {os.readlink(f"/proc/{one.pid}/ns/net") for one in servers.values()}  # noqa: PTH115
    assert cgroups()
    match victim:
        case "init":
            pid = psutil.Process(noted["runner_pid"]).ppid()
        case "first process of a place":
            pid = servers["postgres"].ppid()
        case _:
            pid = noted[victim]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not [one for one in servers.values() if one.is_running()], 60, "the end of the servers")
    wait_until(lambda: not [p for p in home.processes() if p != watcher.pid], 120, "the end of all processes")
    _, words = watcher.communicate(timeout=240)
    assert watcher.returncode == 1, words
    assert home.vmlab("clean").returncode == 0
    assert (home.leftovers(), cgroups()) == ([], [])
    assert "nothing to clean" in home.vmlab("clean").stderr
    assert str(home.state) not in Path("/proc/self/mounts").read_text()
