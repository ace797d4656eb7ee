"""Starts the systemd units of a guest's roles. `workloads.services` has what they offer."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.model.errors import GuestError
from vmlab.model.roles import ROLES
from vmlab.workloads.contract import Shell


async def start_services(shell: Shell, roles: Iterable[str], deadline: float) -> None:
    """Start the units of `roles` in one guest. Raises GuestError naming each unit that is not active, and why;
    DeadlineExceeded after `deadline` seconds."""
    units = [unit for role in roles for unit in ROLES[role].units]
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
