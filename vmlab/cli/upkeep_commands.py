"""`vmlab clean` and `vmlab doctor`: clear what dead runs left; report what is missing and how to get it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json, write_text
from vmlab.hypervisor.checks import checks
from vmlab.lab.sweep import clean as sweep_all
from vmlab.model.errors import ExitCode, RefusedError
from vmlab.model.places import runtime_folder
from vmlab.report.words import plural
from vmlab.store.runs import run_folders


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print what was removed and what is left as JSON.")
def clean(as_json: bool) -> None:
    """Clear what runs that died left behind: disks, sockets, loop devices, cgroups; put host settings back.

    Their figures are kept.
    """
    _check_sight()
    swept = sweep_all()
    left = [place for one in swept for place in one.left]
    if as_json:
        write_json({"schema": "vmlab.clean/1", "runs": [asdict(one) for one in swept]})
    elif not swept:
        say("nothing to clean")
    for one in swept:
        for note in one.notes:
            say(note)
        say(
            f"run {one.run}: removed {_by_kind(one.removed)}"
            + (f", could not remove {', '.join(one.left)}" * bool(one.left))
        )
    sys.exit(ExitCode.CLEANUP_INCOMPLETE if left else ExitCode.PASSED)


_NOUNS = {"rbd": "Ceph image", "loop": "loop device", "setting": "host setting", "cgroups": "cgroup"}


def _by_kind(removed: Sequence[str]) -> str:
    """``3 files, 1 loop device``: what was removed, counted by its kind in the journal; a path alone is a folder."""
    kinds = Counter("folder" if one.startswith("/") else one.split(" ", 1)[0] for one in removed)
    return ", ".join(plural(count, _NOUNS.get(kind, kind)) for kind, count in kinds.items()) or "nothing"


def _check_sight() -> None:
    """Raises RefusedError where there may be runs that this user cannot see: "nothing to clean" might be wrong."""
    run_folders()
    try:
        next(runtime_folder().iterdir(), None)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RefusedError(f"cannot read {runtime_folder()}: {error.strerror}") from error


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def doctor(as_json: bool) -> None:
    """Check what a run needs from this host, and show how to get what is missing."""
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
