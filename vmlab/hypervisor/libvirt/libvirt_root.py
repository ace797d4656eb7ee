"""The folder that an embedded libvirt lives in: its configuration, its sockets, its cache of QEMU's capabilities."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from vmlab.hypervisor.libvirt.accounts import provide_accounts
from vmlab.hypervisor.libvirt.domain_places import last_words_in
from vmlab.hypervisor.libvirt.private_run import provide_run
from vmlab.model.errors import HypervisorUnavailable
from vmlab.system.marks import mark
from vmlab.system.new_file import new_file
from vmlab.system.removal import remove_file

_SOCKET_LIMIT = 107
_LONGEST_WITHIN = len("/lib/qemu/domain-999-12345678901234567890/monitor.sock")
_CAPABILITIES = Path("cache/qemu/capabilities")


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
    def proc(self) -> Path:
        """The /proc of the lab's PID namespace, in which its QEMUs are."""
        return Path("/proc")

    @property
    def uri(self) -> str:
        """The URI to open."""
        return f"qemu:///embed?root={self.folder}"

    def agent_socket(self, name: str) -> Path:
        """Where the guest agent of guest `name` is reached."""
        return self.folder / "agent" / f"{name}.sock"

    def helper_socket(self, name: str) -> Path:
        """Where the resident helper of guest `name` is reached."""
        return self.folder / "agent" / f"{name}.help"

    def pid_of(self, domain: str) -> int:
        """The pid of a domain's QEMU in this PID namespace; raises OSError when it does not run."""
        return int((self.folder / "run/qemu" / f"{domain}.pid").read_text())

    def last_words_of(self, domain: str) -> str:
        """The last line that a domain's QEMU wrote to its log; the empty string where there is none."""
        return last_words_in(self._log_of(domain))

    def forget(self, domain: str) -> None:
        """Remove the log of a domain that is gone: libvirt appends to it at every start of that name."""
        remove_file(self._log_of(domain))

    def _log_of(self, domain: str) -> Path:
        return self.folder / "log/qemu" / f"{domain}.log"

    def make(self, owner: str) -> None:
        """Make the folder and mark it as `owner`'s; the rest of /run is hidden from libvirt. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        provide_run(self.folder.parent)
        mark(self.folder, owner)

    def prepare(self, controllers: Iterable[str], known: Path) -> None:
        """Write qemu.conf, provide libvirt's accounts, and copy what an earlier run learned about QEMU from `known`.

        Raises HypervisorUnavailable when the folder's path is too long for sockets below it.
        """
        check_length(self.folder)
        (self.folder / "agent").mkdir(parents=True, exist_ok=True)
        etc = self.folder / "etc"
        provide_accounts(etc)
        (etc / "qemu.conf").write_text(configuration(controllers))
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


def configuration(controllers: Iterable[str]) -> str:
    """The text of qemu.conf: no daemon for logs, no security driver, QEMU as root, as the lab's user is.

    libvirt's own namespace for /dev is off, because the lab has namespaces already. QEMU's seccomp sandbox stays on,
    which is the default. Without a word on huge pages libvirt makes a folder for its guests in the host's
    /dev/hugepages, and leaves it there.
    """
    named = ", ".join(f'"{name}"' for name in controllers)
    return (
        'stdio_handler = "file"\n'
        'security_driver = "none"\n'
        'user = "root"\n'
        'group = "root"\n'
        "remember_owner = 0\n"
        "namespaces = []\n"
        "hugetlbfs_mount = []\n"
        f"cgroup_controllers = [ {named} ]\n"
    )
