"""What a guest can serve: each role with its systemd units, and what an added image needs for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RoleTraits:
    """One role: its systemd units, disabled at boot; each is active when its servers listen.

    `packages` are those of the lab's own image for its servers, and for programs of the workloads that need it. A guest
    of an added image can have it where there is a `setup`, the program among those of the lab's own image that sets it
    up, and such a guest needs the `programs`, each of which is in the Debian package that it maps to.
    """

    units: tuple[str, ...]
    packages: tuple[str, ...]
    setup: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)


ROLES: Mapping[str, RoleTraits] = {
    "fileserver": RoleTraits(
        ("smbd.service",),
        ("samba",),
        "60-fileserver.sh",
        {"smbd": "samba", "smbpasswd": "samba-common-bin", "testparm": "samba-common-bin"},
    ),
    "web": RoleTraits(
        ("mariadb.service", "apache2.service"),
        ("apache2", "libapache2-mod-php", "php-mysql", "mariadb-server", "wordpress"),
    ),
    "database": RoleTraits(("postgresql.service",), ("postgresql",)),
    "mail": RoleTraits(("postfix.service",), ("postfix",)),
}
ADDED_ROLES = tuple(name for name, role in ROLES.items() if role.setup)
"""Those that a guest of an added image can have."""
