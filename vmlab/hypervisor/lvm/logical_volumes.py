"""Data disks that are logical volumes (LVM) in a volume group of the user's: made, looked at, and removed.

LVM's own commands do it, which report as JSON. A volume of a lab is called ``vmlab.RUN.GUEST`` and carries the tag
``vmlab.RUN``; only what has both is removed, and nothing else in a group is changed.

The commands run among the host's mounts. The runner does not see the host's /run, where LVM keeps its locks and udev
its socket: beside another LVM command, one that finds neither damages the group.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vmlab.hypervisor.domain_spec import LogicalVolume
from vmlab.hypervisor.isolation.namespace import host_pids, host_proc
from vmlab.hypervisor.journal import OR_FORGET
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.model.quantities import format_bytes
from vmlab.system.descriptors import closed_after
from vmlab.system.packages import installing

ANSWER_SECONDS = 60.0
"""How long a command may take: it waits for others that have the group."""
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_NAME = re.compile(r"([A-Za-z0-9_+.][A-Za-z0-9_+.-]*)/([A-Za-z0-9_+.][A-Za-z0-9_+.-]*)", re.ASCII)
_REPORT = ("--reportformat", "json", "--units", "b", "--nosuffix")


def tag_of(lab: str) -> str:
    """The tag of a lab's volumes."""
    return f"vmlab.{lab}"


def volume_of(group: str, lab: str, guest: str) -> LogicalVolume:
    """The volume of a guest of a lab."""
    return LogicalVolume(group, f"{tag_of(lab)}.{guest}")


def named(words: str, lab: str) -> LogicalVolume | None:
    """The volume that `words` of a journal name, if it is one of `lab`'s own."""
    found = _NAME.fullmatch(words)
    return LogicalVolume(found[1], found[2]) if found and found[2].startswith(f"{tag_of(lab)}.") else None


def require_group(group: str, cells: Sequence[Mapping[str, int]]) -> None:
    """Raise RefusedError unless the volumes of each cell, bytes by their guests, fit into the group together; blocks.

    It changes nothing in the group.
    """
    what = f"a data disk in volume group {group}"
    if shutil.which("lvcreate", path=_PATH) is None:
        raise RefusedError(f"{what} needs LVM's commands, which are not installed", remedy=installing("lvm2"))
    try:
        done = _run(("vgs", *_REPORT, "-o", "vg_free,vg_extent_size,vg_attr", group))
        rows = _rows(done, "vg")
    except HypervisorError as error:
        raise RefusedError(f"{what}: {error}") from error
    if not rows:
        if _says_there_is_none(done):
            raise RefusedError(f"this host has no volume group {group}", remedy="vgs lists them")
        raise RefusedError(f"{what}: {_last_word(done)}")
    free, extent = int(rows[0]["vg_free"]), int(rows[0]["vg_extent_size"])
    if not rows[0]["vg_attr"].startswith("w"):
        raise RefusedError(f"{what}: the group is read-only")
    for guest, size in (one for sizes in cells for one in sizes.items()):
        if size % extent:
            words = f"guest {guest}: a volume in group {group} is a multiple of its extents of {format_bytes(extent)}"
            raise RefusedError(f"{words}, and its data disk of {format_bytes(size)} is none")
    needed = max(sum(sizes.values()) for sizes in cells)
    if needed > free:
        raise RefusedError(f"{what}: {format_bytes(needed)} are needed, and the group has {format_bytes(free)} free")


def create(volume: LogicalVolume, size: int, lab: str) -> None:
    """Make the volume; blocks. Raises HypervisorError, FileExistsError where the name is taken."""
    options = ("--yes", "--quiet", "--type", "linear", "--addtag", tag_of(lab), "--size", f"{size}b")
    done = _run(("lvcreate", *options, "--name", volume.name, volume.group))
    if done.returncode:
        if "already exists in volume group" in done.stderr:
            raise FileExistsError(f"there is a volume of that name already: {volume}")
        raise HypervisorError(f"cannot make the volume {volume}: {_last_word(done)}")


def remove(volume: LogicalVolume, lab: str) -> bool:
    """Remove the volume; False where there is none in its group, or it does not carry the lab's tag; blocks.

    Raises HypervisorError where it stays, where the group is not there, and where somebody has made a snapshot of it,
    which would go with it.
    """
    found = look_at(volume)
    if not found:
        _require_group_of(volume)
    if tag_of(lab) not in found.get("lv_tags", "").split(","):
        return False
    if snapshots := _snapshots_of(volume):
        raise HypervisorError(
            f"the volume {volume} stays: it is the origin of {', '.join(snapshots)}; remove that first"
        )
    # The tag is compared once more by LVM itself, which has locked the group.
    done = _run(("lvremove", "--yes", "--quiet", "--select", f'lv_tags="{tag_of(lab)}"', str(volume)))
    if done.returncode:
        raise HypervisorError(f"cannot remove the volume {volume}: {_last_word(done)}")
    return True


def look_at(volume: LogicalVolume) -> dict[str, str]:
    """What LVM says of the volume, by its own names of columns; empty where there is none. Raises HypervisorError."""
    columns = "vg_name,lv_name,lv_tags,lv_size,segtype,lv_kernel_major,lv_kernel_minor"
    done = _run(("lvs", *_REPORT, "-o", columns, str(volume)))
    rows = _rows(done, "lv")
    if done.returncode and not _says_there_is_none(done):
        raise HypervisorError(f"cannot look at the volume {volume}: {_last_word(done)}")
    return rows[0] if rows else {}


def _require_group_of(volume: LogicalVolume) -> None:
    """Raises HypervisorError unless the volume's group is there."""
    if _run(("vgs", *_REPORT, "-o", "vg_name", volume.group)).returncode:
        raise HypervisorError(f"the group of the volume {volume} is not there: bring its devices back, {OR_FORGET}")


def _snapshots_of(volume: LogicalVolume) -> list[str]:
    """The volumes of the group whose origin it is. Raises HypervisorError."""
    done = _run(("lvs", *_REPORT, "-o", "lv_name,origin", volume.group))
    if done.returncode:
        raise HypervisorError(f"cannot look at volume group {volume.group}: {_last_word(done)}")
    return [f"{volume.group}/{row['lv_name']}" for row in _rows(done, "lv") if row.get("origin") == volume.name]


def physical_volumes(group: str) -> list[Path]:
    """The devices that the group is on. Raises HypervisorError."""
    done = _run(("vgs", *_REPORT, "-o", "pv_name", group))
    if done.returncode:
        raise HypervisorError(f"cannot look at volume group {group}: {_last_word(done)}")
    return [Path(row["pv_name"]) for row in _rows(done, "vg")]


def _rows(done: subprocess.CompletedProcess[str], kind: str) -> list[dict[str, str]]:
    """The rows of a report; none of a command that failed."""
    if done.returncode:
        return []
    try:
        found: list[dict[str, str]] = json.loads(done.stdout)["report"][0][kind]
    except (ValueError, LookupError, TypeError) as error:
        raise HypervisorError(f"{done.args[-1]}: LVM reported what cannot be read: {done.stdout[:100]!r}") from error
    return found


def _says_there_is_none(done: subprocess.CompletedProcess[str]) -> bool:
    return re.search(r'Failed to find logical volume|olume group "?\S+"? not found', done.stderr) is not None


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    with _into_hosts_mounts() as (before, kept):
        try:
            return subprocess.run(
                [*before, *words],
                env={**os.environ, "PATH": _PATH, "LC_ALL": "C", "LVM_SUPPRESS_FD_WARNINGS": "1"},
                pass_fds=kept,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=ANSWER_SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise HypervisorError(f"{error.filename} is not installed") from error
        except subprocess.TimeoutExpired as late:
            raise HypervisorError(f"{words[0]} {words[-1]} took longer than {ANSWER_SECONDS:g} s") from late


@contextlib.contextmanager
def _into_hosts_mounts() -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """What stands before a command that runs among the host's mounts, and the descriptor that it needs; nothing where
    this process is there.
    """
    pids = host_pids()
    if pids is None:
        yield (), ()
        return
    with closed_after(os.open(host_proc() / str(pids.launcher) / "ns/mnt", os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
        yield ("nsenter", f"--mount=/proc/self/fd/{descriptor}"), (descriptor,)


def _last_word(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"it ended with code {done.returncode}"
