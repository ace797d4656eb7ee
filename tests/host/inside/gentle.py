"""Checks that change nothing of the host."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

from tests.host.inside import surroundings
from tests.host.inside.lab import (
    command,
    completed,
    measured,
    passed,
    processes,
    require,
    started,
    stopped,
    tell,
    vmlab,
    wait_until,
)
from tests.host.inside.taken_away import TAKEN, judge

_GUEST_ONLY = ("--set", "axes.setup=vm", "--set", "axes.threads=1", "--set", "workloads.primes.events=200")
_WEIGHTS = Path("/sys/fs/cgroup/machine")
_RATIO = (1.6, 2.5)
"""Where the processor time of the guest with 100 shares may lie, in times of the other's with 50."""


def doctor() -> None:
    """Every required thing is there, and so are cgroups and KVM."""
    found = {check["name"]: check for check in json.loads(vmlab("doctor", "--json"))["checks"]}
    command("stat", "--file-system", "--format", "%T", "/sys/fs/cgroup")
    require(Path("/sys/fs/cgroup/cgroup.controllers").exists(), "this host has no cgroup v2")
    for name in ("cgroups", "KVM"):
        require(found[name]["ok"], f"{name}: {found[name]['detail']}")
    require("cpu, cpuacct" in found["cgroups"]["detail"], f"cgroups: {found['cgroups']['detail']}")


def cold() -> None:
    """A guest that is booted."""
    document = measured("cpu-overhead", "--size", "smoke", "--cold", *_GUEST_ONLY)
    require(document["cells"][0]["provision"]["how"] == "cold", "the guest was not booted")


def frozen() -> None:
    """A guest that is restored; the probe of KVM is remembered for doctor."""
    document = measured("cpu-overhead", "--size", "smoke", *_GUEST_ONLY)
    require(document["cells"][0]["provision"]["how"] == "restored", "the guest was not restored")
    found = {check["name"]: check for check in json.loads(vmlab("doctor", "--json"))["checks"]}
    require(found["KVM"]["detail"] == "guests run under KVM", f"doctor says of KVM: {found['KVM']['detail']}")


def shares() -> None:
    """The weights that libvirt sets while the guests work, and what comes of them."""
    run = started("cpu-priority", "--size", "smoke", "--set", "axes.threads=1")
    with stopped(run):
        seen: set[tuple[int, ...]] = set()
        while processes(run):
            seen.add(_weights())
            time.sleep(3)
    tell(f"weights seen: {sorted(seen)}")
    document = passed(run)
    require((50, 100) in seen, f"cpu.weight was {sorted(seen)}, and never 50 beside 100")
    figures = {
        (one["workload"], one["metric"]): one["value"]
        for cell in document["cells"]
        for one in cell["measurements"]
        if one["metric"] in ("cpu_share_got", "cpu_share_configured")
    }
    ratio = figures["pr100", "cpu_share_got"] / figures["pr50", "cpu_share_got"]
    tell(f"shares: {figures}, ratio {ratio:.2f}")
    require(_RATIO[0] <= ratio <= _RATIO[1], f"processor time was {ratio:.2f} to 1")


def _weights() -> tuple[int, ...]:
    """The weights of all guests, the smallest first."""
    found = []
    for file in _WEIGHTS.glob("*.libvirt-qemu/cpu.weight"):
        try:
            found.append(int(file.read_text()))
        except OSError:
            continue
    return tuple(sorted(found))


def tile() -> None:
    """Four guests, restored twice; every disk file's flags agree with the cell's cache mode."""
    document = measured("tile", "--size", "smoke", "--tiles", "1", "--cache", "none,writeback")
    modes = [cell["axes"]["cache"] for cell in document["cells"]]
    require(modes == ["none", "writeback"], f"cells of {modes}")
    for cell in document["cells"]:
        proofs = cell["cache_proof"]
        require(len(proofs) >= 8, f"{len(proofs)} proofs of four guests' disks")
        require(all(proof["agrees"] for proof in proofs), f"cache {cell['axes']['cache']} is not proved: {proofs}")


def taken_away() -> None:
    """Without what runs need, all that is missing is named, and nothing is started."""
    for name in (name for name, taken in TAKEN.items() if taken.needed):
        judge(name, completed(*TAKEN[name].argv(["vmlab", "selftest", "--json"])))


def selftest() -> None:
    """Every trial works."""
    document = json.loads(vmlab("selftest", "--concurrent", "--json"))
    tried = {one["name"]: f"{one['state']}: {one['detail']}" for one in document["trials"]}
    bad = [f"{name}: {said}" for name, said in tried.items() if not said.startswith(("works", "not here"))]
    require(not bad, "; ".join(bad))
    require("KVM" not in tried and any(said.endswith(" s, kvm") for said in tried.values()), f"no KVM: {tried}")


def console() -> None:
    """It opens on a terminal of tmux, shows figures of the host, and goes."""
    tmux = ("tmux", "-L", "checks")
    command(*tmux, "new-session", "-d", "-x", "160", "-y", "48", "vmlab")
    try:
        wait_until(lambda: _live(command(*tmux, "capture-pane", "-p")), 120, "the Live screen with the host's figures")
        command(*tmux, "send-keys", "q")
    finally:
        wait_until(lambda: not _sessions(), 60, "the end of the console")


def _live(screen: str) -> bool:
    """Whether figures have come: a dash stands in a figure's place before."""
    return all(re.search(figure, screen) for figure in (r"CPU % user\s+\d", r"Memory GiB used\s+\d"))


def _sessions() -> bool:
    return subprocess.run(["tmux", "-L", "checks", "has-session"], capture_output=True, check=False).returncode == 0


def untouched() -> None:
    """Nothing to clean, nothing left, and everything else as it was."""
    require(json.loads(vmlab("clean", "--json"))["runs"] == [], "clean found something")
    left = surroundings.leftovers()
    require(not left, f"left behind: {', '.join(left)}")
    surroundings.require_intact()
