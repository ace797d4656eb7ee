"""What the host is apart from the lab: its nodes, its folders, its libvirt; and what a lab may have left in it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tests.host.inside.lab import STATE, command, processes, require, tell, vmlab

KEPT = Path("/run/surroundings.json")
"""What was there when the host had booted; gone with the next boot."""

GUEST = "users-own"
"""A domain of the host's own libvirtd, paused: the lab must leave it alone."""

_RUNTIME = Path("/run/vmlab")
_CGROUPS = Path("/sys/fs/cgroup")
_COME_AND_GO = (
    *("/dev/pts", "/dev/loop", "/dev/disk/by-diskseq", "/dev/disk/by-loop", "/sys/block/loop", "/sys/kernel/slab"),
    *("/run/vmlab", "/run/user"),
    # udev's own: its queue, and links by number to nodes whose module is loaded on first use.
    *("/run/udev", "/dev/char/"),
)
_SETTINGS = ("/sys/kernel/mm/ksm/run", "/sys/kernel/mm/transparent_hugepage/enabled")
_DEPTH = {"/dev": 9, "/run": 2, "/sys": 3}
"""How deep the trees are listed: below that much comes and goes by itself."""


def listing() -> dict[str, str]:
    """Every place below /dev, and the upper ones of /run and /sys: what kind it is, its mode, its device."""
    found: dict[str, str] = {}
    for root, depth in _DEPTH.items():
        found |= dict(_walk(root, depth))
    return found


def _walk(folder: str, depth: int) -> Iterator[tuple[str, str]]:
    for entry in os.scandir(folder):
        if entry.path.startswith(_COME_AND_GO):
            continue
        status = entry.stat(follow_symlinks=False)
        yield entry.path, f"{stat.filemode(status.st_mode)} {status.st_rdev:x}"
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, depth - 1)


def settings() -> dict[str, str]:
    """The settings that `mixed.yaml` changes while it runs, as the kernel shows them."""
    return {path: Path(path).read_text().strip() for path in _SETTINGS}


def others() -> dict[str, str]:
    """The host's own virtualization: libvirtd's process, its domains and networks, machined's machines, links."""
    return {
        "libvirtd": command("systemctl", "show", "--property", "MainPID,ActiveState,NRestarts", "libvirtd.service"),
        "domains": command("virsh", "list", "--all"),
        "networks": command("virsh", "net-list", "--all"),
        "machines": command("machinectl", "list", "--no-legend"),
        "links": " ".join(sorted(link.name for link in Path("/sys/class/net").iterdir())),
        "failed units": command("systemctl", "list-units", "--failed", "--plain", "--no-legend"),
    }


def prepare() -> None:
    """Give the host a guest of its own, clear what a reset of the host cut off, and write down what is there."""
    vmlab("clean")
    # As a user may have them: not as `mixed.yaml` asks. Pages are merged slowly, so that it costs next to nothing.
    Path("/sys/kernel/mm/ksm/sleep_millisecs").write_text("5000")
    for path, value in zip(_SETTINGS, ("1", "always"), strict=True):
        Path(path).write_text(value)
    if GUEST not in command("virsh", "list", "--all"):
        file = Path("/run/users-own.xml")
        file.write_text(
            f"<domain type='kvm'><name>{GUEST}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>"
            "<os><type arch='x86_64' machine='q35'>hvm</type></os>"
            "<devices><interface type='network'><source network='default'/></interface></devices></domain>"
        )
        command("virsh", "create", "--paused", str(file), timeout=240)
    # libvirt loads what it needs once; a lab would too, and more nodes are no damage.
    command("modprobe", "-a", "loop", "tun", "bridge", "vhost_net")
    command("udevadm", "settle", "--timeout", "60")
    KEPT.write_text(json.dumps({"listing": listing(), "others": others()}))


def require_intact() -> None:
    """Raise Failed where something of the host is missing or different since `prepare`."""
    kept = json.loads(KEPT.read_text())
    # udev takes links of a loop device away some moments after the device.
    command("udevadm", "settle", "--timeout", "60")
    now = listing()
    changed = sorted(path for path, kind in kept["listing"].items() if now.get(path) != kind)
    fresh = sorted(path for path in now.keys() - kept["listing"].keys() if path.startswith("/dev"))
    tell(f"{len(now)} places; changed or gone: {changed}; new: {fresh}")
    require(not changed, f"{len(changed)} places of the host are gone or different: {', '.join(changed[:5])}")
    require(not fresh, f"new in the host's /dev: {', '.join(fresh[:5])}")
    for what, after in others().items():
        require(after == kept["others"][what], f"{what} were {kept['others'][what]!r} and are {after!r}")


def leftovers() -> list[str]:
    """What runs left in the host, whatever of it: processes, cgroups, loop devices, links, mounts, sockets, disks."""
    left = [f"process {pid}: {line}" for folder in (STATE, _RUNTIME) for pid, line in processes(str(folder)).items()]
    left += [str(path) for path in _CGROUPS.rglob("*qemu-embed*") if path.is_dir()]
    left += [str(path) for path in (_CGROUPS / "machine",) if path.exists()]
    left += [str(path) for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    left += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "vmlab" in line]
    left += [str(path) for path in _RUNTIME.glob("*")] if _RUNTIME.exists() else []
    return left + [str(path) for path in STATE.glob("vmlab/runs/*/disks/*")]
