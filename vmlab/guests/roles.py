"""Which units of the guests' root disk make a role. What they offer is told in `vmlab.workloads.services`."""

from __future__ import annotations

ROLE_UNITS: dict[str, tuple[str, ...]] = {
    "fileserver": ("smbd.service",),
    "web": ("mariadb.service", "apache2.service"),
    "database": ("postgresql.service",),
    "mail": ("postfix.service",),
}
"""systemd units of each role, all disabled at boot; each is active when its servers listen."""

LAB_NETWORK = "198.18.0.0/15"
"""Where guests' addresses come from (RFC 2544, set aside for benchmarks); PostgreSQL and Postfix trust it."""
