"""`make experiments`: the claims of shipped scenarios on real guests, each scenario with the repeats that they take.

Those with the fewest minutes for each claim come first. Each is run while the machine does nothing else, and its record
is kept in the cache folder; started again, it goes on with the scenarios that have none. A run that went on without
this program is waited for, one that ended is taken as it is, and one that was cut off goes on with the cells that are
left (`vmlab resume`), or is done anew where the host is another by now. What does not fit into the minutes is left for
another time; what is longer than all of them is begun, stopped when they are over, and gone on with the next time. With
`--again` claims that the page has are asked again on another day, each by the command beside it. With `--host kvm` a
host with KVM is asked what had no answer where the page was made; any other is refused. Only `--record`
changes the repository, and runs nothing. It needs root, as all runs do. Exit code 0 means that nothing failed, whether
or not something is left; 1 that a run failed; 3 that none could start.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import psutil

from tests.checklist import Checklist, alone, say
from tests.experiments import page
from tests.experiments.judged import faults_of_run
from tests.experiments.kvm_host import lacks_kvm, sizes_there, virtualization
from tests.experiments.program import VMLAB, Ended, Program, TookTooLong
from tests.experiments.records import (
    AGAIN,
    CLAIMED,
    KVM,
    archive_of,
    day_of,
    is_emulated,
    keep,
    kept,
    of_claims,
    record_of,
    repeats_of,
)
from tests.experiments.run_all import as_root, lacks_its_pool, ready
from vmlab.lab.cell.disturbance import TOLD_OTHER_PERCENT
from vmlab.lab.provision.host_support import prepare_run, with_repeats_here
from vmlab.model.errors import ExitCode, RefusedError, VmlabError
from vmlab.model.places import cache_folder
from vmlab.model.run import EMULATED, RUNNING, AxisValue, Outcome
from vmlab.model.scenarios.reference import Claim, every_place, is_named
from vmlab.model.scenarios.scenario import SIZES
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.terms import ForClaims, Overrides

_MINUTE = 60.0
MINUTES = 100
CONTROL = Path(__file__).with_name("by-construction.yaml")
"""Claims whose answers are known beforehand, which go the same way; by the name of its scenario."""
_LOOK = 5.0
_QUIET_LOOKS = 3
"""So many looks of `_LOOK` seconds each, one after another, have to find nothing else at work."""
_SHOW = 2 * _MINUTE
_WAIT = "--wait"


def _busy() -> float:
    """The share of all CPUs that worked during a look, in percent."""
    return psutil.cpu_percent(_LOOK)


@dataclass(frozen=True, slots=True)
class Asked:
    """How to run them: the size, the repeats, the seconds for all together, the program, and what tells how busy the
    machine is. With `kvm` guests must run under KVM; with `noise` cells count whatever else the machine does."""

    size: str = "smoke"
    repeats: ForClaims = "claims"
    seconds: float = MINUTES * _MINUTE
    command: Sequence[str] = VMLAB
    busy: Callable[[], float] = _busy
    kvm: bool = False
    noise: bool = False


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scenario's claims, how many of them a run here can answer, and how long it is estimated to take, in seconds.

    `least` is up to the first look at the claims, `most` up to the last. `absent` is why it cannot be run here.
    """

    name: str
    claims: int
    here: int
    cells: int
    least: float
    most: float
    absent: str = ""

    @property
    def price(self) -> float:
        """Seconds for each claim that can be answered."""
        return self.most / self.here if self.here and not self.absent else float("inf")


def experiments(names: Sequence[str], size: str, repeats: ForClaims = "claims") -> list[Experiment]:
    """Those of the scenarios that have claims, the cheapest claims first."""
    found = (_experiment(name, size, repeats) for name in names if load(given(name)).scenario.claims)
    return sorted(found, key=lambda one: (one.price, one.name))


def given(name: str) -> str:
    """What stands for a scenario on the command line: its name, or the path of the one that is not shipped."""
    return str(CONTROL) if name == CONTROL.stem else name


def is_met(claim: Claim, cells: Sequence[Mapping[str, AxisValue]]) -> bool:
    """Whether the cells, given by their values, have all places that the claim compares."""
    return all(any(is_named(place, axes) for axes in cells) for place in every_place(claim))


def _experiment(name: str, size: str, repeats: ForClaims) -> Experiment:
    file = load(given(name))
    claims = file.scenario.claims
    try:
        plan, _ = prepare_run(file, with_repeats_here(file, Overrides(size=size, repeats=repeats)))
        absent = "its Ceph pool is not here" if lacks_its_pool(file, size) else ""
        absent = absent if plan.size == size else f"it has no size {size}"
    except VmlabError as error:
        return Experiment(name, len(claims), 0, 0, 0.0, 0.0, str(error))
    cells = [cell.axes for cell in plan.cells]
    here = sum(one.say not in plan.unanswerable and is_met(one, cells) for one in claims)
    if len(plan.unanswerable) == len(claims) and not absent:
        absent = next(iter(plan.unanswerable.values())).because[0]
    least = sum(cell.seconds for cell in plan.cells_at_least)
    return Experiment(name, len(claims), here, len(cells), least, plan.seconds, absent)


def is_finished(name: str, size: str, folder: Path) -> bool:
    """Whether a record is kept that answers the claims as the scenario has them today."""
    record = kept(name, _records(folder, size))
    asked = [claim.say for claim in load(given(name)).scenario.claims]
    return record is not None and [one["say"] for one in record["beside"]["claims"]] == asked


def _records(folder: Path, size: str) -> Path:
    return folder / "records" / size


def table(found: Sequence[Experiment], size: str, folder: Path) -> Iterator[str]:
    """The lines of the plan: claims against estimated minutes, and the sum of those that are left so far."""
    yield f"size {size}; minutes up to the first look and up to the last, as estimated for this host"
    yield f"{'scenario':<24} {'claims':>6} {'cells':>6} {'minutes':>11} {'per claim':>9} {'sum':>6} {'claims':>6}"
    total, claims = 0.0, 0
    for one in found:
        line = f"{one.name:<24} {one.here:>6} {one.cells:>6}"
        if one.absent:
            yield f"{line}  absent: {one.absent}"
            continue
        ends = dict.fromkeys(f"{seconds / _MINUTE:.0f}" for seconds in (one.least, one.most))
        line += f" {' to '.join(ends):>11} {one.price / _MINUTE:>9.1f}"
        if is_finished(one.name, size, folder):
            yield f"{line}   done"
        else:
            total, claims = total + one.most, claims + one.here
            yield f"{line} {total / _MINUTE:>6.0f} {claims:>6}"


def go_on(found: Sequence[Experiment], asked: Asked, folder: Path, report: Checklist) -> None:
    """Run what has no record yet and fits into the time that is left; a failure does not keep others from being run."""
    end = time.monotonic() + asked.seconds
    for one in found:
        began = time.monotonic()
        if is_finished(one.name, asked.size, folder):
            continue
        if one.absent:
            say(f"absent         {one.name}: {one.absent}")
            continue
        output = report.output(one.name)
        program = Program(folder / "state", output, asked.command)
        fits = one.most <= end - began
        if not fits and one.most <= asked.seconds and not _is_begun(one.name, asked, folder, program):
            say(f"left           {one.name}: it takes {_minutes(one.most)}, and {_minutes(end - began)} are left")
            continue
        if not asked.noise and not _is_quiet(end - one.most if fits else end, asked):
            say(f"left           {one.name}: the machine did other work for too long")
            continue
        began = time.monotonic()
        try:
            why = _ran(one.name, asked, folder, program, end)
        except (TookTooLong, VmlabError, ValueError, KeyError) as error:
            if isinstance(error, TookTooLong) and time.monotonic() >= end:
                say(f"left           {one.name}: the time is over, and the next start has it go on")
                continue
            why = str(error) or type(error).__name__
        report.line(began, one.name, output, why[:600])


def _minutes(seconds: float) -> str:
    return f"{seconds / _MINUTE:.0f} min"


def _is_quiet(until: float, asked: Asked) -> bool:
    """Wait for the machine to do nothing else, up to a moment (monotonic); whether it does so."""
    quiet = 0
    while quiet < _QUIET_LOOKS:
        quiet = quiet + 1 if asked.busy() < TOLD_OTHER_PERCENT else 0
        if time.monotonic() > until and quiet < _QUIET_LOOKS:
            return False
    return True


def _ran(name: str, asked: Asked, folder: Path, program: Program, end: float) -> str:
    """Run it, or have the run of an earlier start go on; why there is no record of it, if there is none."""
    ended = _left_before(name, asked, folder, program, end)
    if ended is None:
        command = ["run", given(name), "--size", asked.size, "--repeats", asked.repeats, _WAIT, "--json"]
        command += ["--allow-noise"] if asked.noise else []
        ended = program.call(*command, deadline=max(0.0, end - time.monotonic()))
    if not ended.stdout:
        return f"exit code {ended.code}, {ended.last_word}"
    document = json.loads(ended.stdout)
    run = document["run"]
    if not _has_answers(run, program):
        return "; ".join(faults_of_run(document))
    record = record_of(document, _beside(run, program))
    if asked.kvm:
        if run["accelerator"] == EMULATED:
            return "its guests were emulated"
        record["machine"]["virtualization"] = virtualization()
    keep(name, record, _records(folder, asked.size))
    return ""


def _has_answers(run: Mapping[str, Any], program: Program) -> bool:
    """Whether a run that ended is kept: it passed, or has invalid cells, and no claim is open for lack of the others.

    Invalid cells are in no answer, and what makes one invalid is known before its figures are looked at.
    """
    if run["outcome"] != Outcome.INVALID:
        return bool(run["outcome"] == Outcome.PASSED)
    is_open = (one for one in _beside(run, program)["claims"] if one["answer"] == "cannot tell")
    return all(side["count"] >= claim["readings_needed"] for claim in is_open for side in claim["evidence"])


def _beside(run: Mapping[str, Any], program: Program) -> dict[str, Any]:
    """``vmlab.reference/1`` of a run. Raises RefusedError where there is none."""
    shown = program.call("show", run["id"], "--reference", "--json", deadline=_SHOW)
    if shown.code:
        raise RefusedError(f"show --reference: {shown.last_word}")
    document: dict[str, Any] = json.loads(shown.stdout)
    return document


def _runs_left(name: str, asked: Asked, folder: Path, program: Program) -> Iterator[dict[str, Any]]:
    """Its runs of the size since the one whose record is kept, the newest first; only this program's are there.

    A run whose record is kept asked for other claims than the scenario has today.
    """
    old = kept(name, _records(folder, asked.size))
    known = old["beside"]["run"]["id"] if old else None
    listed: list[dict[str, Any]] = json.loads(program.call("ls", "--json", deadline=_SHOW).stdout)["runs"]
    for one in takewhile(lambda one: one["id"] != known, listed):
        if (one["scenario"], one["size"]) == (name, asked.size):
            yield one


def _is_begun(name: str, asked: Asked, folder: Path, program: Program) -> bool:
    """Whether it has a run that is under way or was cut off."""
    return any(one["outcome"] in (RUNNING, Outcome.ABORTED) for one in _runs_left(name, asked, folder, program))


def _left_before(name: str, asked: Asked, folder: Path, program: Program, end: float) -> Ended | None:
    """The newest run of it that has answers, that is still under way, or that goes on, once it has ended; None where
    there is none. One that has answers is never repeated, whatever they are.
    """
    for one in _runs_left(name, asked, folder, program):
        if one["outcome"] == RUNNING:
            try:
                return program.call("attach", one["id"], "--json", deadline=max(0.0, end - time.monotonic()))
            except BaseException:
                # To leave is not to stop it, and the time is over.
                program.call("stop", one["id"], deadline=_SHOW)
                raise
        if one["outcome"] == Outcome.ABORTED:
            ended = program.call("resume", one["id"], "--json", deadline=max(0.0, end - time.monotonic()))
            if ended.code not in (ExitCode.USAGE, ExitCode.REFUSED):
                return ended
        elif _has_answers(one, program):
            return program.call("show", one["id"], "--json", deadline=_SHOW)
    return None


def keep_answers(
    names: Sequence[str], size: str, folder: Path, place: Path = CLAIMED, command: Sequence[str] = VMLAB
) -> None:
    """Copy what the records of a size answer to where the page finds it, each with the archive of its run.

    Answers of a larger size stay. Raises RefusedError where a run cannot be exported.
    """
    place.mkdir(parents=True, exist_ok=True)
    program = Program(folder / "state", folder / "record.log", command)
    for name in names:
        there = kept(name, place)
        if there and SIZES.index(there["beside"]["run"]["size"]) > SIZES.index(size):
            say(f"left           {name}: it has answers of size {there['beside']['run']['size']}")
        elif record := kept(name, _records(folder, size)):
            if is_emulated(record):
                say(f"left           {name}: its host is emulated, so that its figures count for nothing")
                continue
            run, archive = record["beside"]["run"]["id"], archive_of(name, place)
            archive.unlink(missing_ok=True)
            exported = program.call("export", run, "-o", str(archive), deadline=_SHOW)
            if exported.code:
                raise RefusedError(f"{name}: {exported.last_word}")
            keep(name, of_claims(record), place)


def as_before(names: Sequence[str], asked: Asked, today: str, place: Path = CLAIMED) -> dict[str, Asked]:
    """How to run each of the scenarios as it was run for the page on an earlier day; others are left, and said."""
    found = {}
    for name in names:
        record = kept(name, place)
        if record is None:
            say(f"left           {name}: the page has no answers of it")
        elif day_of(record) >= today:
            say(f"left           {name}: it was asked on {day_of(record)}, and is to be asked again on another day")
        else:
            found[name] = replace(asked, size=record["beside"]["run"]["size"], repeats=repeats_of(record))
    return found


def _together(each: Mapping[str, Asked]) -> dict[Asked, list[str]]:
    """The scenarios that are run in the same way, by that way."""
    found: dict[Asked, list[str]] = {}
    for name, asked in each.items():
        found.setdefault(asked, []).append(name)
    return found


def _run(each: Mapping[str, Asked], minutes: float, folder: Path) -> ExitCode:
    with alone(folder, "experiments are") as report:
        end = time.monotonic() + minutes * _MINUTE
        if each and ready(folder / "state", report, forgets=False):
            for asked, names in _together(each).items():
                left = max(0.0, end - time.monotonic())
                go_on(experiments(names, asked.size, asked.repeats), replace(asked, seconds=left), folder, report)
    return ExitCode.FAILED if report.failed else ExitCode.PASSED


def _record(each: Mapping[str, Asked], folder: Path, place: Path) -> ExitCode:
    for asked, names in _together(each).items():
        keep_answers(names, asked.size, folder, place)
    page.main()
    return ExitCode.PASSED


def main() -> int:
    """Entry point; the exit code."""
    known = page.published_names()
    parser = argparse.ArgumentParser(prog="make experiments", description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join((*known, CONTROL.stem))}")
    parser.add_argument("--size", choices=SIZES, default="smoke", help="smoke by default")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"for all together; {MINUTES} by default")
    parser.add_argument("--once", action="store_true", help="look at the claims once, after the fewest repeats")
    parser.add_argument("--plan", action="store_true", help="only print how long the claims of each take here")
    parser.add_argument(
        "--again", action="store_true", help="those that the page answers, as they were run, if on an earlier day"
    )
    parser.add_argument("--host", choices=["kvm"], help="only claims that the page leaves open, on a host with KVM")
    parser.add_argument("--allow-noise", action="store_true", help="cells count whatever else the machine does")
    parser.add_argument(
        "--record", action="store_true", help="only copy the records into docs/evidence, and write the page"
    )
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in (*known, CONTROL.stem)]:
        parser.error(f"no scenario {unknown[0]!r} with claims; there are {', '.join(known)}")
    names, folder = arguments.names or known, cache_folder() / "experiments"
    repeats: ForClaims = "claims-once" if arguments.once else "claims"
    asked = Asked(arguments.size, repeats, kvm=arguments.host is not None, noise=arguments.allow_noise)
    each, place = dict.fromkeys(names, asked), CLAIMED
    if arguments.host:
        if why := lacks_kvm():
            say(f"experiments: {why}")
            return ExitCode.REFUSED
        folder, place = folder / "kvm", KVM
        sizes = sizes_there([name for name in names if name in known], repeats)
        each = {name: replace(asked, size=size) for name, size in sizes.items()}
    elif arguments.again:
        folder, place = folder / "again", AGAIN
        each = as_before(names, asked, datetime.now(UTC).date().isoformat())
    if arguments.record:
        return as_root("experiments", lambda: _record(each, folder, place))
    if arguments.plan:
        for asked, chosen in _together(each).items():
            for line in table(experiments(chosen, asked.size, asked.repeats), asked.size, folder):
                say(line)
        return ExitCode.PASSED
    return as_root("experiments", lambda: _run(each, arguments.minutes, folder))


if __name__ == "__main__":
    sys.exit(main())
