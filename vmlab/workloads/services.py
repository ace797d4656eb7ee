"""What the guests' services offer to a workload, and the programs that they take; the guest image has them all."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.model.roles import ROLES

LAB_USER = "lab"
"""Owns the files of the share and receives the mail."""

LAB_PASSWORD = "lab-password"
"""Samba's password for `LAB_USER`; the lab's network has no way out, so it guards nothing."""

SHARE = "tree"
"""Samba's share."""

SHARE_FOLDER = "/srv/tree"
"""The folder behind `SHARE`."""

MAIL_DOMAIN = "vmlab.test"
"""Postfix delivers mail for `LAB_USER` here."""

MAILDIR = "/home/lab/Maildir"
"""Where that mail arrives, one file a message in ``new``."""

DATABASE = "sbtest"
"""PostgreSQL's database and the role that owns it; reachable from the lab's network without a password."""

ACCESS_LOG = "/var/log/apache2/access.log"
"""Apache's log in the ``combined`` format, whose size field counts bytes sent with headers."""

ALWAYS_NEEDED = ("python3", "systemctl", "install", "useradd")
"""Programs that every guest needs."""

DATA_DISK_NEEDS = ("mkfs.ext4", "blockdev")
"""Programs that a guest with a data disk needs."""

_PACKAGES = {
    "ab": "apache2-utils",
    "blockdev": "util-linux",
    "install": "coreutils",
    "java": "default-jre-headless",
    "mkfs.ext4": "e2fsprogs",
    "mount.cifs": "cifs-utils",
    "smbd": "samba",
    "smbpasswd": "samba-common-bin",
    "systemctl": "systemd",
    "testparm": "samba-common-bin",
    "useradd": "passwd",
}
"""The Debian package of each program that is not called as its package."""


def needed_programs(roles: Iterable[str], *, data_disk: bool) -> tuple[str, ...]:
    """The programs that a guest with these roles needs, whatever its workloads are."""
    of_roles = (program for role in roles for program in ROLES[role].programs)
    return (*ALWAYS_NEEDED, *(DATA_DISK_NEEDS if data_disk else ()), *of_roles)


def program_words(program: str) -> str:
    """A program that is missing, with the Debian package that has it where that is called otherwise."""
    if program.startswith("/"):
        return f"{program} (only vmlab's own image has it)"
    package = _PACKAGES.get(program)
    return program if package is None else f"{program} ({package})"
