"""The QEMU processes of this host that no lab has started, found in /proc, and their counters at each tick."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vmlab.model.domain import UNKNOWN, Domain
from vmlab.model.names import HELPER_CHANNEL
from vmlab.system.processes import TICKS_PER_SECOND, stat_of
from vmlab.telemetry.domains.open_disks import OpenFile, open_files, path_seen_by
from vmlab.telemetry.domains.qemu_arguments import ReadConfig
from vmlab.telemetry.domains.qemu_options import QemuOptions
from vmlab.telemetry.lab_cpu import cpu_clock_of
from vmlab.telemetry.source import PAGE_BYTES, KernelFile, KeyedLines, Roots, readable

_PROGRAM = re.compile(
    r"\.?(qemu|kvm|kvm-spice|qemu-kvm(-.*)?|qemu-system-("
    r"aarch64|alpha|arm|avr|cris|hppa|i386|loongarch64|m68k|microblaze(el)?|mips(64)?(el)?|or1k|ppc(64)?|riscv(32|64)|rx|"
    r"s390x|sh4(eb)?|sparc(64)?|tricore|x86_64|xtensa(eb)?)([-.].*)?)(?<!\.sh)(?<!\.py)"
)
"""Names of QEMU's programs. A distribution adds ``-spice``, or hides one behind a wrapper as ``.qemu-kvm-wrapped``."""
_LAB = b"vmlab.lab."
"""The modules of a lab's processes; a QEMU below one of them is a lab's."""
_LIST_SECONDS = 2.0
_LIST_ANYWAY_SECONDS = 30.0
"""A container's loadavg (lxcfs) may not have its newest process."""
_PROOF_SECONDS = 10.0
_MOST_PARENTS = 64
_MOST_CONFIG_BYTES = 1 << 20
_CLOCK_SECONDS = 2.0
"""How much later than its process a file may seem to be written: clocks are set, and file systems round."""
_STATUS = KeyedLines((b"VmRSS:", b"VmSwap:"))
IO = KeyedLines((b"read_bytes:", b"write_bytes:"))
_KSM_STAT = KeyedLines((b"ksm_merging_pages",))


class ProcessCounters(NamedTuple):
    """One reading of a QEMU: CPU and wait for a CPU in ns, bytes; None for what this user may not read."""

    cpu_ns: int
    delays_ns: dict[int, int]
    rss_bytes: int
    swapped_bytes: int
    ksm_bytes: int | None
    read_bytes: int | None
    written_bytes: int | None


class QemuProcess:
    """The open files of /proc of one QEMU, and what its arguments say. Raises OSError where it has gone."""

    def __init__(self, pid: int, options: QemuOptions, roots: Roots, clock_ns: Callable[[int], int]) -> None:
        self.pid = pid
        self._roots = roots
        self._clock_ns = clock_ns
        self.folder = roots.proc / str(pid)
        self._status = KernelFile(self.folder / "status")
        self._io = readable(self.folder / "io")
        self._ksm = readable(self.folder / "ksm_merging_pages")
        self._ksm_stat = None if self._ksm else readable(self.folder / "ksm_stat")
        self._waits: dict[int, KernelFile] = {}
        self._listed_at = self._proved_at = -1e9
        self._opened: tuple[OpenFile, ...] = ()
        self._threads: dict[int, bytes] = {}
        self.proof = ""
        """The accelerator that runs by the process, see `accelerator_of`; empty while nothing proves one."""
        self.words = options.words()
        """What its arguments name."""
        self.domain = Domain(
            name=guest_name(options.name, pid),
            source="process",
            pid=pid,
            uuid=options.uuid,
            vcpus=options.vcpus,
            memory_bytes=options.memory_bytes,
            accelerator=options.accelerator,
            disks=tuple(options.disks()),
        )
        """Who it is by its arguments, without a look at its open files."""

    def counters(self, now: float) -> ProcessCounters:
        """Read all of them. Raises OSError or ValueError where the process has gone."""
        if now - self._listed_at >= _LIST_SECONDS:
            self._listed_at = now
            self._list_threads()
        cpu = self._clock_ns(cpu_clock_of(self.pid))
        rss, swapped = _STATUS.numbers(self._status.read())
        read, written = self._bytes_moved()
        delays = {}
        for thread, file in self._waits.items():
            with suppress(OSError):
                delays[thread] = int(file.read().split()[1])
        return ProcessCounters(cpu, delays, rss << 10, swapped << 10, self._merged(), read, written)

    def open_files(self, now: float) -> tuple[OpenFile, ...]:
        """The files that it has open, read again every few seconds, as its owner may switch a cache mode."""
        if now - self._proved_at >= _PROOF_SECONDS:
            self._proved_at = now
            opened = open_files(self.pid, self._roots)
            if self.proof != "kvm":
                self.proof = self._proven()
            # The same object while nothing changes, so that nothing is made of it again.
            self._opened = self._opened if opened == self._opened else opened
        return self._opened

    def _list_threads(self) -> None:
        """Those of the vCPUs where QEMU names its threads, else all of them."""
        tasks = self.folder / "task"
        names = {}
        for thread in os.listdir(tasks):  # noqa: PTH208 - half of iterdir's cost
            with suppress(OSError):
                names[int(thread)] = (tasks / thread / "comm").read_bytes()
        self._threads = names
        of_vcpus = [thread for thread, name in names.items() if name.startswith(b"CPU ")]
        wanted = of_vcpus or list(names)
        self._waits = {thread: self._waits.get(thread) or found for thread in wanted if (found := self._wait(thread))}

    def _proven(self) -> str:
        """By the names of vCPUs' threads, which anyone may read; else by KVM's open file, whose absence proves TCG only
        in a process that has its threads.
        """
        of_vcpus = [name for name in self._threads.values() if name.startswith((b"CPU ", b"ALL CPUs"))]
        for ending, accelerator in ((b"/KVM", "kvm"), (b"/TCG", "tcg")):
            if any(name.strip().endswith(ending) for name in of_vcpus):
                return accelerator
        folder = self.folder / "fd"
        try:
            links = [os.readlink(folder / one) for one in os.listdir(folder)]  # noqa: PTH115, PTH208
        except OSError:
            return ""
        if any(link.startswith("anon_inode:kvm-vm") for link in links):
            return "kvm"
        return "tcg" if len(self._threads) > 1 else ""

    def _wait(self, thread: int) -> KernelFile | None:
        return self._waits.get(thread) or readable(self.folder / "task" / str(thread) / "schedstat")

    def _merged(self) -> int | None:
        if self._ksm is not None:
            return self._ksm.number() * PAGE_BYTES
        return None if self._ksm_stat is None else _KSM_STAT.numbers(self._ksm_stat.read())[0] * PAGE_BYTES

    def _bytes_moved(self) -> tuple[int | None, int | None]:
        if self._io is None:
            return None, None
        read, written = IO.numbers(self._io.read())
        return read, written


class QemuProcesses:
    """All of them, looked for every two seconds where a process was started since, and in new processes alone."""

    def __init__(self, roots: Roots, clock_ns: Callable[[int], int] = time.clock_gettime_ns) -> None:
        self._roots = roots
        self._clock_ns = clock_ns
        self._others: set[str] = set()
        self._fresh: set[str] = set()
        self._found: dict[int, QemuProcess] = {}
        self._last_pid = readable(roots.proc / "loadavg")
        self._looked_at = self._listed_at = -1e9
        self._listed_as = b""
        self.of_labs = 0
        """How many QEMUs of labs run."""
        self._labs: set[str] = set()

    def read(self, now: float) -> list[tuple[QemuProcess, ProcessCounters]]:
        """Each with its counters; one that has just ended is left out."""
        if now - self._looked_at >= _LIST_SECONDS:
            self._looked_at = now
            if self._may_differ(now):
                self._listed_at = now
                self._list()
        readings = []
        for process in list(self._found.values()):
            try:
                readings.append((process, process.counters(now)))
            except (OSError, ValueError, IndexError):
                del self._found[process.pid]
        return readings

    def _may_differ(self, now: float) -> bool:
        """Whether a list may have others than the last one: a process was started, is to be looked at again, or is a
        lab's, of which nothing else tells the end.
        """
        newest = b"" if self._last_pid is None else self._last_pid.read().rsplit(None, 1)[-1]
        same = newest == self._listed_as and newest != b""
        self._listed_as = newest
        return not same or bool(self._fresh or self._labs) or now - self._listed_at >= _LIST_ANYWAY_SECONDS

    def _list(self) -> None:
        pids = {name for name in os.listdir(self._roots.proc) if name.isdigit()}  # noqa: PTH208
        self._found = {pid: process for pid, process in self._found.items() if str(pid) in pids}
        self._labs &= pids
        known = {str(pid) for pid in self._found} | self._labs
        looked_at = pids - self._others - known
        # The oldest first, so that two of one name are told apart in the same way whenever one looks.
        for pid in sorted(looked_at, key=int):
            self._look(pid)
        # A process that has only been forked gets its program later, so each is looked at twice.
        self._others = (self._others & pids) | (looked_at & self._fresh)
        self._fresh = looked_at
        self.of_labs = len(self._labs)

    def _look(self, pid: str) -> None:
        options = _guest_of(pid, self._roots.proc)
        if options is None:
            return
        if _is_of_a_lab(pid, options, self._roots.proc):
            self._labs.add(pid)
            return
        with suppress(OSError):
            self._found[int(pid)] = QemuProcess(int(pid), options, self._roots, self._clock_ns)


def guest_name(name: str, pid: int) -> str:
    """What the guest of a process is called: by its own name, and without one by the process."""
    return name or f"qemu-{pid}"


def shown_names(name: str, pid: int) -> Iterator[str]:
    """Names that can stand in brackets before a disk's, of which a guest has the first that no other one has."""
    free = guest_name(name, pid).replace("/", "_")
    while True:
        yield free
        free = f"{free}#{pid}"


def accelerator_of(said: str, proof: str) -> str:
    """What runs, by the arguments or the XML and by the process: the process decides between KVM and TCG."""
    return proof if proof and said in (UNKNOWN, "kvm", "tcg") else said


def own_guests(proc: Path) -> dict[int, QemuOptions]:
    """The arguments of each QEMU with a guest that no lab has started, by its pid in `proc`, as they are now."""
    found = {}
    for pid in (folder.name for folder in proc.glob("[0-9]*")):
        options = _guest_of(pid, proc)
        if options is not None and not _is_of_a_lab(pid, options, proc):
            found[int(pid)] = options
    return found


def _guest_of(pid: str, proc: Path) -> QemuOptions | None:
    """What the process was started with, where it is a QEMU with a guest."""
    arguments = _arguments(f"{proc}/{pid}")
    if not arguments or not _is_qemu(f"{proc}/{pid}", arguments[0]):
        return None
    folder = proc / pid
    options = QemuOptions(arguments[1:], os.path.basename(arguments[0]), _configs_of(folder, arguments))  # noqa: PTH119
    return options if options.is_a_guest else None


def _is_qemu(folder: str, called: str) -> bool:
    """By the name that it was started by, or by its program's own. The process that frees the memory of a QEMU after it
    (``async-teardown``) has the same arguments, and is no guest.
    """
    names = [os.path.basename(called)]  # noqa: PTH119 - half of Path's cost
    with suppress(OSError):
        names.append(os.path.basename(os.readlink(f"{folder}/exe")).removesuffix(" (deleted)"))  # noqa: PTH115, PTH119
    if not any(map(_PROGRAM.fullmatch, names)):
        return False
    try:
        return not _read(f"{folder}/comm").startswith(b"cleanup/")
    except OSError:
        return True


def _configs_of(folder: Path, arguments: Sequence[str]) -> ReadConfig:
    """Reads files of ``-readconfig`` as the process saw them. One that was written since it began may say something
    else, and one of its own descriptors is spent.
    """

    def read(path: str) -> str | None:
        seen = path_seen_by(folder, path)
        if "-chroot" in arguments and path.startswith("/"):
            # It left its root after it had read the file.
            seen = Path(path)
        try:
            state = seen.stat()
            is_own = path.startswith(("/dev/", "/proc/"))
            if is_own or not stat.S_ISREG(state.st_mode) or state.st_size > _MOST_CONFIG_BYTES:
                return None
            is_newer = state.st_mtime > _began(folder) + _CLOCK_SECONDS
            return None if is_newer else seen.read_text(errors="surrogateescape")
        except (OSError, ValueError):
            return None

    return read


def _began(folder: Path) -> float:
    """When the process began, in seconds since the epoch. Raises OSError or ValueError."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + stat_of(folder).born / TICKS_PER_SECOND


def _arguments(folder: str) -> list[str]:
    try:
        return [os.fsdecode(word) for word in _read(f"{folder}/cmdline").split(b"\0")[:-1]]
    except OSError:
        return []


def _read(path: str) -> bytes:
    """A whole file, at a third of the cost of Path's."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.readall()


def _is_of_a_lab(pid: str, options: QemuOptions, proc: Path) -> bool:
    """Whether a process above it is a launcher, an init or a runner of a lab, or it has the port of a guest's helper:
    in the host's own libvirt no process of the lab is above it.
    """
    if options.has_port(HELPER_CHANNEL):
        return True
    for _ in range(_MOST_PARENTS):
        try:
            pid = str(stat_of(proc / pid).parent)
            if _LAB in (proc / pid / "cmdline").read_bytes():
                return True
        except (OSError, ValueError):
            return False
    return False
