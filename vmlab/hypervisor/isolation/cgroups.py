"""The cgroups that libvirt makes for a lab's guests: which controllers there are, and how their folders are removed.

They are beside those of other labs, outside all namespaces, and remain after a runner was killed.
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.model.errors import HypervisorError
from vmlab.system.mounts import Mount as Mount
from vmlab.system.mounts import cgroups_in, mount_of
from vmlab.system.mounts import hierarchies as hierarchies
from vmlab.system.removal import remove_cgroup, remove_empty_folder

WANTED = ("cpu", "cpuacct")
"""Shares, and the time that guests used. Other controllers are not enabled, so that no other limit is set."""

OF_ORDERED_HOST = ("cpuset", "memory")
"""What limits a limited host, see `ordered_host`: only where a scenario orders one are guests in these as well."""

_WANTED_BY_LIBVIRT = ("cpuset",)
"""In version 2 libvirt wants the controllers of the partition for a guest's threads, but enables only those that it is
configured to use: where another program has enabled cpuset, such as a libvirtd with a guest, no guest would start.
"""

_EVERYBODYS_SHARES = 1024
"""What a guest without CPU shares counts as, which is the kernel's default in version 1 alone."""
_MOST_WEIGHT = 10000

_EMULATOR = "emulator"
"""libvirt's name for the cgroup, within a guest's, of those of QEMU's threads that are no virtual CPUs."""
_VCPU_SHARES, _VCPU_WEIGHT = 1024, 100
"""What each virtual CPU's cgroup beside it has in version 1 and 2: the kernel's default, which libvirt leaves."""

_WEIGHTS = {
    "cpu.shares": ("1024", "512"),
    "cpu.weight": ("100", "50"),
    "io.weight": ("default 100", "default 50"),
}
"""Of version 1 and 2, the kernel's default and half of it."""

PARTITION = "machine"
_PREFIX = "qemu-embed-"
_TRIES = 5


def available_controllers(mounts: list[Mount]) -> list[str]:
    """Those of WANTED that this host has, and what libvirt wants beside them."""
    found = [name for name in WANTED if any(name in mount.controllers for mount in mounts)]
    unified = [mount for mount in mounts if mount.version == 2]
    return found + [name for name in _WANTED_BY_LIBVIRT if any(name in mount.controllers for mount in unified)]


def weights(shares: Mapping[str, int | None], mounts: list[Mount]) -> dict[str, int | None]:
    """The values to give libvirt for guests' CPU `shares`, by name; the guests run at the same time.

    Version 2 has weights from 1 to 10,000 in the place of shares: the greatest shares are scaled down to fit, all
    others with them, and a guest without any gets a weight as well, because 100 is what it would have.
    """
    if not any(mount.version == 2 and "cpu" in mount.controllers for mount in mounts):
        return dict(shares)
    wanted = {name: _EVERYBODYS_SHARES if value is None else value for name, value in shares.items()}
    most = max(wanted.values(), default=0)
    if most <= _MOST_WEIGHT:
        return {**wanted}
    return {name: max(1, round(value * _MOST_WEIGHT / most)) for name, value in wanted.items()}


def set_emulator_shares(shares: int, process: bytes, mounts: Sequence[Mount]) -> None:
    """Give QEMU's emulator threads a weight of `shares`, of which each of its virtual CPUs has 1024; read back.

    `process` is the kernel's list of the cgroups of QEMU's first thread, which is one of them. In version 2 the virtual
    CPUs have 100, so the shares are scaled down to that, to 1 at least. The cgroup goes with the guest.

    Raises HypervisorError where they have no such cgroup or the kernel does not take the weight, and OSError.
    """
    mount = mount_of("cpu", mounts)
    controller = "cpu" if mount is not None and mount.version == 1 else ""
    found = (inner for controllers, inner in cgroups_in(process) if controller in (controllers or [""]))
    group = next((inner for inner in found if inner.name == _EMULATOR), None)
    if mount is None or group is None:
        raise HypervisorError("QEMU's emulator threads have no cgroup with the cpu controller to have a weight in")
    if mount.version == 1:
        set_value(mount.root / group / "cpu.shares", str(shares))
    else:
        weight = max(1, round(shares * _VCPU_WEIGHT / _VCPU_SHARES))
        set_value(mount.root / group / "cpu.weight", str(weight))


def set_value(file: Path, value: str, taken: str | None = None) -> None:
    """Write a value and read it back, as `taken` where the kernel rounds it. Raises HypervisorError and OSError."""
    file.write_text(value)
    if (found := file.read_text().strip()) != (taken or value):
        raise HypervisorError(f"{file} is {found}, and not {taken or value}")


def prefix_of(root: Path) -> str:
    """How libvirt begins the cgroup names of an embedded driver with this `root`: no two roots share it."""
    return f"{_PREFIX}{hashlib.sha256(str(root).encode()).hexdigest()[:8]}-"


def is_prefix(name: str) -> bool:
    """Whether `name` is exactly such a prefix, which the cgroups of others cannot match."""
    return re.fullmatch(rf"{_PREFIX}[0-9a-f]{{8}}-", name) is not None


def used_mounts(mounts: Sequence[Mount], *, ordered: bool) -> list[Mount]:
    """The hierarchies that libvirt uses; with `ordered` those too that it uses only below a limited host."""
    used = {*WANTED, *(OF_ORDERED_HOST if ordered else ())}
    return [mount for mount in mounts if mount.controllers & used]


def partitions(mounts: Sequence[Mount], *, ordered: bool = False) -> list[Path]:
    """The folders that libvirt puts guests in, one in each of `used_mounts`; they need not exist."""
    return [mount.root / PARTITION for mount in used_mounts(mounts, ordered=ordered)]


def is_shared(partition: Path) -> bool:
    """Whether `partition` also belongs to others than labs, so that it must stay when it is empty."""
    return partition.is_dir() and not any(partition.glob(f"{_PREFIX}*-lab"))


def hold(partition: Path, prefix: str) -> None:
    """Put an empty folder into `partition`, so that another lab that ends does not remove it while a guest starts."""
    for _ in range(_TRIES):
        try:
            (partition / f"{prefix}lab").mkdir(parents=True, exist_ok=True)
        except FileNotFoundError:
            continue
        return


def hold_all(prefix: str, mounts: list[Mount], journal: Journal, *, ordered: bool) -> None:
    """Hold all partitions that are not held yet, which go into the journal before. Raises StoreError and OSError."""
    lacking = [one for one in partitions(mounts, ordered=ordered) if not (one / f"{prefix}lab").exists()]
    for partition in lacking:
        if not is_shared(partition):
            journal.add(JournalEntry("partition", str(partition)))
    if lacking:
        # Entries are undone from the last to the first, and a partition goes once it is empty.
        journal.add(JournalEntry("cgroups", prefix))
    for partition in lacking:
        hold(partition, prefix)


def remove_groups(partition: Path, prefix: str) -> list[str]:
    """Remove the empty cgroups below `partition` whose names begin with `prefix`; what went, as paths.

    Raises OSError where a process still runs in one.
    """
    return [str(group) for group in sorted(partition.glob(f"{prefix}*")) if remove_cgroup(group)]


def remove_everywhere(prefix: str) -> list[str]:
    """As `remove_groups`, in all partitions. Nothing is removed for a prefix that is not a lab's."""
    if not is_prefix(prefix):
        return []
    return [path for partition in partitions(hierarchies(), ordered=True) for path in remove_groups(partition, prefix)]


def lower_weight(partition: Path) -> bool:
    """Give all guests in `partition` together half the usual weight for CPUs and disks; False where nothing lowers it.

    A partition in which there are guests of others is left as it is. Raises OSError.
    """
    if any(not group.name.startswith(_PREFIX) for group in partition.iterdir() if group.is_dir()):
        return False
    enabled = partition.parent / "cgroup.subtree_control"
    # Of version 2, which beside version 1 may be without this controller.
    if "cpu" in _text(partition.parent / "cgroup.controllers").split() and "cpu" not in _text(enabled).split():
        enabled.write_text("+cpu")
    lowered = [name for name, values in _WEIGHTS.items() if _rewrite(partition / name, *values)]
    return bool(lowered)


def remove_partition(partition: Path) -> bool:
    """Remove an empty partition; False where it is in use or gone. One that others use by now has its weight back."""
    if remove_empty_folder(partition):
        return True
    if is_shared(partition):
        for name, (usual, lowered) in _WEIGHTS.items():
            _rewrite(partition / name, lowered, usual)
    return False


def _text(file: Path) -> str:
    """What is in a file of a cgroup; nothing where the cgroup or this file of it is not there, or is removed now."""
    try:
        return file.read_text()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return ""


def _rewrite(file: Path, expected: str, value: str) -> bool:
    """Write `value` in the place of the `expected` one; False where the file is not there or has a third value."""
    if _text(file).splitlines()[:1] != [expected]:
        return False
    file.write_text(value)
    return True
