"""A runner with a child, and a grandchild that has left it: tells the host's pids, then sleeps or does as told."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from vmlab.hypervisor.isolation.namespace import host_pids


def _states() -> list[str]:
    """Of each process here, such as ``S`` for one that sleeps."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            states.append(path.read_text().rsplit(")", 1)[1].split()[0])
    return states


def main(end: str, seconds: str) -> int:
    """`end`: ``wait`` for a signal, or the exit status; `seconds` marks the sleeping children."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(77))
    sleeper = ["sleep", seconds]
    subprocess.Popen(sleeper)
    # Orphaned at once: it belongs to PID 1 then, and PID 1 has to reap it.
    subprocess.run(["sh", "-c", f"setsid sleep {seconds} & setsid true & exit 0"], check=True)
    pids = host_pids()
    assert pids is not None
    time.sleep(0.3)
    until = time.monotonic() + 60
    # What has just ended is a zombie for the moment that the init takes.
    while "Z" in (states := _states()) and time.monotonic() < until:
        time.sleep(0.02)
    links = sorted(path.split(":")[0].strip() for path in Path("/proc/net/dev").read_text().splitlines()[2:])
    said = {**asdict(pids), "own": os.getpid(), "zombies": states.count("Z"), "links": links}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    if end == "wait":
        time.sleep(3600)
    return int(end) if end.isdigit() else 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
