"""kill -9 in the middle of a run that has mounts for a workload on the host: nothing of the host may be missing."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.host.inside import surroundings
from tests.host.inside.lab import command, processes, require, run_folder, started, stopped, tell, vmlab, wait_until

_SCENARIO = Path(__file__).with_name("mixed.yaml")
_AT_WORK_SECONDS = 900.0
"""The guest may have to be frozen first."""

_END_SECONDS = 60.0
"""Within which a run that lost one of its processes has ended, on a slow host."""

VICTIMS = ("launcher", "init", "qemu", "runner")


def kill(victim: str) -> None:
    """Start the run, kill `victim` while the host's own workload is at work, clear up, and look at what is left."""
    before, settings = surroundings.listing(), surroundings.settings()
    run = started(str(_SCENARIO))
    with stopped(run):
        wait_until(_host_works, _AT_WORK_SECONDS, "the workload on the host")
        mounted = [line for line in _mounts_of_runner(run) if "/root" in line]
        tell("mounted for the host's workload:\n" + "\n".join(mounted))
        require(mounted, "nothing is mounted for the host's workload")
        changed = surroundings.settings()
        tell(f"settings of the host: {settings}, in the run {changed}")
        require(all(changed[path] != settings[path] for path in settings), f"the run did not set {settings}")
        process = _find(victim, run)
        tell(f"kill -9 {process} ({victim}): {processes(run).get(process, '')}")
        os.kill(process, signal.SIGKILL)
        began = time.monotonic()
        wait_until(
            lambda: not processes(run) and not _host_works(), _END_SECONDS, f"the end of a run without its {victim}"
        )
        tell(f"over after {time.monotonic() - began:.1f} s")
    _require_same(before)
    if victim == "qemu":
        _require_named("vm", run)
    # A live launcher clears up itself, and then clean has nothing to do.
    cleaned = json.loads(vmlab("clean", "--json"))
    require(not any(one["left"] for one in cleaned["runs"]), f"clean could not remove {cleaned['runs']}")
    now = surroundings.settings()
    require(now == settings, f"settings of the host were {settings} and are {now}")
    left = surroundings.leftovers()
    require(not left, f"left behind: {', '.join(left)}")
    _require_same(before)
    surroundings.require_intact()
    require(json.loads(vmlab("clean", "--json"))["runs"] == [], "clean found something the second time")
    command("vmlab", "show", run)


def _require_named(guest: str, run: str) -> None:
    """The runner lives and tells which guest has died."""
    document = json.loads(vmlab("show", run, "--json"))
    said = [document["run"]["reason"] or "", *(reason for cell in document["cells"] for reason in cell["reasons"])]
    require(document["run"]["outcome"] == "failed", f"the run {document['run']['outcome']}: {said}")
    require(any(re.search(rf"\b{guest}\b", reason) for reason in said), f"no word of the guest: {said}")


def _require_same(before: dict[str, str]) -> None:
    command("udevadm", "settle", "--timeout", "60")
    now = surroundings.listing()
    gone = sorted(path for path in before if path not in now)
    require(not gone, f"{len(gone)} places of the host are gone: {', '.join(gone[:5])}")


def _host_works() -> bool:
    """Whether sysbench runs on the host; that of a guest is no process of the host."""
    return bool(processes("sysbench", "cpu"))


def _mounts_of_runner(run: str) -> list[str]:
    return Path(f"/proc/{_find('runner', run)}/mountinfo").read_text().splitlines()


def _find(victim: str, run: str) -> int:
    """The pid of one of the run's processes, as the host sees it."""
    if victim == "qemu":
        return next(iter(processes("qemu-system-x86_64", run)))
    if victim == "init":
        # It was forked by the launcher and never became another program; the runner is its child.
        return _parent(_find("runner", run))
    told = json.loads((run_folder(run) / "runner.json").read_text())
    return int(told[f"{victim}_pid"])


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def of(victim: str) -> Callable[[], None]:
    """The check that kills `victim`."""
    return lambda: kill(victim)
