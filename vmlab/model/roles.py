"""What a guest can serve: each role with its systemd units, and what an added image needs for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoleTraits:
    """One role: its systemd units, disabled at boot; each is active when its servers listen.

    A guest of an added image can have it where there is a `setup`, the program among those of the lab's own image that
    sets it up, and such a guest needs the `programs`.
    """

    units: tuple[str, ...]
    setup: str = ""
    programs: tuple[str, ...] = ()


ROLES: Mapping[str, RoleTraits] = {
    "fileserver": RoleTraits(("smbd.service",), "60-fileserver.sh", ("smbd", "smbpasswd", "testparm")),
    "web": RoleTraits(("mariadb.service", "apache2.service")),
    "database": RoleTraits(("postgresql.service",)),
    "mail": RoleTraits(("postfix.service",)),
}
ADDED_ROLES = tuple(name for name, role in ROLES.items() if role.setup)
"""Those that a guest of an added image can have."""
