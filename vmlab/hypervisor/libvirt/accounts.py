"""Accounts that libvirt looks up by name before it reads its configuration; visible only inside the lab.

Debian's QEMU driver refuses to start where the user ``libvirt-qemu`` is missing, even when qemu.conf says root. Only
the package libvirt-daemon-system makes that user, and it also starts daemons, a default network and firewall rules.
The lab needs none of them, so it binds its own copies of passwd and group over the host's, in its private mounts.
"""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable
from pathlib import Path

from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.system import kernel

_NAME = "libvirt-qemu"
_UID = 64055
"""The number that Debian reserves for it; no process of the lab runs under it."""


def provide_accounts(folder: Path) -> None:
    """Make ``libvirt-qemu`` known to this mount namespace, with copies kept in `folder`; raises OSError.

    Does nothing where user and group exist. Raises HypervisorUnavailable outside a private mount namespace.
    """
    require_isolation()
    folder.mkdir(parents=True, exist_ok=True)
    if not _known(lambda: pwd.getpwnam(_NAME)):
        _extend(Path("/etc/passwd"), folder, f"{_NAME}:x:{_UID}:{_UID}:vmlab:/nonexistent:/usr/sbin/nologin\n")
    if not _known(lambda: grp.getgrnam(_NAME)):
        _extend(Path("/etc/group"), folder, f"{_NAME}:x:{_UID}:\n")


def _known(look_up: Callable[[], object]) -> bool:
    try:
        look_up()
    except KeyError:
        return False
    return True


def _extend(original: Path, folder: Path, line: str) -> None:
    copy = folder / original.name
    copy.write_text(original.read_text().rstrip("\n") + "\n" + line)
    copy.chmod(0o644)
    kernel.mount(str(copy), str(original), None, kernel.MS_BIND)
