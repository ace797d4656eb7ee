"""The host's own guests watched, recorded and advised on, and labs beside them: none of it may touch these guests."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.host.inside import own_guests, surroundings
from tests.host.inside.lab import (
    command,
    measured,
    processes,
    require,
    run_folder,
    started,
    stopped,
    tell,
    vmlab,
    wait_until,
)
from tests.host.inside.libvirt_calls import CALL, READING
from tests.host.inside.own_guests import IDLE, OWN_GUESTS, READER, WRITER

_CALLS = Path("/run/libvirt-calls.log")
_SCENARIO = Path(__file__).with_name("primes.yaml")
_CONTRACT = "tests/hypervisor/hosts_libvirt/real_libvirtd.py"
_CONTRACT_SECONDS = 2400.0
_SIZES = ((80, 24), (120, 40), (160, 48))
_WORK_SECONDS, _END_SECONDS = 1500.0, 120.0
EMBEDDED, SYSTEM = "embedded", "qemu:///system"


def watch() -> None:
    """Ten minutes of the host's own guests: who hurts, each cache mode, a recording, a report, and advice."""
    own_guests.start()
    before, moved_before = own_guests.as_they_are(), _moved()
    with _calls_logged():
        _require_named(json.loads(vmlab("top", "--json", "--count", "15").splitlines()[-1])["domains"])
        vmlab("top", "--count", "7")
        for columns, rows in _SIZES:
            _require_shown(columns, rows)
        run = json.loads(vmlab("record", "--for", "10min", "--json", timeout=900))["run"]["id"]
    moved_after, after = _moved(), own_guests.as_they_are()
    for name, was in before.items():
        require(after[name] == was, f"{name} was\n{was}\nand is\n{after[name]}")
    vmlab("show", run)
    vmlab("advise", run)
    vmlab("report", run, "-o", "/run/report.md")
    report = Path("/run/report.md").read_text()
    tell(report)
    require(all(guest.name in report for guest in OWN_GUESTS), "the report does not name the guests")
    recording = json.loads(vmlab("show", run, "--json"))["recording"]
    _require_advised(json.loads(vmlab("advise", run, "--json")))
    for guest in (READER, WRITER):
        _require_counted(recording, guest.name, moved_after[guest.name] - moved_before[guest.name])


@contextmanager
def _calls_logged() -> Iterator[None]:
    """libvirtd writes down every call; those of the block must be reading ones alone."""
    _CALLS.write_text("")
    admin = ("virt-admin", "daemon-log-outputs"), ("virt-admin", "daemon-log-filters")
    were = [re.sub(r"^[^:]+:\s*", "", command(*argv)).strip() for argv in admin]
    command(*admin[1], "1:libvirt 3:*")
    command(*admin[0], f"1:file:{_CALLS}")
    try:
        yield
    finally:
        for argv, was in zip(admin, were, strict=True):
            command(*argv, was)
    called = CALL.findall(_CALLS.read_text())
    tell(f"calls that libvirtd served: { {name: called.count(name) for name in sorted(set(called))} }")
    require("virConnectGetAllDomainStats" in called, "libvirtd was not asked")
    require(set(called) <= READING, f"libvirtd was asked for {', '.join(sorted(set(called) - READING))}")


def _moved() -> dict[str, int]:
    """Bytes that each guest read and wrote at its data disk, as libvirt counts them."""
    found = {}
    for guest in OWN_GUESTS:
        told = dict(re.findall(r"vdb (\w+) (\d+)", command("virsh", "domblkstat", guest.name, "vdb")))
        found[guest.name] = int(told["rd_bytes"]) + int(told["wr_bytes"])
    return found


def _require_named(domains: list[dict[str, Any]]) -> None:
    """The reader comes first with what is at its limit, and each disk has its cache mode, claimed and seen."""
    for domain in domains:
        tell(f"{domain['name']}: takes {domain['takes']}, at limit {domain['at_limit']}")
    named = {domain["name"]: domain for domain in domains}
    require(domains[0]["name"] == READER.name, f"{domains[0]['name']} comes first")
    require(any("CPU" in words for words in domains[0]["at_limit"]), f"at its limit: {domains[0]['at_limit']}")
    takes = {name: domain["takes"]["percent"] for name, domain in named.items()}
    require(takes[READER.name] > 2 * takes[IDLE.name], f"the idle guest takes as much: {takes}")
    for guest in OWN_GUESTS:
        for disk in named[guest.name]["disks"]:
            found = disk["cache"], disk["o_direct"]
            require(found == (guest.cache, guest.cache == "none"), f"{guest.name} {disk['target']}: {found}")
    require({disk["format"] for disk in named[IDLE.name]["disks"]} == {"qcow2", "raw"}, "formats are wrong")


def _require_shown(columns: int, rows: int) -> None:
    """The console's Live screen names them, the reader first."""
    tmux = ("tmux", "-L", "own")
    command(*tmux, "new-session", "-d", "-x", str(columns), "-y", str(rows), "vmlab")
    try:
        # While the console starts it takes as much of the one CPU as the guests do.
        wait_until(lambda: _in_order(command(*tmux, "capture-pane", "-p")), 180, f"the guests on {columns}x{rows}")
        command(*tmux, "send-keys", "q")
        wait_until(lambda: not _session(), 60, "the end of the console")
    finally:
        if _session():
            command(*tmux, "kill-server")


def _session() -> bool:
    return subprocess.run(["tmux", "-L", "own", "has-session"], capture_output=True, check=False).returncode == 0


def _in_order(screen: str) -> bool:
    places = [screen.find(guest.name) for guest in (READER, WRITER)]
    return -1 not in places and places == sorted(places) and "writeback" in screen and " CPU " in screen


def _require_advised(document: dict[str, Any]) -> None:
    """Advice on the reader's disk alone, and for each other one the reason why there is none."""
    advised = [one["subject"] for one in document["advice"]]
    require(any(READER.name in subject for subject in advised), f"no advice on the reader, but on {advised}")
    require(not any(IDLE.name in subject for subject in advised), f"advice on the idle guest: {advised}")


def _require_counted(recording: dict[str, Any], name: str, moved: int) -> None:
    """What the recording has of the guest's bytes agrees with libvirt's own counters around it."""
    (domain,) = [one for one in recording["domains"] if one["name"] == name]
    (disk,) = [one for one in domain["disks"] if one["target"] == "vdb"]
    figures = disk["figures"]
    kept = sum(figures[f"disk_{way}_bytes_per_second"]["mean"] for way in ("read", "write"))
    tell(f"{name}: {kept:.0f} bytes a second recorded; {moved} bytes by libvirt's counters around it")
    # Screens and samples before the recording lie between the counters too.
    spans = recording["seconds"], moved / kept
    require(spans[0] <= spans[1] <= spans[0] + 400, f"{name} moved at the recorded rate for {spans[1]:.0f} s")


def lab(hypervisor: str) -> Callable[[], None]:
    """A lab beside them measures, and after kill -9 of its runner nothing of it is left; both on this hypervisor."""

    def check() -> None:
        own_guests.start()
        before = _all_others()
        words = (str(_SCENARIO), *(("--hypervisor", hypervisor) if hypervisor != EMBEDDED else ()))
        document = measured(*words)
        others = {one["name"] for one in document["cells"][0]["neighbours"]}
        require(READER.name in others, f"the cell names {others or 'nobody'} beside it")
        _require_nothing_left(before)
        run = started(*words, "--set", "workloads.primes.events=1000000")
        with stopped(run):
            wait_until(lambda: _at_work(run), _WORK_SECONDS, "the guest at work")
            runner = int(json.loads((run_folder(run) / "runner.json").read_text())["runner_pid"])
            tell(f"domains: {command('virsh', 'list', '--all')}")
            tell(f"kill -9 {runner}: {processes(run).get(runner, '')}")
            os.kill(runner, signal.SIGKILL)
            wait_until(lambda: not processes(run), _END_SECONDS, "the end of a run without its runner")
        vmlab("clean")
        _require_nothing_left(before)
        require(json.loads(vmlab("clean", "--json"))["runs"] == [], "clean found something the second time")

    return check


def contract() -> None:
    """What an embedded lab does with guests, done on the host's own libvirtd; and one whose processes are killed."""
    own_guests.start()
    before = _all_others()
    python = ("/opt/vmlab/bin/python", "-m")
    wheels = "/root/.cache/wheels-of-tests"
    command(*python, "pip", "install", "--quiet", "--no-index", "--find-links", wheels, "pytest", timeout=600)
    command(*python, "pytest", "-x", "-p", "no:cacheprovider", _CONTRACT, timeout=_CONTRACT_SECONDS)
    _require_nothing_left(before)


def _at_work(run: str) -> bool:
    if not (run_folder(run) / "run.sqlite").exists():
        return False
    with closing(sqlite3.connect(f"file:{run_folder(run) / 'run.sqlite'}?mode=ro", uri=True)) as connection:
        return bool(connection.execute("SELECT 1 FROM events WHERE kind = 'WorkloadStarted'").fetchall())


def _require_nothing_left(before: dict[str, str]) -> None:
    left = surroundings.leftovers()
    require(not left, f"left behind: {', '.join(left)}")
    now = _all_others()
    for what, was in before.items():
        require(now[what] == was, f"{what} was\n{was}\nand is\n{now[what]}")


def _all_others() -> dict[str, str]:
    """The host's own guests and all else that is not the lab's."""
    command("udevadm", "settle", "--timeout", "60")
    nodes = sorted(f"{path} {kind}" for path, kind in surroundings.listing().items() if path.startswith("/dev"))
    return {**own_guests.as_they_are(), **surroundings.others(), "nodes": "\n".join(nodes)}
