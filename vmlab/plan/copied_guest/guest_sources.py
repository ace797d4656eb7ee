"""From the word that a user gives to the guest that it names: a file, a domain of libvirt's, a process of QEMU's."""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from vmlab.model.domain import FILE, HOST_DEVICE
from vmlab.model.errors import RefusedError, ScenarioError, UsageError
from vmlab.model.quantities import whole
from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.copied_guest.process_guest import guest_of_process, named_so
from vmlab.plan.copied_guest.qm_guest import guest_of_qm_config, is_qm_config
from vmlab.plan.copied_guest.xml_disks import vol_path
from vmlab.plan.copied_guest.xml_guest import guest_of_xml, is_xml
from vmlab.plan.scenario_file.loading import STANDARD_INPUT
from vmlab.plan.scenario_file.problems import meant, shorten
from vmlab.plan.scenario_file.yaml_text import as_text
from vmlab.system.given_file import read_given
from vmlab.telemetry.domains.libvirt_reader import SYSTEM, FoundDomain, LibvirtReader
from vmlab.telemetry.domains.qemu_processes import guest_name, own_guests
from vmlab.telemetry.source import THE_HOST, Roots

_MOST_BYTES = 2**20
_PATIENCE_SECONDS = 15.0
_PIPED = "<standard input>"
_LONGEST_NAME = 255
_OF_THIS_HOST = re.compile(r"qemu(\+unix)?:///.*")
"""URIs of libvirts of this host: they name no host, and are reached by a socket of this one."""
_ENDINGS = (".xml", ".conf", ".txt", ".cfg")
_T = TypeVar("_T")


def found_guest(source: str, connect: str | None = None, roots: Roots = THE_HOST) -> FoundGuest:
    """The guest that `source` names, which has a disk: `-` and paths are texts, other words domains of the libvirt at
    `connect`, or processes by their number or their guest's name, or files in this folder.

    Raises UsageError, with line and column for a text, and RefusedError where this user may not look.
    """
    guest = _guest(source, connect, roots)
    if not guest.disks:
        raise UsageError(f"{guest.name} ({guest.origin}) has no disk, and a scenario compares settings of its disks")
    return guest


def _guest(source: str, connect: str | None, roots: Roots) -> FoundGuest:
    if source == STANDARD_INPUT:
        return guest_of_text(_piped(), _PIPED)
    is_path = "/" in source or source.endswith(_ENDINGS)
    if is_path and connect is None:
        return _of_file(source)
    if connect is not None:
        return _of_domain(_domain(source, connect), source, connect, roots)
    guest, why = guest_here(source, roots)
    if guest is not None:
        return guest
    if len(os.fsencode(source)) <= _LONGEST_NAME and Path(source).is_file():
        return _of_file(source)
    if why:
        raise RefusedError(f"{why}; no QEMU process and no file is called {shorten(source)!r} either")
    running = [guest_name(one.name, pid) for pid, one in own_guests(roots.proc).items()]
    where = "" if LibvirtReader(SYSTEM).is_there() else "; no libvirt listens here"
    raise UsageError(
        f"there is no domain, QEMU process or file {shorten(source)!r}; {meant(source, dict.fromkeys(running))}{where}"
    )


def guest_here(name: str, roots: Roots = THE_HOST) -> tuple[FoundGuest | None, str]:
    """The domain of this host's libvirt, or the QEMU process, that is called so, whatever files are; and why libvirt
    could not be asked, empty where it was. Raises UsageError and RefusedError as `found_guest` does for a process.
    """
    why = ""
    reader = LibvirtReader(SYSTEM)
    if reader.is_there():
        try:
            domain = _within_patience(lambda: reader.find(name), SYSTEM)
        except OSError as error:
            why = str(error)
        else:
            if domain is not None:
                return _of_domain(domain, name, SYSTEM, roots), ""
    return _of_process(name, roots), why


def disk_to_copy(name: str, connect: str | None = None, *, has_kernel: bool = False) -> Path:
    """The file of the first disk of a domain of this host that is shut off. Raises UsageError where there is none, and
    RefusedError where the domain runs, or will go on where it was saved, for a device and a volume of a storage pool,
    and where UEFI boots the disk, unless the image `has_kernel`, which QEMU loads: guests of added images have BIOS.
    """
    uri, named = connect or SYSTEM, f"domain {shorten(name)}"
    if not _is_here(uri):
        raise UsageError(
            f"{shorten(uri, 200)} is not known to be a libvirt of this host, and a file of that path here would be "
            "another one: copy the disk's file to this host, and name it with --disk FILE"
        )
    domain = _domain(name, uri)
    guest = guest_of_xml(domain.xml, f"{uri} {shorten(name)}", named, THE_HOST)
    if guest.is_running:
        raise RefusedError(
            f"{named} is running, and a copy of a disk in use proves nothing",
            remedy=f"`virsh backup-begin {shorten(name)}` makes a copy for --disk, or a snapshot does, or shut it off",
        )
    if domain.is_saved:
        raise RefusedError(
            f"{named} is saved in the middle of its work, so that its disk lacks what its memory has",
            remedy=f"`virsh start {shorten(name)}`, and shut it off",
        )
    if guest.found.value("firmware") == "uefi" and not has_kernel:
        raise RefusedError(
            f"{named} boots with UEFI, and guests of added images boot with BIOS",
            remedy="name its kernel with --kernel and --initrd, or the file with --disk if it boots with BIOS too",
        )
    if not guest.disks:
        raise UsageError(f"{named} has no disk")
    disk = next(guest.in_order())
    what = f"disk {disk.target} of {named} is"
    if disk.pool:
        words = f"volume {shorten(disk.file, 200)} of storage pool {shorten(disk.pool)}"
        raise RefusedError(f"{what} {words}", remedy=f"--disk with the file that {vol_path(disk)} names")
    if disk.protocol == HOST_DEVICE:
        said = disk.found.value("format")
        convert = f"qemu-img convert{f' -f {said}' if said else ''} -O qcow2 {shlex.quote(disk.file)} FILE"
        raise RefusedError(f"{what} the device {disk.file}", remedy=f"`{convert}`, and --disk FILE")
    if disk.protocol != FILE or not disk.file.startswith("/"):
        raise UsageError(f"{what} {shorten(disk.file, 200)} by {disk.protocol}, and no file of this host's")
    return Path(disk.file)


def _is_here(uri: str) -> bool:
    """Whether the files of its domains are known to be those of this host."""
    return _OF_THIS_HOST.fullmatch(uri) is not None


def _domain(name: str, uri: str) -> FoundDomain:
    """The domain of the libvirt at `uri`. Raises UsageError where there is none, and RefusedError."""
    reader = LibvirtReader(uri)
    if not reader.is_there():
        raise RefusedError(f"no libvirt listens at {uri}")
    try:
        domain = _within_patience(lambda: reader.find(name), uri)
    except OSError as error:
        raise RefusedError(str(error)) from error
    if domain is None:
        raise UsageError(f"there is no domain {shorten(name)!r} at {uri}")
    return domain


def _of_file(path: str) -> FoundGuest:
    return guest_of_text(read_given(Path(path), _MOST_BYTES), path)


def _piped() -> bytes:
    file = sys.stdin
    if file is None or file.isatty():
        raise UsageError("`-` reads XML or the text of `qm config` from a pipe or a file: virsh dumpxml web01 | …")
    try:
        found: bytes = file.buffer.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from error
    if len(found) > _MOST_BYTES:
        raise UsageError("standard input is larger than 1 MiB; no description of a guest is")
    return found


def guest_of_text(raw: bytes, name: str) -> FoundGuest:
    """The guest that a text from `name` describes. Raises ScenarioError, with line and column."""
    text = as_text(raw, name)
    if is_xml(text):
        return guest_of_xml(text, name, f"the XML of a domain in {name}")
    if is_qm_config(text):
        return guest_of_qm_config(text, name, f"the text of qm config in {name}")
    what = "is empty" if not text.strip() else "is neither libvirt's XML of a domain nor the text of `qm config`"
    raise ScenarioError(what, file=name, line=1, column=1)


def _of_domain(domain: FoundDomain, source: str, uri: str, roots: Roots) -> FoundGuest:
    origin = f"domain {shorten(source)} of {uri}"
    guest = guest_of_xml(domain.xml, f"{uri} {shorten(source)}", origin, roots if _is_here(uri) else None)
    # Of one that runs libvirt would ask QEMU's monitor.
    unknown = [] if guest.is_running else [disk for disk in guest.disks if "size" not in disk.found.said]
    try:
        for disk in unknown:
            size = _within_patience(partial(domain.disk_bytes, disk.target), uri)
            disk.found.say("size", size, "libvirt's blockInfo")
    except OSError as error:
        guest.found.lack(f"sizes: {error}")
    return guest


def _within_patience(ask: Callable[[], _T], uri: str) -> _T:
    """The answer of a libvirt that may hang. Raises OSError, whatever its binding raises."""
    answers: SimpleQueue[_T | Exception] = SimpleQueue()

    def work() -> None:
        try:
            answers.put(ask())
        except Exception as error:  # noqa: BLE001 - it is raised in the caller
            answers.put(error)

    threading.Thread(target=work, name="libvirt", daemon=True).start()
    try:
        answer = answers.get(timeout=_PATIENCE_SECONDS)
    except Empty:
        raise OSError(f"libvirt at {uri} has not answered for {_PATIENCE_SECONDS:.0f} s") from None
    if isinstance(answer, OSError):
        raise answer
    if isinstance(answer, Exception):
        raise OSError(f"libvirt at {uri} cannot be asked: {shorten(answer, 200)}") from answer
    return answer


def _of_process(source: str, roots: Roots) -> FoundGuest | None:
    """The guest of the process of this number or name; None where there is none. Raises UsageError for several, and
    for a process that is no QEMU; RefusedError where this user may not read its arguments.
    """
    running = own_guests(roots.proc)
    number = whole(source)
    pids = [number] if number in running else named_so(running, source)
    if len(pids) > 1:
        numbers = ", ".join(map(str, pids))
        raise UsageError(f"{len(pids)} processes are called {shorten(source)!r}; name one by its number: {numbers}")
    if pids:
        return guest_of_process(pids[0], running[pids[0]], roots)
    folder = roots.proc / str(number)
    if number and folder.is_dir():
        try:
            # A thread of the kernel has no arguments, and a process none for a moment when its program begins or ends.
            named = (folder / "cmdline").read_bytes().split(b"\0")[0] or (folder / "comm").read_bytes().strip()
        except PermissionError:
            words = f"this user may not read the arguments of process {source}"
            raise RefusedError(words, remedy="run it as root") from None
        except OSError:
            return None
        program = shorten(os.fsdecode(named))
        raise UsageError(f"process {source} is no QEMU with a guest of this host's own, but {program}")
    return None
