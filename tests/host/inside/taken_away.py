"""Hosts from which something was taken away: for one command alone, by mounts in a namespace of its own.

`vmlab selftest` must say what is missing there, in words, and with the right exit code.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.host.inside.lab import require, tell

_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
_IN_A_NAMESPACE = ("unshare", "--mount", "--propagation", "private")
_NO_DRIVER = "for place in /usr/lib*/libvirt /usr/lib/*/libvirt; do [ ! -d $place ] || mount -t tmpfs none $place; done"
_NO_CGROUPS = "umount --lazy --recursive /sys/fs/cgroup"


def _no_node(*names: str) -> str:
    """/dev without these nodes, but for them as it is: an overlay in which a whiteout stands for each of them."""
    gone = "; ".join(f"mknod /mnt/gone/{name} c 0 0" for name in names)
    kept = ("pts", "shm")
    saved = "; ".join(f"mkdir /mnt/{name}; mount --rbind /dev/{name} /mnt/{name}" for name in kept)
    back = "; ".join(f"mount --rbind /mnt/{name} /dev/{name}" for name in kept)
    overlay = "mount -t overlay -o lowerdir=/mnt/gone:/dev overlay /dev"
    return f"mount -t tmpfs none /mnt; mkdir /mnt/gone; {gone}; {saved}; {overlay}; {back}"


@dataclass(frozen=True, slots=True)
class Taken:
    """A host without something. `told` are the lines of the selftest that are then `not here`, each with some of its
    words; `needed` is False where runs do without it, and the trials are made."""

    prefix: tuple[str, ...]
    told: Mapping[str, str]
    needed: bool

    def argv(self, program: Sequence[str]) -> list[str]:
        """The command line that starts `program` there."""
        return [*self.prefix, *program]


def _by_mounts(script: str, told: Mapping[str, str], *, needed: bool) -> Taken:
    return Taken((*_IN_A_NAMESPACE, "sh", "-euc", f'{script}; exec "$@"', "sh"), told, needed)


_KVM = {"KVM": "there is no /dev/kvm"}
_CGROUPS = {
    "cgroups": "no cpu controller",
    "host.cpus": "the cgroup controller cpuset is missing",
    "host.memory": "the cgroup controller memory is missing",
}
_FUSE = {"host.disk": "/dev/fuse is missing: modprobe fuse"}
_DRIVER = {"libvirt QEMU driver": "libvirt_driver_qemu.so is not installed"}
TAKEN = {
    "root": Taken(_NOBODY, {"root": "this user is not root"}, needed=True),
    "libvirt": _by_mounts(_NO_DRIVER, _DRIVER, needed=True),
    "KVM": _by_mounts(_no_node("kvm"), _KVM, needed=False),
    "cgroups": _by_mounts(_NO_CGROUPS, _CGROUPS, needed=False),
    "FUSE": _by_mounts(_no_node("fuse"), _FUSE, needed=False),
    "KVM, cgroups and FUSE": _by_mounts(
        f"{_no_node('kvm', 'fuse')}; {_NO_CGROUPS}", {**_KVM, **_CGROUPS, **_FUSE}, needed=False
    ),
    "KVM, cgroups, FUSE and libvirt": _by_mounts(
        f"{_no_node('kvm', 'fuse')}; {_NO_CGROUPS}; {_NO_DRIVER}",
        {**_KVM, **_CGROUPS, **_FUSE, **_DRIVER},
        needed=True,
    ),
}
"""By what was taken away."""
REFUSED = 3


def judge(name: str, done: subprocess.CompletedProcess[str]) -> None:
    """Hold what `vmlab selftest --json` answered without `name` against what it should. Raises Failed."""
    taken = TAKEN[name]
    require(
        done.returncode in (0, REFUSED), f"without {name}: exit code {done.returncode}: {(done.stderr or '')[-300:]}"
    )
    said = {one["name"]: one for one in json.loads(done.stdout)["trials"]}
    for line, words in taken.told.items():
        found = said.get(line, {"state": "not said", "detail": ""})
        right = found["state"] == "not here" and words in found["detail"]
        require(right, f"without {name}: {line} is {found['state']}: {found['detail']!r}, expected {words!r}")
    tried = {one["state"] for one in said.values() if one["state"] != "not here"}
    expected = ({"not tried"}, REFUSED) if taken.needed else ({"works"}, 0)
    require((tried, done.returncode) == expected, f"without {name}: {tried}, exit code {done.returncode}")
    tell(f"without {name}: exit code {done.returncode}; not here: {', '.join(taken.told)}")
