"""`vmlab clean` and `vmlab doctor`: clear what dead runs left, and tell what is missing and what mends it."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json, write_text
from vmlab.hypervisor.checks import checks
from vmlab.lab.sweep import clean as sweep_all
from vmlab.model.errors import ExitCode


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print what was removed and what is left as JSON.")
def clean(as_json: bool) -> None:
    """Clear what runs that died left behind: disks, sockets, loop devices, cgroups. Their figures are kept."""
    swept = sweep_all()
    left = [place for one in swept for place in one.left]
    if as_json:
        write_json({"schema": "vmlab.clean/1", "runs": [asdict(one) for one in swept]})
    elif not swept:
        say("nothing to clean")
    for one in swept:
        say(
            f"run {one.run}: removed {len(one.removed)}"
            + (f", could not remove {', '.join(one.left)}" * bool(one.left))
        )
    sys.exit(ExitCode.CLEANUP_INCOMPLETE if left else ExitCode.PASSED)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def doctor(as_json: bool) -> None:
    """Check what a run needs from this host, and say what mends it."""
    found = checks()
    if as_json:
        write_json({"schema": "vmlab.doctor/1", "checks": [asdict(check) for check in found]})
    else:
        for check in found:
            mark = "ok  " if check.ok else "NOT " if check.required else "-   "
            write_text(f"{mark}{check.name}: {check.detail}")
            if not check.ok and check.remedy:
                write_text(f"     mend: {check.remedy}")
    sys.exit(ExitCode.PASSED if all(check.ok or not check.required for check in found) else ExitCode.REFUSED)
