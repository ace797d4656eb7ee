"""The folder that an embedded libvirt lives in, and what of the host it sees: its configuration, its sockets, its cache
of QEMU's capabilities, its accounts, its /run. All of it is visible only inside the lab.

Debian's QEMU driver refuses to start where the user ``libvirt-qemu`` is missing, even when qemu.conf says root. Only
the package libvirt-daemon-system makes that user, and it also starts daemons, a default network and firewall rules.
The lab needs none of them, so it binds its own copies of passwd and group over the host's, in its private mounts.

libvirt, embedded or not, keeps a token and its list of host devices in the host's /run. A lab would make
``/run/libvirt`` on a host that has none, and share it with the libvirtd of a host that has one. So the runner sees an
empty /run that contains only the folder of runtime folders.

`Places` says where a libvirt, a lab's or the host's own, has what belongs to a domain: its process, its log, its
sockets. `missing` says whether this host has a libvirt of its own that a lab may be in.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vmlab.hypervisor.isolation.namespace import host_proc, require_isolation
from vmlab.model.errors import HypervisorUnavailable
from vmlab.system import kernel
from vmlab.system.descriptors import closed_after
from vmlab.system.given_file import new_file
from vmlab.system.packages import installing
from vmlab.system.removal import mark, remove_file_beneath

_SOCKET_LIMIT = 107
_LONGEST_WITHIN = len("/lib/qemu/domain-999-12345678901234567890/monitor.sock")
_CAPABILITIES = Path("cache/qemu/capabilities")
_ACCOUNT = "libvirt-qemu"
_UID = 64055
"""The number that Debian reserves for it; no process of the lab runs under it."""
_RUN = Path("/run")
_HUGE = _RUN / "vmlab-huge-pages"


def root_folder(runtime: Path) -> Path:
    """Where in a run's runtime folder libvirt lives; short, because of the sockets below it."""
    return runtime / "v"


def check_length(folder: Path) -> None:
    """Raises HypervisorUnavailable when the path of libvirt's root `folder` is too long for sockets below it."""
    if len(os.fsencode(folder)) + _LONGEST_WITHIN > _SOCKET_LIMIT:
        raise HypervisorUnavailable(
            f"{folder} is too long a path for sockets", remedy="set VMLAB_RUNTIME_DIR to a shorter one"
        )


class LibvirtRoot:
    """Paths below an embedded driver's root, and its set-up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def uri(self) -> str:
        """The URI to open."""
        return f"qemu:///embed?root={self.folder}"

    @property
    def places(self) -> Places:
        """Where it has what belongs to a domain; the QEMUs are in the lab's PID namespace."""
        return Places(Path("/proc"), self.folder / "run/qemu", self.folder / "log/qemu", self.folder / "agent")

    def make(self, owner: str) -> None:
        """Make the folder and mark it as `owner`'s; the rest of /run is hidden from libvirt. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        provide_run(self.folder.parent)
        mark(self.folder, owner)

    def prepare(self, controllers: Iterable[str], known: Path, huge_pages: Iterable[int] = ()) -> None:
        """Write qemu.conf, provide libvirt's accounts, and copy what an earlier run learned about QEMU from `known`.

        Guests may have `huge_pages` of these sizes, in bytes.

        Raises HypervisorUnavailable when the folder's path is too long for sockets below it.
        """
        check_length(self.folder)
        (self.folder / "agent").mkdir(parents=True, exist_ok=True)
        etc = self.folder / "etc"
        provide_accounts(etc)
        (etc / "qemu.conf").write_text(configuration(controllers, [provide_huge_pages(size) for size in huge_pages]))
        if known.is_dir():
            shutil.copytree(known, self.folder / _CAPABILITIES, dirs_exist_ok=True)

    def remember(self, known: Path) -> None:
        """Keep what libvirt learned about QEMU in the folder `known`; asking QEMU takes it more than a second.

        libvirt checks by itself that what it reads there still holds.
        """
        known.mkdir(parents=True, exist_ok=True)
        for file in (self.folder / _CAPABILITIES).glob("*.xml"):
            kept = known / file.name
            if not kept.exists() or kept.stat().st_mtime_ns < file.stat().st_mtime_ns:
                with new_file(kept) as fresh:
                    fresh.write(file.read_bytes())


@contextlib.contextmanager
def on_one_cpu() -> Iterator[None]:
    """Open libvirt on the first CPU, so that its cache on QEMU stays valid; threads that it starts get all CPUs.

    libvirt compares the host's CPUID with the one that it kept, and CPUID names the very CPU that was asked (leaf 1,
    leaf 11). On another CPU, libvirt takes the host for a different one and queries QEMU again.
    """
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        for thread in Path("/proc/self/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), allowed)


def configuration(controllers: Iterable[str], huge_pages: Iterable[Path] = ()) -> str:
    """The text of qemu.conf: no daemon for logs, no security driver, QEMU as root, as the lab's user is.

    libvirt's own namespace for /dev is off, because the lab has namespaces already. QEMU's seccomp sandbox stays on,
    which is the default. Without a word on huge pages libvirt makes a folder for its guests in the host's
    /dev/hugepages, and leaves it there; so it is given the places that are the lab's own, or none.
    """
    named, mounts = (", ".join(f'"{one}"' for one in given) for given in (controllers, huge_pages))
    return (
        'stdio_handler = "file"\n'
        'security_driver = "none"\n'
        'user = "root"\n'
        'group = "root"\n'
        "remember_owner = 0\n"
        "namespaces = []\n"
        f"hugetlbfs_mount = [ {mounts} ]\n"
        f"cgroup_controllers = [ {named} ]\n"
    )


def provide_run(kept: Path) -> None:
    """Cover the host's /run in this mount namespace; the folder `kept` stays where it is. Raises OSError.

    Raises HypervisorUnavailable outside a private mount namespace.
    """
    require_isolation()
    place = kept.resolve()
    with closed_after(os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as held:
        kernel.mount("tmpfs", str(_RUN), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755")
        if place.is_relative_to(_RUN):
            place.mkdir(parents=True)
            kernel.mount(f"/proc/self/fd/{held}", str(place), None, kernel.MS_BIND)


def provide_huge_pages(size: int) -> Path:
    """A place in the lab's own /run for guests' RAM in huge pages of `size` bytes; none is reserved for it.

    Raises HypervisorUnavailable outside a private mount namespace, and OSError.
    """
    require_isolation()
    place = _HUGE / str(size)
    place.mkdir(parents=True, exist_ok=True)
    kernel.mount("vmlab", str(place), "hugetlbfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"pagesize={size},mode=0700")
    return place


def provide_accounts(folder: Path) -> None:
    """Make ``libvirt-qemu`` known to this mount namespace, with copies kept in `folder`; raises OSError.

    Does nothing where user and group exist. Raises HypervisorUnavailable outside a private mount namespace.
    """
    require_isolation()
    folder.mkdir(parents=True, exist_ok=True)
    if not _known(pwd.getpwnam):
        _extend(Path("/etc/passwd"), folder, f"{_ACCOUNT}:x:{_UID}:{_UID}:vmlab:/nonexistent:/usr/sbin/nologin\n")
    if not _known(grp.getgrnam):
        _extend(Path("/etc/group"), folder, f"{_ACCOUNT}:x:{_UID}:\n")


def _known(look_up: Callable[[str], object]) -> bool:
    try:
        look_up(_ACCOUNT)
    except KeyError:
        return False
    return True


def _extend(original: Path, folder: Path, line: str) -> None:
    copy = folder / original.name
    copy.write_text(original.read_text().rstrip("\n") + "\n" + line)
    copy.chmod(0o644)
    kernel.mount(str(copy), str(original), None, kernel.MS_BIND)


@dataclass(frozen=True, slots=True)
class Places:
    """Those of one libvirt: the /proc that its QEMUs are in, the folder with their pids as that has them, that with
    their logs, and that for guests' sockets; None where libvirt chooses the sockets' places. Methods block for a
    moment.
    """

    proc: Path
    processes: Path
    logs: Path
    sockets: Path | None = None

    def agent_socket(self, name: str) -> Path | None:
        """Where the guest agent of guest `name` is to be reached; None where libvirt chooses."""
        return None if self.sockets is None else self.sockets / f"{name}.sock"

    def helper_socket(self, name: str) -> Path | None:
        """Where the resident helper of guest `name` is to be reached; None where libvirt chooses."""
        return None if self.sockets is None else self.sockets / f"{name}.help"

    def pid_of(self, domain: str) -> int:
        """The pid of a domain's QEMU in `proc`; raises OSError when it does not run."""
        return int((self.processes / f"{domain}.pid").read_text())

    def last_words_of(self, domain: str) -> str:
        """The last line that a domain's QEMU itself wrote to its log; the empty string where there is none."""
        log = self._log_of(domain)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        own = [line.partition("qemu-system-x86_64: ")[2] for line in lines if "qemu-system-x86_64: " in line]
        return own[-1] if own else ""

    def forget(self, domain: str) -> list[str]:
        """Remove the log of a domain that is gone, to which libvirt would append at the next start of that name.

        Its path, if it was there. Raises OSError.
        """
        log = self._log_of(domain)
        return [str(log)] if remove_file_beneath(self.logs.parent, self.logs.name, log.name) else []

    def _log_of(self, domain: str) -> Path:
        return self.logs / f"{domain}.log"


LOGS = Path("/var/log/libvirt/qemu")
SOCKETS = (Path("/run/libvirt/libvirt-sock"), Path("/run/libvirt/virtqemud-sock"))
PACKAGES = {"libvirtd": "libvirt-daemon-system", "iptables": "iptables"}
"""Debian's package for each thing that `missing` names."""
_FIREWALLS = ("iptables", "nft")


def hosts_places() -> Places:
    """The host's own: QEMUs are processes of the host.

    libvirt chooses the sockets, where its security drivers and a socket's length let them be.
    """
    return Places(host_proc(), Path("/run/libvirt/qemu"), LOGS)


def missing() -> str | None:
    """What lacks, as a key of `PACKAGES`; None where nothing does. Nothing is started or asked."""
    if not any(socket.exists() for socket in SOCKETS):
        return "libvirtd"
    path = "/usr/sbin:/sbin:/usr/bin:/bin"
    # libvirt needs it for any network with an address; since 10.4 it may use nft in its place.
    return None if any(shutil.which(program, path=path) for program in _FIREWALLS) else "iptables"


def words_for(lacking: str) -> str:
    """One line for a user."""
    if lacking == "libvirtd":
        return "this host has no libvirtd or virtqemud that runs"
    return "libvirt needs iptables for an isolated network, and it is not installed"


def require_daemon() -> None:
    """Raises HypervisorUnavailable where something lacks."""
    if (lacking := missing()) is not None:
        raise HypervisorUnavailable(words_for(lacking), remedy=installing(PACKAGES[lacking]))
