"""The packages that the lab needs, by the names of each distribution, and the commands that install them.

It needs nothing but Python: `packaging/setup` uses it before anything is installed.
"""

from __future__ import annotations

import platform
import shlex
import sys
from pathlib import Path

_PROJECT = "vmlab"
_INSTALL = {
    "debian": ("apt-get", "install", "--no-install-recommends"),
    "fedora": ("dnf", "install"),
    "arch": ("pacman", "-S"),
}
"""By the families of distributions, which name themselves so in os-release(5)."""
_UNASKED = {"debian": "--yes", "fedora": "--assumeyes", "arch": "--noconfirm"}
OF_FILE_SYSTEMS = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
"""Debian's package with the ``mkfs`` of each file system."""
_NAMED_ALIKE = (
    *("btrfs-progs", "e2fsprogs", "gcc", "lintian", "lvm2", "make", "mmdebstrap", "qemu-system-x86", "sysstat", "tmux"),
    *("util-linux", "xfsprogs"),
)
"""Packages that Fedora and Arch Linux call as Debian does."""
_OTHER_NAMES = {
    **{name: (name, name) for name in _NAMED_ALIKE},
    "ceph-common": ("ceph-common", "ceph"),
    "dnsmasq-base": ("dnsmasq", "dnsmasq"),
    "go-md2man": ("golang-github-cpuguy83-md2man", "go-md2man"),
    "libc6-dev": ("glibc-devel", "glibc"),
    "libfuse3-dev": ("fuse3-devel", "fuse3"),
    "libvirt-daemon": ("libvirt-daemon", "libvirt"),
    "libvirt-daemon-driver-qemu": ("libvirt-daemon-driver-qemu", "libvirt"),
    "libvirt-dev": ("libvirt-devel", "libvirt"),
    "ovmf": ("edk2-ovmf", "edk2-ovmf"),
    "pkg-config": ("pkgconf-pkg-config", "pkgconf"),
    "python3-dev": ("python3-devel", "python"),
    "python3-venv": ("python3", "python"),
    "qemu-block-extra": ("qemu-block-rbd", "qemu-block-rbd"),
    "qemu-utils": ("qemu-img", "qemu-img"),
    "xorriso": ("xorriso", "libisoburn"),
}
"""By Debian's name, which stands for a package in the program: the names of Fedora and of Arch Linux."""
_TO_COMPILE = {
    "lab": ("gcc", "libc6-dev", "libvirt-dev", "pkg-config", "python3-dev"),
    "disk": ("gcc", "libc6-dev", "libfuse3-dev", "pkg-config", "python3-dev"),
}
"""What the Python packages of an extra are compiled with."""


def family() -> str | None:
    """The family of this host's distribution; None for one that is not known."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return next((one for one in (release.get("ID", ""), *release.get("ID_LIKE", "").split()) if one in _INSTALL), None)


def install_command(*packages: str, unasked: bool = False) -> tuple[str, ...]:
    """The command that installs `packages`, of Debian's names; empty on a distribution that is not known."""
    here = family()
    if here is None:
        return ()
    names = packages if here == "debian" else tuple(_OTHER_NAMES[one][here == "arch"] for one in packages)
    return (*_INSTALL[here], *([_UNASKED[here]] if unasked else ()), *dict.fromkeys(names))


def installing(*packages: str) -> str:
    """What a user does to have `packages`, of Debian's names: a command, where the distribution is known."""
    words = shlex.join(install_command(*packages))
    return words or f"install what Debian calls {', '.join(packages)}"


def extra_packages(extra: str) -> tuple[str, ...]:
    """Debian's names of what an extra of vmlab is compiled with; none where Python packages have wheels."""
    return _TO_COMPILE.get(extra, ())


def extra_command(*extras: str) -> tuple[str, ...]:
    """The command that installs the Python packages of extras of vmlab where vmlab itself is installed.

    That is with pipx or uv for a program that they installed, and with the pip of this Python for any other.
    """
    # Imported late: it takes longer than all else here, and few ask.
    from importlib import metadata

    ends = tuple(f"extra == '{extra}'" for extra in extras)
    try:
        wanted = [one for one in metadata.requires(_PROJECT) or () if one.endswith(ends)]
    except metadata.PackageNotFoundError:
        wanted = []  # It runs from a checkout that was not installed.
    names = [one.partition(";")[0].strip() for one in wanted] or [f"{_PROJECT}[{','.join(extras)}]"]
    here = Path(sys.prefix)
    if (here / "pipx_metadata.json").is_file():
        return ("pipx", "inject", _PROJECT, *names)
    if (here / "uv-receipt.toml").is_file():
        return ("uv", "pip", "install", "--python", sys.executable, *names)
    return (sys.executable, "-m", "pip", "install", *names)
