"""The guest image's root file system on the host, so that host and guest run the very same programs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from vmlab.hypervisor import kernel, loop
from vmlab.hypervisor.journal import Entry, Journal
from vmlab.hypervisor.namespace import require_isolation
from vmlab.model.errors import HypervisorError

_WRITABLE = ("tmp", "run")
_SHARED = ("proc", "sys", "dev")


@contextlib.contextmanager
def mounted_root(disk: Path, folder: Path, lab: str, journal: Journal) -> Iterator[Path]:
    """Mount the raw ext4 image `disk` read-only below `folder` for as long as the block runs; the path for chroot.

    /tmp and /run are fresh and writable, /proc, /sys and /dev the lab's own. All of it lies in the lab's private
    mount namespace and goes with it. Raises HypervisorError when it cannot be mounted.
    """
    require_isolation()
    root = folder / "root"
    mark = f"vmlab:{lab}"[:63]
    with journal.kept(Entry("loop", mark)):
        try:
            _mount_all(disk, root, mark)
        except OSError as error:
            _unmount_all(root)
            raise HypervisorError(f"cannot mount {disk} for workloads on the host: {error}") from error
        try:
            yield root
        finally:
            _unmount_all(root)


def _mount_all(disk: Path, root: Path, mark: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    device = loop.attach(disk, mark)
    try:
        node = Path(f"/proc/self/fd/{device}").readlink()
        # noload: a journal that wants replaying would need writing.
        kernel.mount(str(node), str(root), "ext4", kernel.MS_RDONLY, "noload")
    finally:
        os.close(device)
    for name in _WRITABLE:
        kernel.mount("tmpfs", str(root / name), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    for name in _SHARED:
        kernel.mount(f"/{name}", str(root / name), None, kernel.MS_BIND | kernel.MS_REC)


def _unmount_all(root: Path) -> None:
    """Detach the tree at once; a root that never was mounted is no error."""
    with contextlib.suppress(OSError):
        kernel.unmount(str(root))
    with contextlib.suppress(OSError):
        root.rmdir()
