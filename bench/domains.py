"""What it costs to record the host's own guests once a second: of each tool, and of libvirt's daemon for it.

``python -m bench.domains --seconds 60`` measures where it is started: run it beside the guests that are to be read.
``--make 12`` runs twelve itself before, in a libvirtd of its own in namespaces (root; they boot no system).

First nothing reads them, then ``vmlab record`` does, then each tool ``--beside``, each for as long. What the daemon
used more in a tool's span than in the first is the tool's share. PCP is pmcd with the agents that its configuration
names, and pmlogger with what they have of host, KVM, libvirt's domains and processes. Debian 12 packages its agent for
KVM, which counts for the whole host, and none for libvirt; so PCP does not ask the daemon there, and knows of a guest
what /proc has. ``virsh domstats`` asks libvirt for what vmlab does, and keeps nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.support.private_domains import ALONE
from bench.support.process_cpu import TreeCpu
from bench.support.rivals import NotHere, pcp_with_guests, virsh
from vmlab.store.reader import RunReader
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.source import THE_HOST

_WARM_UP = 5.0
_DAEMONS = ("libvirtd", "virtqemud")
_VMLAB = "vmlab record"
_BESIDE = {"PCP": pcp_with_guests, "virsh domstats": virsh}


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


def spent(trees: Sequence[TreeCpu], seconds: float) -> list[float]:
    """CPU of each in percent of one core over the same `seconds`."""
    for tree in trees:
        tree.begin()
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(min(1.0, seconds / 10))
        for tree in trees:
            tree.look()
    return [tree.seconds / (time.monotonic() - began) * 100 for tree in trees]


@contextmanager
def vmlab_record(_interval: float, folder: Path) -> Iterator[list[int]]:
    """The recorder's process of a recording; how much it stored is printed in the end."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    command = [sys.executable, "-m", "vmlab", "record", "--detach"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    kept = folder / "vmlab/runs" / run
    try:
        time.sleep(_WARM_UP)
        written = (kept / "runner.json").read_text()
        yield [int(written.partition("recorder_pid")[2].strip('":}, ').split(",")[0])]
    finally:
        subprocess.run([sys.executable, "-m", "vmlab", "stop", run], env=environment, check=False)
    with RunReader(kept / "run.sqlite") as reader:
        last = [len(row.body) for row in reader.sample_rows()][-1]
    print(f"{_VMLAB} stores {last * 86400 / 1e6:.0f} MB a day")


def measure(seconds: float, beside: Sequence[str]) -> None:
    """A span for nobody and for each tool, and a row for each of the tools."""
    group = Domains(THE_HOST)
    group.read(time.monotonic(), 1.0)
    print(f"domains: {len(group.domains)}, libvirt's daemons: {daemons() or 'none'}, {seconds:g} s each")
    (idle,) = spent([OwnCpu(daemons())], seconds)
    print(f"libvirt's daemon, read by nobody: {idle:.2f} % of one core")
    tools = {_VMLAB: vmlab_record, **{name: _BESIDE[name] for name in beside}}
    rows: dict[str, tuple[float, float]] = {}
    for name, tool in tools.items():
        with tempfile.TemporaryDirectory(prefix="vmb-") as folder:
            try:
                with tool(1.0, Path(folder)) as pids:
                    time.sleep(_WARM_UP)
                    own, during = spent([TreeCpu(pids), OwnCpu(daemons())], seconds)
                    rows[name] = own, during - idle
            except NotHere as why:
                print(f"{name}: {why}")
    print("| tool | own, % of one core | libvirt's daemon | together | times vmlab |")
    print("| --- |" + " ---: |" * 4)
    ours = sum(rows[_VMLAB])
    for name, (own, share) in rows.items():
        print(f"| {name} | {own:.2f} | {share:.2f} | {own + share:.2f} | {(own + share) / ours:.2f} |")


def main() -> None:
    """Measure here, or beside guests that are made first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each span")
    parser.add_argument("--make", type=int, default=0, metavar="COUNT", help="guests to run first, in namespaces")
    parser.add_argument("--beside", nargs="*", choices=list(_BESIDE), default=list(_BESIDE), help="the other tools")
    asked = parser.parse_args()
    if not asked.make:
        measure(asked.seconds, asked.beside)
        return
    again = [sys.executable, "-m", "bench.domains", "--seconds", str(asked.seconds), "--beside", *asked.beside]
    inside = [sys.executable, "-m", "bench.support.private_domains", str(asked.make), *again]
    # PID 1 of the namespace reaps, which a shell does and Python does not.
    sys.exit(subprocess.run([*ALONE, "bash", "-c", '"$@" & wait $!', "bash", *inside], check=False).returncode)


if __name__ == "__main__":
    main()
