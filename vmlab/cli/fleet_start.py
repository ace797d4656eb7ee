"""Starts one run of a fleet from the command line."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from vmlab.cli.diagnostics import say
from vmlab.fleet.engine import require_engine
from vmlab.fleet.host_checks import demand_ready
from vmlab.fleet.hosts_file import chosen_hosts, read_hosts
from vmlab.fleet.request import FleetRequest
from vmlab.fleet.starting import demand_fleet_plan, start_fleet_run
from vmlab.guests.image.catalog import find
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.errors import UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.system.entry_points import WORKLOADS, others_of


def names_of(asked: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that a user asked for, ``all`` by their names. Raises UsageError."""
    return tuple(chosen_hosts(asked))


def started_on_fleet(
    file: ScenarioFile,
    overrides: Overrides,
    *,
    spread: bool = False,
    together: bool = False,
    unlike: bool = False,
    in_turn: bool = False,
) -> RunFolder:
    """Check the hosts that the overrides name, or the scenario's axis, and start the run: of each cell on each host, or
    with `spread` of each block on some host; `together` starts all hosts at once, `in_turn` one cell at a time.

    Raises UsageError, and RefusedError where a host is not ready; nothing was started then.
    """
    require_engine()
    if spread and HOST_PLACE in file.scenario.axes:
        raise UsageError("--spread places blocks on any host, and this scenario has the axis host")
    asked = overrides.hosts or prepare_run(file, overrides)[0].hosts
    hosts = chosen_hosts(asked)
    overrides = replace(overrides, hosts=None if spread else tuple(hosts))
    plan, here = prepare_run(file, overrides)
    demand_fleet_plan(plan, here, together=together)
    image = find()
    used = {one.kind for one in plan.scenario.workloads.values()}
    asyncio.run(demand_ready(hosts, None if image is None else image.id, say, others_of(WORKLOADS, used)))
    waiting = read_hosts().waiting
    request = FleetRequest(
        hosts=hosts,
        spread=spread,
        together=together,
        unlike=unlike,
        in_turn=in_turn,
        reconnect=waiting.reconnect,
        hold=waiting.hold,
    )
    return start_fleet_run(file, overrides, plan, here, request)
