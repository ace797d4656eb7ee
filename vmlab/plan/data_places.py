"""Where guests' disks lie: what a scenario cannot ask of such a place, and whether this host has it.

A volume group is asked when a run begins, as its commands need root; see `lab.process.launch`.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from vmlab.model.errors import RefusedError
from vmlab.model.places import cache_folder, remedy_for, runs_folder, runtime_folder, state_folder
from vmlab.model.quantities import format_bytes
from vmlab.model.run import CACHE_FLAGS, CacheMode
from vmlab.model.scenarios.data_backing import DataPlace, FileSystem
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.estimate import data_disk_bytes, written_to_data_disk
from vmlab.plan.scenario_file.problems import Problem
from vmlab.plan.terms import GuestPlan, HostFacts, Plan
from vmlab.system.file_system import nearest_folder, offers, supports_direct
from vmlab.system.packages import OF_FILE_SYSTEMS, installing

_LOOP = Path("/dev/loop-control")
_KERNELS_OWN = (Path("/proc"), Path("/sys"), Path("/dev"))
_RUN = Path("/run")


_OF_RUNS_DISK = ("read_ahead", "scheduler", "nr_requests")
"""Settings of the host that are of one disk."""


def of_data_places(scenario: Scenario) -> Iterator[Problem]:
    """What a data disk cannot be asked for where it lies, on any host."""
    for name, guest in scenario.guests.items():
        place = guest.data_place
        if place is None:
            continue
        if place.kind == "rbd" and guest.allocation == "full":
            image = f"an image in pool {place.name}"
            message = f"{image} is allocated by Ceph as it is written; use thin, or another backing"
            yield Problem(("guests", name, "allocation"), message)
        if place.kind == "lvm" and guest.allocation == "thin" and "allocation" in guest.model_fields_set:
            message = "a logical volume has all of its room from the start; use full, or leave allocation out"
            yield Problem(("guests", name, "allocation"), message)
        if place.on_other_disk and scenario.host.disk is not None:
            message = f"an emulated disk does not lie below {place}; leave host.disk out, or use another backing"
            yield Problem(("guests", name, "backing"), message)
        for key in _OF_RUNS_DISK if place.on_other_disk else ():
            if key in scenario.host.asked():
                message = f"host.{key} is of the disk with the runs, and the data disk of guest {name} is on {place}"
                yield Problem(("host", key), message, True)


def check_direct(plan: Plan) -> None:
    """Raise RefusedError, in one line, where a guest's disks lie beside runs or images and need O_DIRECT there."""
    # An emulated disk has a file system of its own, with the images as well, and asks for that of runs itself.
    folders = (runs_folder(), cache_folder()) if plan.scenario.host.disk is None else ()
    asked: dict[tuple[CacheMode, Path], str] = {}
    for guest in (one for cell in plan.cells for one in cell.guests):
        modes = [(guest.resources.cache, folder) for folder in folders]
        if guest.resources.data_place is not None and guest.resources.data_place.kind in ("file", "block"):
            modes += [(guest.resources.data_mode, folder) for folder in folders[:1]]
        for mode, folder in modes:
            if CACHE_FLAGS[mode].direct:
                asked.setdefault((mode, folder), guest.guest)
    for (mode, folder), name in asked.items():
        # Where this user may not look, the run finds out.
        with suppress(OSError):
            if not supports_direct(place := nearest_folder(folder)):
                words = f"guest {name}: cache mode {mode} needs O_DIRECT, which the file system of {place}"
                raise RefusedError(f"{words} does not have", remedy=remedy_for(folder))


def check_data_places(plan: Plan) -> None:
    """Raise RefusedError, in one line, where a folder or a file system for data disks cannot be had on this host."""
    for place in plan.data_places:
        if place.file_system is not None:
            _require_file_system(place.file_system)
        elif place.kind == "folder":
            guests = (guest for cell in plan.cells for guest in cell.guests)
            _require_folder(place, [guest for guest in guests if guest.resources.data_place == place])


def lacking_room(plan: Plan, host: HostFacts) -> Iterator[str]:
    """A line for each cell and file system with too little room for data disks in folders, and for what else the run
    writes where that is the same one.
    """
    runs = nearest_folder(runs_folder()).stat().st_dev
    for cell in plan.cells:
        needed: Counter[int] = Counter()
        folders: dict[int, Path] = {}
        for guest in cell.guests:
            place = guest.resources.data_place
            if place is not None and place.kind == "folder":
                folder = folder_of(place)
                device = folder.stat().st_dev
                written = written_to_data_disk(guest, cell.workloads, host.accelerator_guess)
                needed[device] += data_disk_bytes(guest.resources, written)
                folders.setdefault(device, folder)
        for device, folder in folders.items():
            bytes_needed = needed[device] + (cell.disk_bytes if device == runs else 0)
            if bytes_needed > (free := shutil.disk_usage(folder).free):
                yield f"data disks will take {format_bytes(bytes_needed)} and {folder} has {format_bytes(free)} free"


def folder_of(place: DataPlace) -> Path:
    """The folder of a place that is one, without links. Raises OSError and RuntimeError where it cannot be had."""
    return Path(place.name).resolve(strict=True)


def _require_file_system(kind: FileSystem) -> None:
    program = f"mkfs.{kind}"
    if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
        words = f"a data disk on {kind} needs {program}, which is not installed"
        raise RefusedError(words, remedy=installing(OF_FILE_SYSTEMS[kind]))
    if not offers(kind):
        raise RefusedError(f"a data disk on {kind}: this kernel has no such file system")
    if not _LOOP.exists():
        raise RefusedError(f"a data disk on {kind} needs loop devices, and {_LOOP} is missing", remedy="modprobe loop")


def _require_folder(place: DataPlace, guests: Sequence[GuestPlan]) -> None:
    what = f"the data disk of guest {guests[0].guest} cannot lie in {place.name}"
    try:
        folder = folder_of(place)
        if not folder.is_dir():
            raise RefusedError(f"{what}: it is no folder")
    except FileNotFoundError as error:
        raise RefusedError(f"{what}: there is no such folder") from error
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "its links lead nowhere"
        raise RefusedError(f"{what}: {why}") from error
    if (why := _why_not(folder)) is not None:
        raise RefusedError(f"{what}: {why}")
    direct = {one.resources.data_mode for one in guests if CACHE_FLAGS[one.resources.data_mode].direct}
    if direct and not supports_direct(folder):
        raise RefusedError(f"{what}: cache mode {min(direct)} needs O_DIRECT, which its file system does not have")


def _why_not(folder: Path) -> str | None:
    for own in (state_folder(), cache_folder(), runtime_folder()):
        if folder.is_relative_to(own.resolve()):
            return f"it lies in vmlab's own folder {own}; backing: file is what lies there"
    if folder.is_relative_to(_RUN):
        return f"a run does not see the host's {_RUN}; mount --bind shows it elsewhere"
    if any(folder.is_relative_to(one) for one in _KERNELS_OWN):
        return "no file of a user's lies there"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "its file system is read-only"
    return None if os.access(folder, os.W_OK | os.X_OK) else "this user cannot write there"
