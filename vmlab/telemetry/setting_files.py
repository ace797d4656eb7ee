"""The files of /sys behind the host settings of a scenario, their present values, and which cannot be changed.

The one module that writes settings of the host's kernel: a fixed list of files, named by their path below /sys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import util
from pathlib import Path

from vmlab.model.scenarios.host_settings import HOST_SETTINGS, HostSettings
from vmlab.model.scenarios.memory_levers import RESERVED_BYTES
from vmlab.system.mounts import Mount, hierarchies, mount_of
from vmlab.telemetry.place import disks_under
from vmlab.telemetry.source import PAGE_BYTES, THE_HOST, Roots

KSM = "kernel/mm/ksm"
THP = "kernel/mm/transparent_hugepage/enabled"

_FIXED = frozenset({THP, *(f"{KSM}/{name}" for name in ("run", "pages_to_scan", "sleep_millisecs", "advisor_mode"))})
_READ_AHEAD = re.compile(r"block/[A-Za-z0-9][A-Za-z0-9!_.-]*/queue/read_ahead_kb", re.ASCII)
_POOL = re.compile(r"kernel/mm/hugepages/hugepages-[0-9]{1,9}kB/nr_hugepages", re.ASCII)
KSM_RUN = f"{KSM}/run"
_FUSE = Path("/dev/fuse")
_LOOP = Path("/dev/loop-control")
_ADVISOR = f"{KSM}/advisor_mode"
_KSM_ON = {f"{KSM}/pages_to_scan": "1000", f"{KSM}/sleep_millisecs": "20", KSM_RUN: "1"}
"""Up to 50,000 pages a second, 195 MiB of guests' memory: the default of 100 pages takes minutes for a small tile."""
InForce = dict[str, str | int | None]
"""``ksm`` (on or off), ``thp`` and ``read_ahead_bytes``; None for what is not known."""


def files_of(wanted: HostSettings, folder: Path, roots: Roots) -> dict[str, str]:
    """The names of the files and the values to write, in the order of writing.

    Raises ValueError, with the reason, where a setting has no file here. `folder` is where the guests' files are.
    """
    files: dict[str, str] = {}
    if wanted.ksm == "on":
        # Where the kernel has an advisor, it sets the number of pages itself and refuses other values.
        files |= {_ADVISOR: "none"} if (roots.sys / _ADVISOR).exists() else {}
        files |= _KSM_ON
    elif wanted.ksm == "off":
        files[KSM_RUN] = "0"
    if wanted.thp is not None:
        files[THP] = wanted.thp
    if wanted.read_ahead_bytes is not None:
        files[_read_ahead(folder, roots)] = str(wanted.read_ahead_bytes // 1024)
    return files


def _read_ahead(folder: Path, roots: Roots) -> str:
    disk = next(iter(disks_under([folder], roots, lambda _line: None)), None)
    if disk is None:
        raise ValueError(f"{folder} lies on no disk that is known")
    return read_ahead_of(disk)


_EXAMPLES = {
    "ksm": HostSettings(ksm="on"),
    "thp": HostSettings(thp="always"),
    "read_ahead": HostSettings.model_validate({"read_ahead": 0}),
}


CANNOT_WRITE = "cannot be written by this user"
"""Ends the reason where permission is missing, as everybody but root may find it."""


def unsettable(folder: Path, roots: Roots = THE_HOST) -> dict[str, str]:
    """The keys of a scenario's `host` that this host cannot follow, and why; empty where it can follow all.

    Sizes of huge pages stand beside them, as ``huge_pages 1 GiB``.
    """
    found = {name: why_not(_EXAMPLES[name], folder, roots) for name in HOST_SETTINGS}
    found["disk"] = why_no_emulated_disk()
    found |= {f"huge_pages {name}": _why_no_pages(size, roots) for name, size in RESERVED_BYTES.items()}
    found["cpus"], found["memory"] = why_no_ordered_host("cpuset"), why_no_ordered_host("memory")
    return {name: why for name, why in found.items() if why}


def why_no_emulated_disk() -> str:
    """Why this host cannot have an emulated disk, with what would help; empty where it can."""
    for device, module in ((_FUSE, "fuse"), (_LOOP, "loop")):
        if not device.exists():
            return f"{device} is missing: modprobe {module}"
    if util.find_spec("pyfuse3") is None:
        return "the Python package pyfuse3 is missing: `vmlab doctor --fix` installs it"
    return ""


def why_no_ordered_host(controller: str, mounts: Sequence[Mount] | None = None) -> str:
    """Why this host cannot have an ordered one for want of `controller`; empty where it can."""
    mount = mount_of(controller, hierarchies() if mounts is None else mounts)
    if mount is None:
        return f"the cgroup controller {controller} is missing: the kernel was started without it, or none is mounted"
    return "" if os.access(mount.root, os.W_OK) else f"the cgroups in {mount.root} {CANNOT_WRITE}"


def why_not(wanted: HostSettings, folder: Path, roots: Roots) -> str:
    """Why this host cannot follow `wanted`; empty where it can."""
    try:
        files = files_of(wanted, folder, roots)
    except (ValueError, OSError) as error:
        return str(error)
    return next(filter(None, (_why_no_file(roots.sys / name) for name in files)), "")


def _why_no_pages(size: int, roots: Roots) -> str:
    """Why no huge pages of `size` bytes can be reserved; empty where they can."""
    return _why_no_file(roots.sys / pool_of(size))


def _why_no_file(path: Path) -> str:
    if not path.exists():
        return f"{path} is missing: this kernel has no such setting"
    return "" if os.access(path, os.R_OK | os.W_OK) else f"{path} {CANNOT_WRITE}"


def in_force(folder: Path, roots: Roots = THE_HOST) -> InForce:
    """The host's present settings."""
    try:
        ahead = _number(_text(roots, _read_ahead(folder, roots)))
    except (ValueError, OSError):
        ahead = None
    run = _text(roots, KSM_RUN)
    return {
        "ksm": None if run is None else "on" if run == "1" else "off",
        "thp": _text(roots, THP),
        "read_ahead_bytes": None if ahead is None else ahead * 1024,
    }


def still_merged(roots: Roots) -> int:
    """The pages that KSM saves, those of zeros included, by its own count; 0 where that is not known."""
    return sum(_number(_text(roots, f"{KSM}/{name}")) or 0 for name in ("pages_sharing", "ksm_zero_pages"))


def full_scans(roots: Roots) -> int | None:
    """How often KSM has looked at all memory that may be merged; None where that is not known."""
    return _number(_text(roots, f"{KSM}/full_scans"))


def merged_bytes(roots: Roots) -> int:
    """The memory that KSM saves by sharing, in bytes."""
    return still_merged(roots) * PAGE_BYTES


def _text(roots: Roots, name: str) -> str | None:
    try:
        return read_setting(roots.sys, name)
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def read_ahead_of(disk: str) -> str:
    """The name of a whole disk's read-ahead, in KiB; `disk` is the kernel's name, such as ``sda``."""
    return f"block/{disk}/queue/read_ahead_kb"


def pool_of(size: int) -> str:
    """The name of the number of huge pages of `size` bytes that the host has reserved, for all that use them."""
    return f"kernel/mm/hugepages/hugepages-{size // 1024}kB/nr_hugepages"


def is_pool(name: str) -> bool:
    """Whether it is such a number, of which only a part is the lab's."""
    return _POOL.fullmatch(name) is not None


def is_known(name: str) -> bool:
    """Whether the lab may write the file of this name."""
    return name in _FIXED or _READ_AHEAD.fullmatch(name) is not None or is_pool(name)


def chosen_word(text: str) -> str:
    """The chosen word of a list such as ``always [madvise] never``; any other text as it is."""
    return text.split("[", 1)[1].split("]", 1)[0] if "[" in text else text


def read_setting(sys: Path, name: str) -> str:
    """The value of a setting, without the other choices that the file lists; `sys` is where /sys is. Raises OSError."""
    return chosen_word((sys / name).read_text().strip())


def write_setting(sys: Path, name: str, value: str) -> None:
    """Change a setting. Raises ValueError for a file that the lab may not write, OSError where it is refused."""
    if not is_known(name):
        raise ValueError(f"{name} is no setting of the host")
    # The kernel takes the value from a single write. A link in place of the file is not followed.
    descriptor = os.open(sys / name, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
