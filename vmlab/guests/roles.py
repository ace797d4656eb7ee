"""The systemd units of each role, and how they are started. `workloads.services` has what they offer."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.model.errors import GuestError
from vmlab.workloads.contract import Shell

ROLE_UNITS: dict[str, tuple[str, ...]] = {
    "fileserver": ("smbd.service",),
    "web": ("mariadb.service", "apache2.service"),
    "database": ("postgresql.service",),
    "mail": ("postfix.service",),
}
"""systemd units of each role, all disabled at boot; each is active when its servers listen."""


async def start_services(shell: Shell, roles: Iterable[str], deadline: float) -> None:
    """Start the units of `roles` in one guest. Raises GuestError naming each unit that is not active, and why;
    DeadlineExceeded after `deadline` seconds."""
    units = [unit for role in roles for unit in ROLE_UNITS[role]]
    if not units:
        return
    if (await shell.run(["systemctl", "start", *units], deadline=deadline, check=False)).status == 0:
        return
    faults = [f"{unit} ({why})" for unit in units if (why := await _fault(shell, unit))]
    raise GuestError(f"{shell.name}: did not start: {', '.join(faults or units)}")


async def _fault(shell: Shell, unit: str) -> str:
    """systemd's state of a `unit` that is not active, and the last line of its log; empty where it is active."""
    shown = await shell.run(["systemctl", "show", "--property=ActiveState", "--property=Result", unit], check=False)
    values = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    if values.get("ActiveState") == "active":
        return ""
    result = values.get("Result", "success")
    log = await shell.run(["journalctl", "--unit", unit, "--lines=1", "--output=cat", "--quiet"], check=False)
    return ": ".join(filter(None, [result if result != "success" else "not active", log.stdout.strip()]))
