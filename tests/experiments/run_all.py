"""`make test-experiments`: every shipped scenario on real guests, one after another, at size smoke.

Each is run, its outcome and cells are checked, and what `vmlab show RUN --reference` prints of it: the publication's
table with the run's figures beside it, and an answer to each claim. Of a scenario that needs a Ceph cluster which is
not here, the publication alone is checked. It needs root, as all runs do. Exit code 0 means that all passed; 1 that one
failed; 3 that nothing could be started.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.checklist import Checklist, alone, say
from tests.experiments import page
from tests.experiments.judged import faults_beside, faults_of_run
from tests.experiments.program import VMLAB, Program, TookTooLong
from tests.experiments.records import keep, record_of
from vmlab.cli.interrupts import Terminated
from vmlab.hypervisor.ceph.rbd import require_pool
from vmlab.model.errors import ExitCode, RefusedError, VmlabError
from vmlab.model.places import cache_folder, runs_folder
from vmlab.model.scenarios.scenario import SIZES
from vmlab.plan.hosting import read_host_facts
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import ScenarioFile, load, shipped_names
from vmlab.plan.terms import Overrides
from vmlab.system.removal import remove_tree

_MINUTE = 60.0
ALTOGETHER = 95 * _MINUTE
"""What all scenarios may take at size smoke; when it is over, those that are left fail unrun."""
LONGEST = 15 * _MINUTE
"""What one of them may take at size smoke, snapshots included that it makes first."""
_UNBOUNDED = 7 * 24 * 60 * _MINUTE
_SHOW = 2 * _MINUTE
_IMAGE = 20 * _MINUTE


@dataclass(frozen=True, slots=True)
class Asked:
    """What to run and how: the size, whether to keep the results, the bounds of time in seconds, the program."""

    size: str = "smoke"
    record: bool = False
    longest: float = LONGEST
    altogether: float = ALTOGETHER
    command: Sequence[str] = VMLAB


def lacks_its_pool(file: ScenarioFile, size: str) -> bool:
    """Whether guests of a scenario have their disks in a Ceph pool that cannot be had here."""
    for pool in make_plan(file, Overrides(size=size), read_host_facts(runs_folder())).pools:
        try:
            require_pool(pool)
        except RefusedError:
            return True
    return False


def check_all(names: Sequence[str], asked: Asked, state: Path, report: Checklist) -> None:
    """Run and check the scenarios, one after another; a failure does not keep the others from being run."""
    end = time.monotonic() + asked.altogether
    for name in names:
        began, output = time.monotonic(), report.output(name)
        left = end - began
        if left <= 0:
            why = f"not run: the {asked.altogether / _MINUTE:.0f} min for all scenarios are over"
        else:
            try:
                program = Program(state, output, asked.command)
                why = "; ".join(_faults(load(name), asked, program, min(asked.longest, left)))
            except (TookTooLong, VmlabError, ValueError, KeyError) as error:
                why = str(error) or type(error).__name__
        report.line(began, name, output, why[:600])


def _faults(file: ScenarioFile, asked: Asked, program: Program, deadline: float) -> list[str]:
    """What is wrong with a scenario; its result is kept where nothing is, and that was asked."""
    name, reference = file.scenario.name, file.scenario.reference
    shown, document = name, None
    faults: list[str] = []
    if not lacks_its_pool(file, asked.size):
        # At this size no figure is meant to hold up, and the test runs on machines that do much else.
        noise = ("--allow-noise",) if asked.size == "smoke" else ()
        ran = program.call("run", name, "--size", asked.size, *noise, "--json", deadline=deadline)
        if ran.code != ExitCode.PASSED:
            faults.append(f"exit code {ran.code}, {ran.last_word}")
        if not ran.stdout:
            return faults
        document = json.loads(ran.stdout)
        faults += faults_of_run(document)
        shown = document["run"]["id"]
    beside = None
    if reference is not None:
        text = program.call("show", shown, "--reference", deadline=_SHOW)
        body = program.call("show", shown, "--reference", "--json", deadline=_SHOW)
        if text.code or body.code:
            faults.append(f"show --reference: {(text if text.code else body).last_word}")
        else:
            beside = json.loads(body.stdout)
            faults += faults_beside(reference, beside, text.stdout)
    if asked.record and document is not None and not faults:
        keep(name, record_of(document, beside))
    return faults


def _run(names: Sequence[str], asked: Asked) -> ExitCode:
    folder = cache_folder() / "test-experiments"
    with alone(folder, "a test of the experiments is") as report:
        if ready(folder / "state", report):
            check_all(names, asked, folder / "state", report)
        if asked.record:
            page.main()
    return ExitCode.FAILED if report.failed else ExitCode.PASSED


def ready(state: Path, report: Checklist, *, forgets: bool = True) -> bool:
    """Clear what a killed test left, forget its runs if it is one that `forgets`, and build the image if missing."""
    began, output = time.monotonic(), report.output("ready")
    program = Program(state, output, VMLAB)
    cleaned = program.call("clean", deadline=_SHOW)
    if forgets and cleaned.code == ExitCode.PASSED:
        remove_tree(state)
    ended = cleaned if cleaned.code else program.call("image", "build", deadline=_IMAGE)
    why = "" if ended.code == ExitCode.PASSED else ended.last_word
    report.line(began, "the host is clean and the image is there", output, why)
    return not why


def main() -> int:
    """Entry point; the exit code."""
    known = shipped_names()
    parser = argparse.ArgumentParser(
        prog="make test-experiments", description=__doc__.split("\n\n")[0] if __doc__ else None
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(known)}")
    parser.add_argument("--size", choices=SIZES, default="smoke", help="smoke by default; others have no time limit")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the results that passed in docs/evidence/experiments, and write the page again",
    )
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"no scenario {unknown[0]!r}; there are {', '.join(known)}")
    bounds = (LONGEST, ALTOGETHER) if arguments.size == "smoke" else (_UNBOUNDED, _UNBOUNDED)
    asked = Asked(arguments.size, arguments.record, *bounds)
    return as_root("test-experiments", lambda: _run(arguments.names or known, asked))


def as_root(program: str, run: Callable[[], ExitCode]) -> int:
    """The exit code of `run`, or the one that stands for its error, which is told; signals end it in order."""
    if os.geteuid() != 0:
        say(f"{program}: run it as root")
        return ExitCode.REFUSED
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminated)
    try:
        return run()
    except VmlabError as error:
        say(f"{program}: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Terminated as end:
        return end.exit_code


def _terminated(number: int, frame: object) -> None:
    raise Terminated(number)


if __name__ == "__main__":
    sys.exit(main())
