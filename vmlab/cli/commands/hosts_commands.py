"""`vmlab hosts check|resume`: the hypervisors of a fleet, and its runs whose controller was killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.one_run import follow
from vmlab.cli.options import hosts_option
from vmlab.cli.output import write_json, write_text
from vmlab.fleet.engine import require_engine
from vmlab.fleet.host_checks import HostCheck, Needs, check_hosts, demand_ready
from vmlab.fleet.hosts_file import EVERY, FleetRequest, chosen_hosts, read_hosts
from vmlab.fleet.serving import serve as serve_controller
from vmlab.fleet.serving import take_asset as keep_asset
from vmlab.fleet.serving import take_image as keep_image
from vmlab.fleet.starting import demand_fleet_plan, resume_fleet_run, start_fleet_run
from vmlab.guests.image.catalog import find
from vmlab.lab.commands.stopping import run_meant
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.model.visible import visible_line
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.system.entry_points import WORKLOADS, others_of


@click.group()
def hosts() -> None:
    """The hypervisors of a fleet, which ~/.config/vmlab/hosts.toml lists."""


@hosts.command()
@hosts_option
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def check(hosts: tuple[str, ...] | None, as_json: bool) -> None:
    """Check every host: reached, same vmlab, ready, clock offset, image, snapshots."""
    found = asyncio.run(check_hosts(chosen_hosts(hosts or (EVERY,))))
    if as_json:
        write_json({"schema": "vmlab.hosts/1", "hosts": list(map(_document, found))})
    else:
        _show(found)
    sys.exit(ExitCode.REFUSED if any(one.lacks for one in found) else ExitCode.PASSED)


@hosts.command()
@click.argument("run")
def resume(run: str) -> None:
    """Resume RUN after its controller was killed or lost."""
    folder = run_meant(run)
    with InterruptedLater() as interrupted:
        resume_fleet_run(folder)
        code = follow(folder, interrupted)
    say(f"`vmlab show {folder.id}` prints its results")
    sys.exit(code)


@hosts.command(hidden=True)
def serve() -> None:
    """Answer a controller on standard input and output."""
    serve_controller()


@hosts.command("take-image", hidden=True)
@click.argument("id")
def take_image(id: str) -> None:
    """Keep the image ID, whose exported file comes on standard input."""
    write_text(keep_image(id))


@hosts.command("take-asset", hidden=True)
@click.argument("id")
def take_asset(id: str) -> None:
    """Keep the asset ID, whose archive comes on standard input."""
    write_text(keep_asset(id))


def _document(one: HostCheck) -> dict[str, object]:
    condition, offset = one.condition, one.offset
    return {
        "name": one.name,
        "ready": not one.lacks,
        "reached": condition is not None,
        "lacks": one.lacks,
        "clock_offset_ms": None if offset is None else offset.ahead_ms,
        "clock_uncertainty_ms": None if offset is None else offset.uncertainty_ms,
        "image": None if condition is None else condition.image,
        "snapshots": None if condition is None else condition.snapshots,
    }


def _show(found: Sequence[HostCheck]) -> None:
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        parts = ["NOT ready" if one.lacks else "ready"]
        if one.offset is not None:
            parts.append(f"clock {one.offset.ahead_ms:+.1f} ms ± {one.offset.uncertainty_ms:.1f} ms")
        if one.condition is not None:
            parts.append(f"image {one.condition.image or 'missing'}")
            parts.append(f"{one.condition.snapshots} snapshots")
        write_text(visible_line(f"{one.name:<{width}}  {', '.join(parts)}"))
        for lack in one.lacks:
            write_text(visible_line(f"{'':<{width}}    {lack}"))


def started_on_fleet(
    file: ScenarioFile, overrides: Overrides, *, spread: bool = False, together: bool = False, **how: bool
) -> RunFolder:
    """Check the hosts that the overrides name, or the scenario's axis, and start the run: of each cell on each host, or
    with `spread` of each block on some host; `together` starts all hosts at once. `how` has more of a `FleetRequest`.

    Raises UsageError, and RefusedError where a host is not ready; nothing was started then.
    """
    require_engine()
    if spread and HOST_PLACE in file.scenario.axes:
        raise UsageError("--spread places blocks on any host, and this scenario has the axis host")
    asked = overrides.hosts or prepare_run(file, overrides, elsewhere=True)[0].hosts
    hosts = chosen_hosts(asked)
    overrides = replace(overrides, hosts=None if spread else tuple(hosts))
    plan, here = prepare_run(file, overrides, elsewhere=True)
    demand_fleet_plan(plan, here, together=together)
    image = find()
    used = {one.kind for one in plan.scenario.workloads.values()}
    packages = dict.fromkeys(chain.from_iterable(plan.layers))
    needs = Needs(others_of(WORKLOADS, used), tuple(packages))
    asyncio.run(demand_ready(hosts, None if image is None else image.id, say, needs))
    how |= {"spread": spread, "together": together}
    request = FleetRequest(hosts=hosts, **how, **read_hosts().waiting.model_dump())
    return start_fleet_run(file, overrides, plan, here, request)
