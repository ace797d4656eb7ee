"""What an image is made of. Its id is a digest of this and of nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.names import NETWORK
from vmlab.model.roles import ROLES
from vmlab.workloads import services

FORMAT = 1
"""Increased when the build itself changes in a way that packages and payload do not show."""

NAME = "vmlab"
PAYLOAD = Path(__file__).resolve().parent / "payload"

_FIRST_ROLES = ("web", "database", "mail", "fileserver")
"""The order of packages is part of an image's id: these come as in the images that users have, later roles behind."""


def _place(role: str) -> int:
    return _FIRST_ROLES.index(role) if role in _FIRST_ROLES else len(_FIRST_ROLES)


PACKAGES: tuple[str, ...] = (
    # The guest itself.
    "linux-image-cloud-amd64",
    "systemd",
    "systemd-sysv",
    "udev",
    "dbus",
    "openssh-server",
    "qemu-guest-agent",
    "iproute2",
    "kmod",
    "python3",
    "e2fsprogs",
    "ethtool",
    "procps",
    "psmisc",
    # The image's own initrd is made of these two.
    "busybox-static",
    "cpio",
    # The servers of the roles.
    *(package for role in sorted(ROLES, key=_place) for package in ROLES[role].packages),
    # The clients and benchmarks of the workloads.
    "cifs-utils",
    "apache2-utils",
    "sysbench",
    "fio",
    "iperf3",
    "mbw",
    "bonnie++",
    "stress-ng",
    # Java, and the libraries that programs of its suite use.
    "default-jre-headless",
    "libderby-java",
    "libeclipse-jdt-core-java",
    "libjlayer-java",
    "libsunflow-java",
)

THEMES = {"bookworm": "wordpress-theme-twentytwentyone"}
"""The theme of the web service by release; a later one has none that PHP alone draws."""
LATER_THEME = "wordpress-theme-twentytwentythree"

LEFT_OUT: tuple[str, ...] = (
    # Manuals are not read in a guest.
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/i18n/*",
    # PostgreSQL's JIT compiler takes a tenth of the disk and is switched off.
    "/usr/lib/postgresql/*/lib/bitcode/*",
    "/usr/lib/postgresql/*/lib/llvmjit*",
    "/usr/lib/x86_64-linux-gnu/libLLVM*",
    # The image makes an initial RAM disk of its own; Debian's would take a tenth of the build.
    "/etc/kernel/postinst.d/initramfs-tools",
)
"""Files of packages that are never unpacked, as dpkg's patterns."""

COMMAND_LINE: tuple[tuple[str, str], ...] = (
    ("root=/dev/vda", "the whole disk is the root file system; there is no partition table"),
    ("rw", "nothing checks the file system at boot, so it need not be mounted twice"),
    ("rootflags=noatime,noinit_itable", "reads cause no writes, and no kernel thread zeroes inode tables under a load"),
    ("console=ttyS0", "what the kernel says lands in the guest's console log"),
    ("quiet", "a serial line under emulation is slow"),
    ("net.ifnames=0", "the first network card is eth0, whatever slot it is in"),
    ("ipv6.disable_ipv6=1", "the lab's network is IPv4; nobody waits for duplicate address detection"),
    ("no_timer_check", "the timer of an emulated machine works, and testing it takes time"),
    ("cryptomgr.notests", "the kernel need not test its ciphers at every boot"),
    ("panic=-1", "a guest that panics resets at once, which the hypervisor sees"),
)
"""The kernel's parameters, each with its reason. Mitigations stay as the kernel sets them: they are part of what is
measured.
"""


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """All that an image depends on. `payload` maps a file's path to its content, `environment` feeds the set-up."""

    codename: str
    architecture: str
    packages: tuple[str, ...]
    left_out: tuple[str, ...]
    payload: dict[str, bytes]
    environment: dict[str, str]
    command_line: str
    format: int = FORMAT

    def described(self) -> dict[str, object]:
        """The recipe as JSON values, with the SHA-256 of every payload file instead of its content."""
        return {
            "format": self.format,
            "codename": self.codename,
            "architecture": self.architecture,
            "packages": list(self.packages),
            "left_out": list(self.left_out),
            "payload": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(self.payload.items())},
            "environment": self.environment,
            "command_line": self.command_line,
        }

    def address(self) -> str:
        """The image's id: its name and twelve hexadecimal digits of the recipe's SHA-256."""
        canonical = json.dumps(self.described(), sort_keys=True, separators=(",", ":"))
        return f"{NAME}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


def read_payload(folder: Path = PAYLOAD) -> dict[str, bytes]:
    """Every file below `folder` by its relative path; compiled Python and editors' backups are no part of it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith(("~", ".pyc"))
    }


def setup_environment() -> dict[str, str]:
    """The variables that the programs of the set-up read."""
    return {
        "LAB_NETWORK": str(NETWORK),
        "LAB_USER": services.LAB_USER,
        "LAB_PASSWORD": services.LAB_PASSWORD,
        "SHARE": services.SHARE,
        "SHARE_FOLDER": services.SHARE_FOLDER,
        "MAIL_DOMAIN": services.MAIL_DOMAIN,
        "DATABASE": services.DATABASE,
    }


def current(codename: str, architecture: str = "amd64") -> ImageRecipe:
    """The recipe that this version of the program builds for a Debian release."""
    return ImageRecipe(
        codename=codename,
        architecture=architecture,
        packages=(*PACKAGES, THEMES.get(codename, LATER_THEME)),
        left_out=LEFT_OUT,
        payload=read_payload(),
        environment=setup_environment(),
        command_line=" ".join(word for word, _ in COMMAND_LINE),
    )
