"""A host to be harmed: the machine's own tree below an overlay, with a /dev, a /run and a /tmp of dummies.

To be run inside ``unshare --mount --pid``. Whatever is written, made or removed below `root` lands in the overlay's
upper layer or in the dummies, where it can be listed afterwards; the machine itself is only read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from vmlab.hypervisor.isolation.cgroups import WANTED
from vmlab.system import kernel

_NODES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
    "ptmx": (5, 2),
    "loop-control": (10, 237),
    "kvm": (10, 232),
    "net/tun": (10, 200),
}
_LOOPS = 64
"""The kernel hands out the first loop device that is free, whoever uses the others."""
_DECOYS = ("decoy", "vmlab-notes/run", "vmlab-notes/disks/mine.qcow2")


class DummyHost:
    """The tree at `root`, made of folders below `base`.

    The folders in `shown` are the real ones: state and cache, for O_DIRECT, and a checkout that may lie below a dummy.
    """

    def __init__(self, base: Path, shown: Iterable[Path]) -> None:
        self.root = base / "root"
        self._upper = base / "upper"
        self.dummies = [self.root / name for name in ("dev", "run", "tmp")]
        base.mkdir(exist_ok=True)
        kernel.mount("tmpfs", str(base), "tmpfs")
        for folder in (self.root, self._upper, base / "work"):
            folder.mkdir()
        layers = f"lowerdir=/,upperdir={self._upper},workdir={base / 'work'}"
        kernel.mount("overlay", str(self.root), "overlay", 0, layers)
        for dummy in self.dummies:
            kernel.mount("tmpfs", str(dummy), "tmpfs")
        self._fill_dev()
        for dummy in self.dummies:
            for name in _DECOYS:
                (dummy / name).parent.mkdir(parents=True, exist_ok=True)
                (dummy / name).write_text("precious")
        kernel.mount("proc", str(self.root / "proc"), "proc")
        self._fill_sys()
        for folder in shown:
            inside = self.root / folder.relative_to("/")
            inside.mkdir(parents=True, exist_ok=True)
            kernel.mount(str(folder), str(inside), None, kernel.MS_BIND)
        self.before = self.listing()

    def _fill_dev(self) -> None:
        dev = self.root / "dev"
        nodes = {name: (stat.S_IFCHR, *number) for name, number in _NODES.items() if Path("/dev", name).exists()}
        nodes |= {f"loop{number}": (stat.S_IFBLK, 7, number) for number in range(_LOOPS)}
        for name, (kind, major, minor) in nodes.items():
            (dev / name).parent.mkdir(exist_ok=True)
            os.mknod(dev / name, kind | 0o666, os.makedev(major, minor))
        (dev / "shm").mkdir()

    def _fill_sys(self) -> None:
        """A sysfs to read, and of the cgroups those hierarchies alone that a lab has to do with."""
        kernel.mount("sysfs", str(self.root / "sys"), "sysfs", kernel.MS_RDONLY)
        groups = self.root / "sys/fs/cgroup"
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
        if ["/sys/fs/cgroup", "cgroup2"] in mounts:
            kernel.mount("cgroup2", str(groups), "cgroup2")
            return
        kernel.mount("tmpfs", str(groups), "tmpfs")
        for name in WANTED:
            (groups / name).mkdir()
            kernel.mount("cgroup", str(groups / name), "cgroup", 0, name)

    def listing(self) -> dict[str, str]:
        """Every path that is not the machine's own, with its kind, device number and, of a file, its text."""
        found: dict[str, str] = {}
        for top in (self._upper, *self.dummies):
            found |= {f"{top.name}/{path.relative_to(top)}": _described(path) for path in _all_below(top)}
        return found

    def enter(self, checkout: Path) -> None:
        """Take the tree for the root of this process and of those that it starts."""
        os.chroot(self.root)
        os.chdir(checkout)


def _all_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink() and not path.is_mount():
            yield from _all_below(path)


def _described(path: Path) -> str:
    found = path.lstat()
    text = path.read_text(errors="replace")[:80] if stat.S_ISREG(found.st_mode) else ""
    return f"{stat.filemode(found.st_mode)} {os.major(found.st_rdev)}:{os.minor(found.st_rdev)} {text}"
