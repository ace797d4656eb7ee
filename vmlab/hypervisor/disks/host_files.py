"""What workloads and guests on the host have of files: the guest image's root file system, so that host and guest run
the same programs, and folders of their own beside the guests' disks.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.model.errors import HypervisorError
from vmlab.model.names import DATA_FOLDER, WORKLOADS_FOLDER
from vmlab.system import kernel
from vmlab.system.descriptors import closed_after
from vmlab.system.removal import make_marked, remove_empty_folder, remove_tree

_WRITABLE = ("tmp", "run")
_NODES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
"""Major and minor numbers (Linux, admin-guide/devices.txt) of all that a benchmark finds below its /dev."""
_QUIET = kernel.MS_NOSUID | kernel.MS_NOEXEC


@contextlib.contextmanager
def mounted_root(disk: Path, folder: Path, lab: str, journal: Journal) -> Iterator[Path]:
    """Mount the raw ext4 image `disk` read-only below `folder` for as long as the block runs; the path for chroot.

    /tmp and /run are fresh and writable. /dev is fresh too and holds five nodes: the host's own is not there at all,
    nor is anything else of the host's that could be written to; /proc and /sys are read-only. All of it lies in the
    lab's private mount namespace and goes with it. Raises HypervisorError when it cannot be mounted.
    """
    require_isolation()
    root = folder / "root"
    mark = loop_devices.mark_of(lab)
    with journal.kept(JournalEntry("loop", mark)):
        try:
            _mount_all(disk, root, mark)
        except OSError as error:
            _unmount_all(root)
            raise HypervisorError(f"cannot mount {disk} for workloads on the host: {error}") from error
        try:
            yield root
        finally:
            _unmount_all(root)


@contextlib.contextmanager
def root_with_data(root: Path, view: Path, data: Path) -> Iterator[Path]:
    """Show the mounted `root` at `view` too, with the folder `data` as its /data, while the block runs; gives `view`.

    What is written to /data lies in `data`. The folder of workloads' programs and reports is the view's own, too, so
    that equal workloads of two views do not meet there. All else is as in `root`, whose /tmp and /run are the same
    ones. Raises HypervisorError when it cannot be mounted.
    """
    require_isolation()
    place = _below(view, DATA_FOLDER)
    try:
        view.mkdir(parents=True, exist_ok=True)
        kernel.mount(str(root), str(view), flags=kernel.MS_BIND | kernel.MS_REC)
        kernel.mount(str(data), str(place), flags=kernel.MS_BIND)
        attributes = kernel.MS_NOSUID | kernel.MS_NODEV
        kernel.mount(str(data), str(place), flags=kernel.MS_REMOUNT | kernel.MS_BIND | attributes)
        own = _below(view, WORKLOADS_FOLDER)
        own.mkdir(parents=True, exist_ok=True)
        kernel.mount("tmpfs", str(own), "tmpfs", attributes, "mode=0755")
    except OSError as error:
        _unmount_all(view)
        raise HypervisorError(f"cannot mount {data} for workloads on the host: {error}") from error
    try:
        yield view
    finally:
        _unmount_all(view)


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _mount_all(disk: Path, root: Path, mark: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    with closed_after(loop_devices.attach(disk, mark)) as device:
        node = Path(f"/proc/self/fd/{device}").readlink()
        # noload: replaying a journal would need writing.
        kernel.mount(str(node), str(root), "ext4", kernel.MS_RDONLY, "noload")
    for name in _WRITABLE:
        kernel.mount("tmpfs", str(root / name), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    make_nodes(root / "dev")
    kernel.mount("proc", str(root / "proc"), "proc", _QUIET | kernel.MS_NODEV | kernel.MS_RDONLY)
    kernel.mount("sysfs", str(root / "sys"), "sysfs", _QUIET | kernel.MS_NODEV | kernel.MS_RDONLY)


def make_nodes(folder: Path) -> None:
    """Mount a small /dev at `folder`, and make it read-only once its nodes are there. Raises OSError."""
    require_isolation()
    kernel.mount("tmpfs", str(folder), "tmpfs", _QUIET, "mode=0755,size=64k")
    for name, (major, minor) in _NODES.items():
        os.mknod(folder / name, stat.S_IFCHR, os.makedev(major, minor))
        (folder / name).chmod(0o666)
    (folder / "shm").mkdir()
    kernel.mount("tmpfs", str(folder / "shm"), "tmpfs", _QUIET | kernel.MS_NODEV, "mode=1777")
    kernel.mount("tmpfs", str(folder), None, kernel.MS_REMOUNT | _QUIET | kernel.MS_RDONLY)


def _unmount_all(root: Path) -> None:
    """Detach the tree at once, where it was mounted at all."""
    with contextlib.suppress(OSError):
        kernel.unmount(str(root))
    remove_empty_folder(root)


_NAME = "host.data"


@contextlib.contextmanager
def host_data(disks: Path, lab: str, journal: Journal, tiles: Iterable[int]) -> Iterator[dict[int, Path]]:
    """An empty folder in `disks` for each of `tiles`, by the tile; see `marked_folder`."""
    with marked_folder(disks / _NAME, lab, journal) as folder:
        yield {tile: made_inside(folder, f"t{tile}") for tile in tiles}


@contextlib.contextmanager
def marked_folder(folder: Path, lab: str, journal: Journal) -> Iterator[Path]:
    """An empty folder for as long as the block runs; removed with all that is in it.

    It carries the lab's mark and stands in the journal while it is there. Raises OSError where it cannot be made or
    removed, and StoreError.
    """
    with journal.kept(JournalEntry("folder", str(folder))):
        make_marked(folder, lab)
        try:
            yield folder
        finally:
            remove_tree(folder)


def made_inside(above: Path, name: str) -> Path:
    """A new folder `name` in `above`, which anybody may read."""
    folder = above / name
    folder.mkdir()
    # As /data is in a guest, whatever the umask: a workload may give up root.
    folder.chmod(0o755)
    return folder
