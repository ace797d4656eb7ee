"""The first process of a guest on the host: mounts its root, becomes PID 1 of a PID namespace in it, and reaps.

::

    bare_init  in the lab's PID namespace: mounts, says the number of its child, waits for its end or that of its input
    └─ PID 1   in namespaces of its own (mount, PID, network, host name, IPC), below its own root

The runner's end, however it came, ends both: the kernel kills the first by PDEATHSIG, then the second, and with it all
that runs in there; the mounts exist for them alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from vmlab.hypervisor.disks.host_files import made_inside, make_nodes
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.model.names import DATA_FOLDER
from vmlab.system import kernel
from vmlab.system.descriptors import closed_after
from vmlab.system.processes import signal_child

COPIED = ("srv", "home", "root", "var/spool", "var/lib/mysql", "var/lib/postgresql")
"""Where servers have their data, of the image's root: copied, so that nothing is between them and the host's disk."""
PLAIN, DATA, _UPPER, _WORK = "plain", "data", "upper", "work"
"""The folders of a guest's files: those copies, its /data, and what it changes of all else."""
_IN_MEMORY = ("tmp", "run")
_PLAIN = kernel.MS_NOSUID | kernel.MS_NODEV


@dataclass(frozen=True, slots=True)
class BareOrder:
    """What it is started with: the mounted root of the image, where it is to be seen as the guest's own, the folder
    of its files, see `make_files`, and the guest's host name.
    """

    image: str
    root: str
    files: str
    name: str

    def to_json(self) -> str:
        """One argument of a command line."""
        return json.dumps(asdict(self))


def make_files(folder: Path) -> Path:
    """Make the folders of a guest's files in an empty `folder`; the one for `COPIED`. Raises OSError."""
    for name in (PLAIN, DATA, _UPPER, _WORK):
        made_inside(folder, name)
    return folder / PLAIN


def mount_root(order: BareOrder) -> None:
    """Mount all but /proc; for a process in mounts of its own. Raises OSError."""
    require_isolation()
    root, files = Path(order.root), Path(order.files)
    _overlay(Path(order.image), files, order.root)
    for name in COPIED:
        _bind(files / PLAIN / name, root / name)
    _bind(files / DATA, root / DATA_FOLDER.lstrip("/"))
    for name in _IN_MEMORY:
        kernel.mount("tmpfs", str(root / name), "tmpfs", _PLAIN, "mode=1777" if name == "tmp" else "mode=0755")
    make_nodes(root / "dev")
    quiet = _PLAIN | kernel.MS_NOEXEC | kernel.MS_RDONLY
    kernel.mount("sysfs", str(root / "sys"), "sysfs", quiet)


def _overlay(image: Path, files: Path, root: str) -> None:
    """What the guest changes of the image's own file system, without what is mounted in that, lies in `files`."""
    layers = {"lowerdir": image, "upperdir": files / _UPPER, "workdir": files / _WORK}
    with contextlib.ExitStack() as closing:
        opened = {name: os.open(folder, os.O_PATH | os.O_DIRECTORY) for name, folder in layers.items()}
        for number in opened.values():
            closing.enter_context(closed_after(number))
        # By descriptors: commas and colons in a path would have a meaning.
        options = ",".join(f"{name}=/proc/self/fd/{number}" for name, number in opened.items())
        kernel.mount("overlay", root, "overlay", kernel.MS_NODEV, options)


def _bind(source: Path, target: Path) -> None:
    kernel.mount(str(source), str(target), flags=kernel.MS_BIND)
    kernel.mount(str(source), str(target), flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_NODEV)


def _become_first(order: BareOrder) -> NoReturn:
    """What PID 1 does: it reaps until it is killed."""
    try:
        kernel.die_with_parent()
        require_isolation()
        flags = _PLAIN | kernel.MS_NOEXEC | kernel.MS_RDONLY
        kernel.mount("proc", str(Path(order.root) / "proc"), "proc", flags)
        socket.sethostname(order.name)
        os.chroot(order.root)
        os.chdir("/")
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        os.write(1, b"ready\n")
        for number in range(3):
            os.close(number)
        while True:
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            signal.sigwait({signal.SIGCHLD})
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(1)


def main() -> int:
    """Make the place that the argument orders; ends with its standard input, and the place with it."""
    order = BareOrder(**json.loads(sys.argv[1]))
    kernel.die_with_parent()
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    mount_root(order)
    kernel.unshare(kernel.CLONE_NEWPID)
    first = os.fork()
    if first == 0:
        _become_first(order)
    os.write(1, f"{first}\n".encode())
    # PID 1 closes its own, so that the reader sees the end where it dies.
    os.close(1)
    try:
        # The runner never writes: its end is readable when it closes it, or is gone.
        select.select([0, os.pidfd_open(first)], [], [])
    finally:
        signal_child(first, signal.SIGKILL)
        # Returns after the end of everything in its PID namespace.
        os.waitpid(first, 0)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(f"{error}")
