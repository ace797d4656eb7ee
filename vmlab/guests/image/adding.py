"""Makes a user's own disk known as an image: looked at, copied into the cache, digested, sealed; all or nothing.

Which programs are on it is read from its ext2, ext3 or ext4 root file system with debugfs, and never mounted.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import struct
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import Any, BinaryIO

from vmlab.guests.added_guest import all_programs
from vmlab.guests.cached.collection import Notice
from vmlab.guests.image import added
from vmlab.guests.image.added import ADDED, DISK, INITRD, KERNEL, KEY, AddedImage, System, id_of
from vmlab.guests.image.steps import run_step, stoppable, wait_alone
from vmlab.guests.ssh import read_private_key
from vmlab.integrity.digests import describe
from vmlab.integrity.long_work import LongWork, beside, copied
from vmlab.model.errors import HypervisorUnavailable, ImageError, RefusedError, UsageError, in_one_line
from vmlab.model.quantities import format_bytes
from vmlab.system.file_system import demand_usable
from vmlab.system.given_file import demand_given, open_given
from vmlab.system.packages import installing
from vmlab.system.removal import mark, remove_file
from vmlab.system.run_to_end import run_to_end
from vmlab.workloads.services import program_words

FORMATS = ("raw", "qcow2")
_DEADLINE = 60.0
_SECTOR = 512
_MOST_DISK = 8 * 2**40
"""Bytes of the largest disk that is added, and of the largest kernel or initial RAM disk beside it."""
_MOST_BESIDE = 2**29
_BOOT_SIGNATURE = b"\x55\xaa"
"""The last two bytes of the first sector of a disk that a BIOS boots from, or that has partitions."""
_USER = {
    "linux": re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII),
    "windows": re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,19}", re.ASCII),
}
_FLOCK = "hhqqi4x"
"""``struct flock``: kind, whence, begin, length and process, where 0 stands for an open file description."""
_WRITERS = (101, 3)
"""First and number of the bytes that QEMU locks in an image which it may write, resize or rewrite with the same data
(``RAW_LOCK_PERM_BASE`` in block/file-posix.c); one that only reads it locks others.
"""
_LOG = "add.log"
_CONSOLE = "rw console=ttyS0"


@dataclass(frozen=True, slots=True)
class NewImage:
    """What a user gives. `command_line` is the kernel's; None for one that names the first partition, or the whole disk
    where it has no partitions, as the root file system. `demand_unused` is called when the disk was copied, and raises
    where something uses it.
    """

    name: str
    disk: Path
    user: str
    key: Path
    kernel: Path | None = None
    initrd: Path | None = None
    command_line: str | None = None
    system: System = "linux"
    demand_unused: Callable[[], object] = lambda: None


def add(new: NewImage, progress: Notice) -> AddedImage:
    """Copy the disk into the cache, as raw, and keep it under its name; the given files are only read.

    Raises UsageError for a name, user, or key that cannot be used,
    ImageError for a disk that cannot, or a name that is taken, RefusedError for one that a QEMU may write, and
    RunInterrupted on a signal; then nothing is left.
    """
    _check_words(new)
    key = read_private_key(new.key)
    for given in filter(None, (new.kernel, new.initrd)):
        if demand_given(given) > _MOST_BESIDE:
            raise _too_large(given)
    _demand_unwritten(new.disk)
    kind = _format_of(new.disk)
    demand_usable(ADDED.folder())
    with stoppable(f"adding image {new.name}") as work:
        busy = f"image {new.name} is being added by another"
        with wait_alone(ADDED.build_lock(new.name), busy, progress, work):
            try:
                return _added(new, key, kind, work, progress)
            except OSError as error:
                raise ImageError(f"image {new.name} could not be added: {in_one_line(error)}") from error


def _too_large(given: Path) -> UsageError:
    return UsageError(f"{given} is larger than {format_bytes(_MOST_BESIDE)}; no kernel or initial RAM disk is")


def _check_words(new: NewImage) -> None:
    added.check_new_name(new.name)
    if not _USER[new.system].fullmatch(new.user):
        raise UsageError(f"{new.user[:40]!r} is no name of a user")
    if new.kernel is None and (new.initrd is not None or new.command_line is not None):
        raise UsageError("--initrd and --append belong to a kernel; give --kernel, too")
    if new.kernel is not None and new.system == "windows":
        raise UsageError("--kernel is for Linux; Windows boots from its disk")


def _demand_unwritten(disk: Path) -> None:
    """Raises RefusedError where a QEMU may write the disk, and for a device, and as `open_given`."""
    is_device = False
    with suppress(OSError):
        is_device = disk.is_block_device()
    if is_device:
        remedy = f"`qemu-img convert -O qcow2 {shlex.quote(str(disk))} FILE`, and --disk FILE"
        raise RefusedError(f"{disk} is a device, and not an ordinary file", remedy=remedy)
    with open_given(disk) as file:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, *_WRITERS, 0)
        try:
            found = fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked)
        except OSError:
            # A file system without locks; QEMU takes none there either.
            return
    if struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK:
        raise RefusedError(
            f"{disk} is in use by a QEMU, and a copy of a disk in use proves nothing",
            remedy="give a backup or a snapshot of it, or shut its guest off",
        )


def _format_of(disk: Path) -> str:
    """What qemu-img takes the file for. Raises ImageError unless that is one of FORMATS, all in this one file."""
    argv = ["qemu-img", "info", "--output=json", f"file:{disk.absolute()}"]
    missing = HypervisorUnavailable("qemu-img is missing", remedy=installing("qemu-utils"))
    late = ImageError(f"qemu-img took longer than {_DEADLINE:.0f} s to look at {disk}")
    asked = run_to_end(argv, _DEADLINE, missing=missing, late=late)
    if asked.returncode != 0:
        said = (asked.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ImageError(f"{disk} is no disk that can be read: {said.removeprefix('qemu-img: ')[:200]}")
    found: dict[str, Any] = json.loads(asked.stdout)
    if found["format"] not in FORMATS:
        raise ImageError(
            f"{disk} is {found['format']}, and an image is raw or qcow2",
            remedy="convert it to qcow2 on the host that it is from",
        )
    details = found.get("format-specific", {}).get("data", {})
    if "backing-filename" in found or "data-file" in details:
        # To convert it here would copy whatever file of this host its maker has named into the image.
        raise ImageError(
            f"{disk} is not whole: it needs another file",
            remedy="make it whole on the host that it is from, where that file is its own",
        )
    if (size := int(found.get("virtual-size", 0))) > _MOST_DISK:
        raise ImageError(f"{disk} is a disk of {format_bytes(size)}; an image has at most {format_bytes(_MOST_DISK)}")
    if found.get("encrypted"):
        raise ImageError(f"{disk} is encrypted")
    return str(found["format"])


def _added(new: NewImage, key: bytes, kind: str, work: LongWork, progress: Notice) -> AddedImage:
    if added.is_taken(new.name):
        raise ImageError(f"there is an image {new.name} already", remedy=f"vmlab image rm {new.name} first")
    with ADDED.begun(new.name, ADDED.gate(), progress) as folder:
        progress(f"copying {new.disk}")
        before = _version(new.disk)
        _copy_disk(new.disk, kind, folder, work)
        new.demand_unused()
        _demand_unwritten(new.disk)
        if _version(new.disk) != before:
            raise ImageError(f"{new.disk} was written while it was copied", remedy="shut off what uses it")
        for source, name in ((new.kernel, KERNEL), (new.initrd, INITRD)):
            if source is not None:
                _copy_beside(source, folder / name)
        (folder / KEY).touch(mode=0o600)
        (folder / KEY).write_bytes(key)
        command_line = _command_line(new, folder / DISK)
        names = [name for name in (DISK, KERNEL, INITRD, KEY) if (folder / name).exists()]
        progress("reading the files")
        work.begin("reading the files", sum((folder / name).stat().st_size for name in names))
        files = {name: describe(folder / name, work) for name in names}
        id = id_of(new.name, files[DISK])
        programs = {} if new.system == "windows" else _programs(new.name, folder / DISK, progress)
        said = {
            "name": new.name,
            "user": new.user,
            "command_line": command_line,
            "format": kind,
            "programs": programs,
            "system": new.system,
        }
        mark(folder, id)
        ADDED.seal(folder, id, files, said)
        folder.chmod(0o755)
        work.step()
        return added.load(ADDED.keep(folder, id))


def _programs(name: str, disk: Path, progress: Notice) -> dict[str, bool]:
    """Which programs that guests may need the disk has; nothing, with a notice, where that cannot be known."""
    try:
        programs = programs_on(disk, all_programs())
    except NotReadable as error:
        progress(
            f"which programs image {name} has could not be checked, because {error}; "
            "they are looked for when its guests have booted"
        )
        return {}
    if lacked := [program_words(program) for program, there in programs.items() if not there]:
        progress(f"image {name} lacks {', '.join(lacked)}: scenarios that need one of them are refused")
    return programs


def _copy_disk(source: Path, kind: str, folder: Path, work: LongWork) -> None:
    """Write the disk as raw, with holes for its zeros; a file system that can share the data does so."""
    target, log = folder / DISK, folder / _LOG
    if kind == "raw":
        work.begin(f"copying {source}", source.stat().st_size)
        argv = ["cp", "--reflink=auto", "--sparse=always", "--", str(source.absolute()), str(target)]
        run_step(argv, log, work, each=lambda: work.step((target.stat().st_size if target.exists() else 0) - work.done))
    else:
        work.begin(f"copying {source}", 100.0, "%")
        argv = ["qemu-img", "convert", "-p", "-f", kind, "-O", "raw", f"file:{source.absolute()}", str(target)]
        run_step(argv, log, work, said=lambda line: work.step(max(0.0, _percent(line) - work.done)))
    remove_file(log)


def _version(disk: Path) -> tuple[int, int]:
    """What differs once a disk was written."""
    state = disk.stat()
    return state.st_mtime_ns, state.st_size


def _percent(line: str) -> float:
    """How far qemu-img says that it is."""
    return max(map(float, re.findall(r"\(([0-9]+\.[0-9]+)/100%\)", line)), default=0.0)


def _copy_beside(source: Path, target: Path) -> None:
    """Copy a kernel or an initial RAM disk. Raises UsageError for one that has become too large meanwhile."""
    with open_given(source) as file:
        if os.fstat(file.fileno()).st_size > _MOST_BESIDE:
            raise _too_large(source)
        copied(file, target)


def _command_line(new: NewImage, disk: Path) -> str:
    """The kernel's command line; empty without a kernel. Raises ImageError for a disk that nothing can boot from."""
    with disk.open("rb") as file:
        first = file.read(_SECTOR)
    has_sector = first[-2:] == _BOOT_SIGNATURE and len(first) == _SECTOR
    if new.kernel is None:
        if not has_sector:
            raise ImageError(f"{new.disk} has no boot sector, so nothing can boot from it", remedy="or give --kernel")
        return ""
    return new.command_line or f"root=/dev/vda{'1' if has_sector else ''} {_CONSOLE}"


_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/snap/bin")
"""Where `command -v` looks in a guest, as sudo and sshd set PATH on Debian and Ubuntu."""
_SHELL = "sh"
"""The program that every root file system has."""
_EXT_MAGIC = (1024 + 56, b"\x53\xef")
"""Offset in the file system, and the bytes there."""
_MOST_OUTPUT = 8 * 2**20
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBUGFS_PAGER": "__none__"}
_FSTAB = "cat /etc/fstab"


class NotReadable(Exception):
    """Why it cannot be known which programs a disk has, in words that follow ``because``."""


def programs_on(disk: Path, wanted: Iterable[str]) -> dict[str, bool]:
    """For each name or absolute path in `wanted`, whether the disk has it. A link counts, whatever it leads to.

    Raises NotReadable where that cannot be known, and OSError.
    """
    names = list(wanted)
    with disk.open("rb") as file:
        offsets = [offset for offset in (0, *_partitions(disk)) if _has_ext(file, offset)]
    roots = [there for offset in offsets if _SHELL in (there := _present(disk, offset, [_SHELL, *names]))]
    if not roots:
        raise NotReadable("it has no ext2, ext3 or ext4 root file system, neither whole nor on a partition")
    return {name: any(name in there for there in roots) for name in names}


def _partitions(disk: Path) -> list[int]:
    """Where each partition begins, in bytes; nothing for a disk without a partition table. Raises NotReadable."""
    argv = ["partx", "--raw", "--noheadings", "--output", "START", str(disk.absolute())]
    missing = NotReadable("partx is missing; apt-get install util-linux")
    late = NotReadable(f"partx did not read it within {_DEADLINE:.0f} s")
    told = run_to_end(argv, _DEADLINE, missing=missing, late=late, env=_ENVIRONMENT)
    return [int(start) * _SECTOR for start in told.stdout.split()]


def _has_ext(file: BinaryIO, offset: int) -> bool:
    place, magic = _EXT_MAGIC
    file.seek(offset + place)
    return file.read(len(magic)) == magic


def _present(disk: Path, offset: int, names: Iterable[str]) -> set[str]:
    """Those of `names` that are in the file system at `offset` of the disk. Raises NotReadable."""
    places = {
        place: name
        for name in names
        for place in ([name] if name.startswith("/") else [f"{folder}/{name}" for folder in _FOLDERS])
    }
    said = _debugfs(disk, offset, [*(f"stat {place}" for place in places), _FSTAB]).splitlines()
    found: set[str] = set()
    for asked, answer in pairwise(said):
        place = asked.removeprefix("debugfs: stat ")
        if place in places and answer.startswith("Inode:"):
            found.add(places[place])
    _demand_one_file_system(said, places)
    return found


def _demand_one_file_system(said: list[str], places: Iterable[str]) -> None:
    """Raises NotReadable where /etc/fstab, which ends what debugfs said, has other file systems for some `places`."""
    asked = f"debugfs: {_FSTAB}"
    if asked not in said:
        raise NotReadable(f"debugfs did not read it within {_DEADLINE:.0f} s")
    for line in said[said.index(asked) + 1 :]:
        fields = line.split()
        if len(fields) < 2 or fields[0].startswith("#") or fields[1] == "/" or not fields[1].startswith("/"):
            continue
        if any(PurePosixPath(place).is_relative_to(fields[1]) for place in places):
            raise NotReadable(f"its {fields[1][:40]!r} is another file system")


def _debugfs(disk: Path, offset: int, commands: list[str]) -> str:
    # The name of the disk has no folder in it: debugfs takes what follows a question mark for options.
    argv = ["debugfs", "-f", "-", f"{disk.name}?offset={offset}"]
    try:
        process = subprocess.Popen(
            argv,
            cwd=disk.parent,
            env=_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise NotReadable("debugfs is missing; apt-get install e2fsprogs") from None
    clock = Timer(_DEADLINE, process.kill)
    clock.start()
    try:
        with process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("".join(f"{one}\n" for one in commands).encode())
            process.stdin.close()
            said = beside(partial(process.stdout.read, _MOST_OUTPUT + 1), process.kill)
            process.kill()
    except BrokenPipeError:
        said = b""
    finally:
        clock.cancel()
    if len(said) > _MOST_OUTPUT:
        raise NotReadable("debugfs prints more than is read of it")
    return said.decode("utf-8", "replace")
