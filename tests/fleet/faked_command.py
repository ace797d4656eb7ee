"""The program ``vmlab`` over hosts without SSH and without guests, which `faked_controller.FLEET` names."""

from __future__ import annotations

import sys
from typing import Any

from tests.fleet.faked_controller import named_fleet
from vmlab.cli.commands import hosts_commands
from vmlab.cli.main import command_line
from vmlab.fleet import host_checks, starting

READY = host_checks.demand_ready


async def ready(hosts: Any, image: str | None, notice: Any, plugins: Any) -> None:
    """Ask these hosts."""
    fleet = named_fleet()
    try:
        await READY(hosts, image, notice, plugins, fleet.connect)
    finally:
        for host in fleet.hosts.values():
            await host.hang_up()


def main() -> int:
    """Run the command; its exit code."""
    start: Any = hosts_commands
    start.demand_ready = ready
    starting.CONTROLLER = "tests.fleet.faked_controller"
    return command_line(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
