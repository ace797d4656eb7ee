"""The files behind the host settings of a scenario, their present values, and which cannot be changed.

The one module that writes settings of the host's kernel: a fixed list of files, named by their path below /sys, those
of the kernel's memory (``vm/swappiness``) below /proc/sys. Writing some of them changes another one: a disk's scheduler
sets its ``nr_requests`` and has tunables of its own (``queue/iosched``), one of which follows ``nr_requests``, and
``dirty_ratio`` is 0 where ``dirty_bytes`` is set. So the state of a setting, as it must be put back, has those in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import get_args

from vmlab.model.scenarios.host_settings import HOST_SETTINGS, HostSettings, Scheduler
from vmlab.model.scenarios.memory_levers import RESERVED_BYTES
from vmlab.system.descriptors import closed_after
from vmlab.system.mounts import Mount, hierarchies, mount_of
from vmlab.telemetry.place import disks_under, lowest_disks_under
from vmlab.telemetry.source import PAGE_BYTES, THE_HOST, Roots

KSM = "kernel/mm/ksm"
THP = "kernel/mm/transparent_hugepage/enabled"

_FIXED = frozenset({THP, *(f"{KSM}/{name}" for name in ("run", "pages_to_scan", "sleep_millisecs", "advisor_mode"))})
_SCHEDULER, _REQUESTS = "scheduler", "nr_requests"
_TUNABLES = "iosched"
_QUEUE = re.compile(
    r"block/[A-Za-z0-9][A-Za-z0-9!_.-]*/queue/"
    rf"(?:read_ahead_kb|{_SCHEDULER}|{_REQUESTS}|{_TUNABLES}/[a-z][a-z0-9_]{{0,63}})",
    re.ASCII,
)
_SWAPPINESS, _DIRTY, _DIRTY_BYTES = "vm/swappiness", "vm/dirty_ratio", "vm/dirty_bytes"
_SYSCTLS = frozenset({_SWAPPINESS, _DIRTY, _DIRTY_BYTES})
_POOL = re.compile(r"kernel/mm/hugepages/hugepages-[0-9]{1,9}kB/nr_hugepages", re.ASCII)
KSM_RUN = f"{KSM}/run"
_FUSE = Path("/dev/fuse")
_LOOP = Path("/dev/loop-control")
_ADVISOR = f"{KSM}/advisor_mode"
_KSM_ON = {f"{KSM}/pages_to_scan": "1000", f"{KSM}/sleep_millisecs": "20", KSM_RUN: "1"}
"""Up to 50,000 pages a second, 195 MiB of guests' memory: the default of 100 pages takes minutes for a small tile."""
_MOST_SCHEDULED = 2048
"""The kernel's bound of ``nr_requests`` where a scheduler has the requests (MAX_SCHED_RQ in block/blk-mq.h)."""
InForce = dict[str, str | int | None]
"""The fields of `HostSettings`; None for what is not known."""


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
    # A disk's scheduler goes first, which sets the number of its requests.
    for last, value in ((_SCHEDULER, wanted.scheduler), (_REQUESTS, wanted.nr_requests)):
        if value is not None:
            files |= dict.fromkeys((_of_queue(disk, last) for disk in _lowest_disks(folder, roots)), str(value))
    for name, value in ((_SWAPPINESS, wanted.swappiness), (_DIRTY, wanted.dirty_ratio)):
        if value is not None:
            files[name] = str(value)
    return files


def _read_ahead(folder: Path, roots: Roots) -> str:
    return read_ahead_of(_found(disks_under([folder], roots, lambda _line: None), folder)[0])


def _lowest_disks(folder: Path, roots: Roots) -> list[str]:
    return _found(lowest_disks_under(folder, roots), folder)


def _found(disks: list[str], folder: Path) -> list[str]:
    if not disks:
        raise ValueError(f"{folder} lies on no disk that is known")
    return disks


def _of_queue(disk: str, last: str) -> str:
    return f"block/{disk}/queue/{last}"


_EXAMPLES = {
    "ksm": HostSettings(ksm="on"),
    "thp": HostSettings(thp="always"),
    "read_ahead": HostSettings.model_validate({"read_ahead": 0}),
    "scheduler": HostSettings(scheduler="none"),
    "nr_requests": HostSettings(nr_requests=64),
    "swappiness": HostSettings(swappiness=60),
    "dirty_ratio": HostSettings(dirty_ratio=20),
}


CANNOT_WRITE = "cannot be written by this user"
"""Ends the reason where permission is missing, as everybody but root may find it."""
NO_TRANSPARENT = "thp as it is"
"""The key for why no guest has transparent huge pages where a scenario does not set ``host.thp``."""


def unsettable(folder: Path, roots: Roots = THE_HOST) -> dict[str, str]:
    """The keys of a scenario's `host` that this host cannot follow, and why; empty where it can follow all.

    Sizes of huge pages are beside them, as ``huge_pages 1 GiB``, schedulers, as ``scheduler bfq``, and the
    host's own huge pages, as `NO_TRANSPARENT`.
    """
    found = {name: why_not(_EXAMPLES[name], folder, roots) for name in HOST_SETTINGS}
    found["swappiness"] = found["swappiness"] or why_no_swappiness()
    found |= {f"{_SCHEDULER} {name}": _why_no_scheduler(name, folder, roots) for name in get_args(Scheduler)}
    found[NO_TRANSPARENT] = _why_no_transparent(roots)
    found["disk"] = why_no_emulated_disk()
    found |= {
        f"huge_pages {name}": _why_no_file(path_of(roots, pool_of(size))) for name, size in RESERVED_BYTES.items()
    }
    found["cpus"], found["memory"] = why_no_ordered_host("cpuset"), why_no_ordered_host("memory")
    return {name: why for name, why in found.items() if why}


def _why_no_transparent(roots: Roots) -> str:
    found = _text(roots, THP)
    if found is None:
        return "this kernel has no transparent huge pages"
    return "on this host they are off; set host: {thp: madvise}" if found == "never" else ""


def why_no_swappiness(mounts: Sequence[Mount] | None = None) -> str:
    """Why the host's swappiness is not that of the guests; empty where it is."""
    mount = mount_of("memory", hierarchies() if mounts is None else mounts)
    old = mount is not None and mount.version == 1
    return "cgroups of version 1, in which the guests are, have a swappiness of their own" if old else ""


def _why_no_scheduler(name: str, folder: Path, roots: Roots) -> str:
    """Why a disk cannot have the scheduler `name`; empty where all can, or nobody knows."""
    try:
        for disk in _lowest_disks(folder, roots):
            offered = path_of(roots, _of_queue(disk, _SCHEDULER)).read_text().replace("[", "").replace("]", "").split()
            if name not in offered:
                return f"{disk} has {', '.join(offered)} alone; modprobe {name} may help"
    except (OSError, ValueError):
        return ""
    return ""


def most_requests(folder: Path, roots: Roots = THE_HOST) -> dict[str, int]:
    """The largest ``nr_requests`` that all disks below `folder` take, by their scheduler, as far as that is known.

    That of the scheduler that they have now stands under no name. Without one it is the number of their hardware's tags
    (blk_mq_tag_update_depth in block/blk-mq-tag.c).
    """
    found = dict.fromkeys(get_args(Scheduler), _MOST_SCHEDULED)
    try:
        disks = _lowest_disks(folder, roots)
        files = [file for disk in disks for file in path_of(roots, f"block/{disk}/mq").glob("*/nr_tags")]
        tags = [count for file in files if (count := _number(file.read_text().strip())) is not None]
        now = {read_setting(roots, _of_queue(disk, _SCHEDULER)) for disk in disks}
    except (OSError, ValueError):
        tags, now = [], set()
    found["none"] = min(tags, default=0)
    bounds = [found.get(one, 0) for one in now]
    found[""] = min(bounds, default=0)
    return {name: most for name, most in found.items() if most}


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
    return next(filter(None, (_why_no_file(path_of(roots, name)) for name in files)), "")


def _why_no_file(path: Path) -> str:
    if not path.exists():
        return f"{path} is missing: this kernel has no such setting"
    return "" if os.access(path, os.R_OK | os.W_OK) else f"{path} {CANNOT_WRITE}"


def in_force(folder: Path, roots: Roots = THE_HOST) -> InForce:
    """The host's present settings."""
    try:
        ahead, disk = _number(_text(roots, _read_ahead(folder, roots))), _lowest_disks(folder, roots)[0]
        scheduler, requests = (_text(roots, _of_queue(disk, last)) for last in (_SCHEDULER, _REQUESTS))
    except (ValueError, OSError):
        ahead = scheduler = requests = None
    run = _text(roots, KSM_RUN)
    return {
        "ksm": None if run is None else "on" if run == "1" else "off",
        "thp": _text(roots, THP),
        "read_ahead_bytes": None if ahead is None else ahead * 1024,
        "scheduler": scheduler,
        "nr_requests": _number(requests),
        "swappiness": _number(_text(roots, _SWAPPINESS)),
        "dirty_ratio": _number(_text(roots, _DIRTY)),
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
        return read_setting(roots, name)
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def read_ahead_of(disk: str) -> str:
    """The name of a whole disk's read-ahead, in KiB; `disk` is the kernel's name, such as ``sda``."""
    return _of_queue(disk, "read_ahead_kb")


def pool_of(size: int) -> str:
    """The name of the number of huge pages of `size` bytes that the host has reserved, for all that use them."""
    return f"kernel/mm/hugepages/hugepages-{size // 1024}kB/nr_hugepages"


def is_pool(name: str) -> bool:
    """Whether it is such a number, of which only a part is the lab's."""
    return _POOL.fullmatch(name) is not None


def boot_of(roots: Roots) -> str:
    """Identifies the present boot of the host: pages that were reserved before it have gone. Raises OSError."""
    return (roots.proc / "sys/kernel/random/boot_id").read_text().strip()


def is_known(name: str) -> bool:
    """Whether the lab may write the file of this name."""
    return name in _FIXED or name in _SYSCTLS or _QUEUE.fullmatch(name) is not None or is_pool(name)


def path_of(roots: Roots, name: str) -> Path:
    """The file of a setting."""
    return roots.proc / "sys" / name if name in _SYSCTLS else roots.sys / name


def chosen_word(text: str) -> str:
    """The chosen word of a list such as ``always [madvise] never``; any other text as it is."""
    return text.split("[", 1)[1].split("]", 1)[0] if "[" in text else text


def read_setting(roots: Roots, name: str) -> str:
    """The value of a setting, without the other choices that the file lists. Raises OSError."""
    return chosen_word(path_of(roots, name).read_text().strip())


def setting_before(name: str) -> str | None:
    """The setting that sets this one whenever it is written itself: a disk's scheduler; None for most."""
    return f"{name.removesuffix(_REQUESTS)}{_SCHEDULER}" if name.endswith(f"/queue/{_REQUESTS}") else None


def _others_of(roots: Roots, name: str) -> list[str]:
    """The settings that are changed where this one is written, in the order in which they are put back."""
    if name == _DIRTY:
        return [_DIRTY_BYTES]
    queue, _, last = name.rpartition("/")
    if last not in (_SCHEDULER, _REQUESTS):
        return []
    try:
        tunables = sorted(file.name for file in path_of(roots, f"{queue}/{_TUNABLES}").iterdir())
    except FileNotFoundError:
        tunables = []
    every = [f"{queue}/{_REQUESTS}"] * (last == _SCHEDULER) + [f"{queue}/{_TUNABLES}/{one}" for one in tunables]
    return [one for one in every if is_known(one) and _number(read_setting(roots, one)) is not None]


def state_of(roots: Roots, name: str) -> str:
    """What a setting is, and what would be changed by writing it: ``none, nr_requests 64``. Raises OSError."""
    others = [f"{Path(one).name} {read_setting(roots, one)}" for one in _others_of(roots, name)]
    return ", ".join([read_setting(roots, name), *others])


def value_in(state: str) -> str:
    """The setting's own value in its state."""
    return state.partition(", ")[0]


def write_setting(roots: Roots, name: str, value: str) -> None:
    """Change a setting. Raises ValueError for a file that the lab may not write, OSError where it is refused."""
    if not is_known(name):
        raise ValueError(f"{name} is no setting of the host")
    # The kernel takes the value from a single write. A link in place of the file is not followed.
    flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with closed_after(os.open(path_of(roots, name), flags)) as descriptor:
        os.write(descriptor, value.encode())


def write_state(roots: Roots, name: str, state: str) -> None:
    """Put a setting back to a state that `state_of` gave. Raises as `write_setting`."""
    value, *others = state.split(", ")
    known = dict(one.rpartition(" ")[::2] for one in others)
    if name == _DIRTY and known.get(Path(_DIRTY_BYTES).name, "0") != "0":
        # A ratio of 0 beside it says that the bytes count, and would stop all who write if it were written.
        write_setting(roots, _DIRTY_BYTES, known[Path(_DIRTY_BYTES).name])
        return
    write_setting(roots, name, value)
    if name == _DIRTY:
        return
    # With a scheduler its tunables are there again.
    for other in _others_of(roots, name):
        if (wanted := known.get(Path(other).name)) not in (None, read_setting(roots, other)):
            write_setting(roots, other, str(wanted))
