"""`make test-host`: the program on a Debian host with systemd, cgroup v2, libvirtd and KVM, which is thrown away.

It needs root, 10 GiB of memory and 10 GiB of disk, and no KVM: the host is emulated, KVM included. Exit code 0 means
that every check passed; 1 that one failed; 3 that the host could not be had.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import asyncssh

from tests.checklist import Checklist, alone, say
from tests.host import recipe
from tests.host.checks import CHECKS, Check
from tests.host.disks import data_disk, root_disk, scratch_folder
from tests.host.machine import DidNotBoot, Machine
from vmlab.guests.image.steps import stoppable
from vmlab.model.errors import ExitCode, VmlabError
from vmlab.model.places import cache_folder
from vmlab.system.removal import remove_tree

_WHEELS = "/root/.cache/wheels/vmlab-*.whl"
_SET_UP = f"{recipe.VENV}/bin/pip install --quiet --no-index --no-deps {_WHEELS}"
_INSIDE = "cd /root/.cache/checks && python3 -m tests.host.inside"
_SET_UP_SECONDS = 600.0


async def _all_checks(machine: Machine, checks: Sequence[Check], report: Checklist) -> None:
    booted = await _boot(machine, report, first=True)
    kept = False
    for check in checks:
        if check.destructive and not kept and booted:
            await machine.keep()
            kept = True
        if not booted and not (booted := await _boot(machine, report, first=False)):
            report.line(time.monotonic(), check.title, machine.console, "the host does not boot")
            continue
        booted = await _check(machine, check, report)


async def _boot(machine: Machine, report: Checklist, *, first: bool) -> bool:
    """Boot the host and have it ready for checks."""
    began, output = time.monotonic(), report.output("boot")
    title = "the host boots" if first else "the host boots anew"
    why = ""
    try:
        await (machine.boot() if first else machine.boot_anew())
        command = f"{_SET_UP} && {_INSIDE} prepare" if first else f"{_INSIDE} prepare"
        if await machine.run(command, output, _SET_UP_SECONDS) != 0:
            why = "it could not be prepared"
    except (DidNotBoot, TimeoutError) as error:
        why = str(error) or "it could not be prepared in time"
    report.line(began, title, output, why)
    return not why


async def _check(machine: Machine, check: Check, report: Checklist) -> bool:
    """Run one check; False where the host should not be used any more as it is."""
    began, output = time.monotonic(), report.output(check.name)
    intact = True
    try:
        code = await machine.run(f"{_INSIDE} {check.name}", output, check.deadline)
        intact = code == 0 or (code is not None and not check.destructive)
        why = "" if code == 0 else _last_line(output)
    except TimeoutError:
        intact, why = False, f"it took longer than {check.deadline:.0f} s"
    report.line(began, check.title, output, why)
    return intact


def _last_line(output: Path) -> str:
    lines = [line.strip() for line in output.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it ended without a word"


async def _with_machine(machine: Machine, checks: Sequence[Check], report: Checklist) -> None:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    async with machine:
        await _all_checks(machine, checks, report)


def _run(names: Sequence[str]) -> int:
    cache = cache_folder() / "test-host"
    with alone(cache, "a test-host is") as report:
        scratch = scratch_folder(cache)
        try:
            key = asyncssh.generate_private_key("ssh-ed25519")
            with stoppable("the build") as stop:
                root = root_disk(cache, scratch, stop)
                data = data_disk(scratch, key.export_public_key(), stop)
            checks = [check for check in CHECKS if not names or check.name in names]
            asyncio.run(_with_machine(Machine(root, data, key, scratch), checks, report))
        finally:
            if (console := scratch / "console.log").exists():
                console.rename(report.output("console-of-the-host"))
            if (log := scratch / "build.log").exists():
                log.rename(report.output("build"))
            remove_tree(scratch)
    return ExitCode.FAILED if report.failed else ExitCode.PASSED


def main() -> int:
    """Entry point; the exit code."""
    known = list(dict.fromkeys(check.name for check in CHECKS))
    parser = argparse.ArgumentParser(prog="make test-host", description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"only these: {', '.join(known)}")
    names = parser.parse_args().checks
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no check {unknown[0]!r}; there are {', '.join(known)}")
    if os.geteuid() != 0:
        say("test-host: run it as root")
        return ExitCode.REFUSED
    try:
        return _run(names)
    except VmlabError as error:
        say(f"test-host: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except asyncio.CancelledError:
        return ExitCode.TERMINATED


if __name__ == "__main__":
    sys.exit(main())
