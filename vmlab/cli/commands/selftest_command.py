"""`vmlab selftest`: what works on this host, tried on one real guest."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.options import Beside, beside_options
from vmlab.cli.output import write_json, write_text
from vmlab.cli.progress import WaitingLine
from vmlab.hypervisor.checks import Check, checks
from vmlab.lab.process.dead_runs import remove_run
from vmlab.lab.selftest import bundle as bundles
from vmlab.lab.selftest.trials import FAILS, NOT_HERE, TRIALS, WORKS, Result, Trials
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.quantities import format_bytes
from vmlab.model.visible import visible_line

_WIDTH = max(map(len, TRIALS))


@click.command()
@click.option("--bundle", type=click.Path(path_type=Path), help="Write the results to a zip file for a bug report.")
@click.option("--host-names", is_flag=True, help="With --bundle: keep the names of this host and its user.")
@click.option("--yes", is_flag=True, help="With --bundle: do not ask for confirmation.")
@beside_options
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def selftest(bundle: Path | None, host_names: bool, yes: bool, beside: Beside, as_json: bool) -> None:
    """Try on a small guest what runs need: boot, freeze, restore, prove and switch a cache mode, record, kill, clean.

    Takes one to two minutes, more if the guest image is missing. Each line says what works, what fails, and what is
    not here or was not tried, with the reason. Exit code 1 if something fails, 3 if something that runs need is
    missing.
    """
    if bundle is None and (host_names or yes):
        raise UsageError("--host-names and --yes are for --bundle")
    if bundle is not None and not yes and not sys.stdin.isatty():
        raise UsageError("a bundle is listed and confirmed before it is written; without a terminal, say --yes")
    found = checks()
    trials = Trials(lambda result: None if as_json else _show(result), concurrent=beside.concurrent)
    for result in _of_checks(found):
        trials.add(result)
    lacking = [check.name for check in found if check.required and not check.ok]
    if lacking:
        trials.leave_out(f"runs need {', '.join(lacking)}")
    else:
        with WaitingLine() as line:
            trials.run(line.show if beside.wait else None)
    results = trials.results
    if as_json:
        write_json({"schema": "vmlab.selftest/1", "trials": [asdict(one) for one in results]})
    if bundle is not None:
        _write_bundle(bundle, bundles.contents(results, found, trials.folder, host_names=host_names), asked=yes)
    failed = any(one.state == FAILS for one in results)
    if trials.folder is not None:
        if failed:
            say(f"run {trials.folder.id} has the details")
        else:
            remove_run(trials.folder)
    sys.exit(ExitCode.FAILED if failed else ExitCode.REFUSED if trials.folder is None else ExitCode.PASSED)


def _show(result: Result) -> None:
    write_text(visible_line(f"{result.state:<9} {result.name:<{_WIDTH}}  {result.detail}".rstrip()))


def _of_checks(found: list[Check]) -> list[Result]:
    """One line for all that is there, and one for each thing that is not."""
    lacking = [check for check in found if not check.ok]
    there = Result("what runs need", WORKS, f"{len(found) - len(lacking)} of {len(found)} checks of `vmlab doctor`")
    return [
        *([there] if all(not check.required for check in lacking) else []),
        *(Result(one.name, NOT_HERE, one.detail + (f"; {one.remedy}" if one.remedy else "")) for one in lacking),
    ]


def _write_bundle(path: Path, texts: dict[str, str], *, asked: bool) -> None:
    for name, text in texts.items():
        say(f"{name}  {format_bytes(len(text.encode()))}")
    if not asked and not click.confirm(f"Write these to {path}?", err=True):
        raise UsageError("no bundle was written")
    bundles.write(path, texts)
    say(f"wrote {path}")
