"""Runs of the real program on a libvirtd that others use, in namespaces of its own; prints what came of each.

``python -m … FOLDER VICTIMS WORDS``, in ``unshare --mount --pid --net``, not as PID 1; WORDS go to ``vmlab run``. For
each of VICTIMS the run is begun; a process is killed with -9 when its workloads are at work, and nobody for ``nobody``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import libvirt

from tests.e2e.programs.kill_each import VMLAB, events, process_of, wait_for
from tests.hypervisor.programs.beside_libvirtd import NOBODY, decoys, there
from tests.private_libvirtd import LIKE_DEBIANS, show_own_links, start_daemon

RUN_SECONDS = 900.0


def vmlab(*words: str) -> dict[str, Any]:
    """What a command says in JSON."""
    done = subprocess.run([*VMLAB, *words, "--json"], capture_output=True, text=True, timeout=300, check=False)
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    return found


def run(connection: Any, state: Path, victim: str, words: list[str]) -> dict[str, Any]:
    """One run, to its end."""
    runs = state / "vmlab/runs"
    runs.mkdir(parents=True, exist_ok=True)
    earlier, before = set(runs.iterdir()), there(connection)
    argv = [*VMLAB, "run", *words, "--hypervisor", "qemu:///system", "--allow-noise", "--concurrent"]
    command = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    (folder,) = wait_for("the run", lambda: set(runs.iterdir()) - earlier, 120)
    during = before
    if victim != NOBODY:
        wait_for("workloads at work", lambda: command.poll() is not None or "WorkloadStarted" in events(folder))
        during = there(connection)
        os.kill(process_of(victim, command, folder), signal.SIGKILL)
    said = command.communicate(timeout=RUN_SECONDS)[0]
    wait_for("the end of the guests", lambda: there(connection)["domains"] == before["domains"], 60)
    cleaned = vmlab("clean")
    after = there(connection)
    return {
        "status": command.returncode,
        "said": said[-3000:],
        "show": vmlab("show", folder.name),
        "cleaned": cleaned.get("runs"),
        "again": vmlab("clean").get("runs"),
        "domains": sorted(set(during["domains"]) - set(before["domains"])),
        "new": {what: [one for one in after[what] if one not in before[what]] for what in before},
        "gone": {what: [one for one in before[what] if one not in after[what]] for what in before},
        "disks": [str(path) for path in folder.glob("disks/*")],
    }


def main(folder: Path, victims: list[str], words: list[str]) -> None:
    """All runs."""
    start_daemon(folder / "libvirtd.log", LIKE_DEBIANS)
    show_own_links()
    os.environ |= {"XDG_STATE_HOME": str(folder / "state"), "VMLAB_RUNTIME_DIR": str(folder / "run")}
    connection = libvirt.open("qemu:///system")
    decoys(connection)
    for victim in victims:
        sys.stdout.write(json.dumps(run(connection, folder / "state", victim, words)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    assert os.getpid() != 1, "PID 1 has to reap"
    main(Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:])
