"""`vmlab doctor`: what a run needs and this host lacks, and its installation."""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json, write_text
from vmlab.hypervisor.checks import Check, checks, repairs
from vmlab.model.errors import ExitCode, RefusedError, UsageError
from vmlab.model.visible import visible_line


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@click.option("--fix", is_flag=True, help="Install what is missing, after showing the commands and asking.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask for confirmation.")
def doctor(as_json: bool, fix: bool, yes: bool) -> None:
    """Check this host's requirements and show how to meet them."""
    if (as_json and fix) or (yes and not fix):
        raise UsageError("--json only reports what is missing; --yes is for --fix")
    found = checks()
    if as_json:
        write_json({"schema": "vmlab.doctor/1", "checks": [asdict(check) for check in found]})
    else:
        _show(found)
    if fix and (commands := repairs(found)):
        _run(commands, asked=yes)
        importlib.invalidate_caches()
        found = checks()
        _show([check for check in found if not check.ok])
    elif fix:
        say("no missing part can be installed by a command")
    sys.exit(ExitCode.PASSED if all(check.ok or not check.required for check in found) else ExitCode.REFUSED)


def _show(found: Sequence[Check]) -> None:
    for check in found:
        mark = "ok  " if check.ok else "NOT " if check.required else "-   "
        write_text(visible_line(f"{mark}{check.name}: {check.detail}"))
        if not check.ok and check.remedy:
            write_text(visible_line(f"     fix: {check.remedy}"))


def _run(commands: Sequence[Sequence[str]], *, asked: bool) -> None:
    """Run `commands` one after another, once the user has agreed. Raises UsageError, RefusedError at the first that
    fails."""
    for command in commands:
        say(f"to run: {shlex.join(command)}")
    if not asked:
        if not sys.stdin.isatty():
            raise UsageError("without a terminal to ask on, say --yes")
        if not click.confirm("Run these commands?", err=True):
            raise UsageError("nothing was installed")
    for command in commands:
        say(shlex.join(command))
        try:
            code = subprocess.run(command, check=False).returncode
        except OSError as error:
            raise RefusedError(f"{command[0]}: {error.strerror}") from error
        if code:
            raise RefusedError(f"`{shlex.join(command)}` ended with code {code}")
