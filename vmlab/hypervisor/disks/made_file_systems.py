"""File systems that the lab makes for data disks: ext4, XFS and btrfs, as their tools make them by default.

::

    GUEST.data.raw                        what QEMU opens
      ext4, XFS or btrfs                  mounted as the lab alone sees it
        /dev/loopN                        direct I/O
          RUN/disks/GUEST.data.fs         sparse, on the file system of runs

Three things differ from the defaults. ext4 has blocks of 4 KiB also where it is small. Nothing is discarded, neither
when it is made nor later: a loop device punches holes into its file then, which no disk does, and undoes what was
reserved. And ext4 does not write its empty tables of inodes in the background, beside the workloads: a new file below
it reads as zeros.
"""

from __future__ import annotations

import errno
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.model.scenarios.data_backing import FileSystem
from vmlab.system import kernel
from vmlab.system.packages import OF_FILE_SYSTEMS, installing
from vmlab.system.removal import remove_empty_folder

_MKFS: dict[FileSystem, tuple[str, ...]] = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-K"),
}
_OPTIONS: dict[FileSystem, str | None] = {"ext4": "noinit_itable", "xfs": None, "btrfs": "nodiscard"}
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class MadeFileSystem:
    """One of this `kind` on the file `kept`, by the loop device `device` that the descriptor `held` keeps.

    It is seen at `point`.
    """

    kind: FileSystem
    kept: Path
    device: Path
    held: int
    point: Path

    def take_away(self) -> None:
        """Unmount it and detach its device; its file stays. Raises OSError."""
        require_isolation()
        if self.point.is_mount():
            kernel.unmount(str(self.point))
        loop_devices.detach(self.held)
        remove_empty_folder(self.point)


def attach(kind: FileSystem, kept: Path, point: Path, mark: str) -> MadeFileSystem:
    """A loop device with `mark` on the file `kept`, for a file system that `make` makes. Raises OSError."""
    held = loop_devices.attach(kept, mark, writable=True, direct=True)
    return MadeFileSystem(kind, kept, Path(f"/proc/self/fd/{held}").readlink(), held, point)


def make(made: MadeFileSystem) -> None:
    """Make it, and mount it as this lab alone sees it; blocks.

    Raises RefusedError where this host lacks what it takes, HypervisorError, and HypervisorUnavailable outside a lab.
    """
    require_isolation()
    argv = [*_MKFS[made.kind], str(made.device)]
    try:
        done = subprocess.run(argv, env={**os.environ, "PATH": _PATH}, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        words = f"a data disk on {made.kind} needs {argv[0]}, which is not installed"
        raise RefusedError(words, remedy=installing(OF_FILE_SYSTEMS[made.kind])) from error
    if done.returncode != 0:
        raise HypervisorError(f"{argv[0]} failed on {made.device}: {' '.join(done.stderr.split())}")
    made.point.mkdir(parents=True)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    try:
        kernel.mount(str(made.device), str(made.point), made.kind, flags, _OPTIONS[made.kind])
    except OSError as error:
        if error.errno == errno.ENODEV:
            raise RefusedError(f"a data disk on {made.kind}: this kernel has no such file system") from error
        raise HypervisorError(f"cannot mount {made.kind} of {made.device}: {error.strerror}") from error
