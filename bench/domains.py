"""What it costs to record the host's own guests: of vmlab's own process and of libvirt's daemon.

``python -m bench.domains --seconds 60`` measures where it is started: run it beside the guests that are to be read.
First nothing reads them, then ``vmlab record`` does, each for as long. What the daemon used more in the second span is
ours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.support.process_cpu import TreeCpu
from vmlab.store.reader import RunReader
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.source import THE_HOST

_WARM_UP = 5.0
_DAEMONS = ("libvirtd", "virtqemud")


def daemons() -> list[int]:
    """libvirt's own processes."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() in _DAEMONS:
                found.append(int(comm.parent.name))
        except OSError:
            continue
    return found


class OwnCpu(TreeCpu):
    """Without children: QEMUs may be the daemon's."""

    def _pids(self) -> list[int]:
        return self.roots


def spent(trees: list[TreeCpu], seconds: float) -> list[float]:
    """CPU of each in percent of one core over the same `seconds`."""
    for tree in trees:
        tree.begin()
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(min(1.0, seconds / 10))
        for tree in trees:
            tree.look()
    return [tree.seconds / (time.monotonic() - began) * 100 for tree in trees]


def main() -> None:
    """Both spans, and a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each span")
    seconds = parser.parse_args().seconds
    group = Domains(THE_HOST)
    group.read(time.monotonic(), 1.0)
    print(f"domains: {len(group.domains)}, libvirt's daemons: {daemons() or 'none'}")
    (before,) = spent([OwnCpu(daemons())], seconds)
    with tempfile.TemporaryDirectory(prefix="vmb-") as state:
        environment = {**os.environ, "XDG_STATE_HOME": state}
        command = [sys.executable, "-m", "vmlab", "record", "--detach"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        folder = Path(state, "vmlab/runs", run)
        try:
            time.sleep(_WARM_UP)
            recorder = int(
                (folder / "runner.json").read_text().partition("recorder_pid")[2].strip('":}, ').split(",")[0]
            )
            own, during = spent([OwnCpu([recorder]), OwnCpu(daemons())], seconds)
        finally:
            subprocess.run([sys.executable, "-m", "vmlab", "stop", run], env=environment, check=False)
        with RunReader(folder / "run.sqlite") as reader:
            stored = [len(row.body) for row in reader.sample_rows()]
    print(f"vmlab record: {own:.2f} % of one core")
    print(f"libvirt's daemon: {during:.2f} % of one core, {before:.2f} % before; ours {during - before:.2f} %")
    print(f"together: {own + during - before:.2f} % of one core; {stored[-1] * 86400 / 1e6:.0f} MB a day")


if __name__ == "__main__":
    main()
