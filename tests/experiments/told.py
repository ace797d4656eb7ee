"""Runs of shipped scenarios as the lab stores them, with every figure that their workloads have, and no guest.

``python -m tests.experiments.told run NAME …`` stands for the program in tests of the driver: `run` tells such a run,
and all other commands are the program's own. The words in ``TOLD`` spoil it: ``failed=NAME``, ``invalid=NAME``,
``hang=NAME``; and with ``resumes`` a run that was cut off goes on when it is asked to.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from tests.experiments.records import shipped
from tests.store.stories import SAMPLED, Story
from vmlab.analysis.comparison.repeats_needed import with_enough_repeats
from vmlab.analysis.document import run_document
from vmlab.cli.main import command_line
from vmlab.model.errors import ExitCode
from vmlab.model.places import runs_folder
from vmlab.plan.planning import make_plan
from vmlab.plan.terms import FOR_CLAIMS, CellPlan, ForClaims, HostFacts, Overrides, Plan
from vmlab.store.reader import RunReader
from vmlab.store.run_list import list_runs
from vmlab.workloads.registry import kinds

HOST = HostFacts(2**36, 2**36, 2**40, 4, "tcg")
_WHY = {"passed": "", "failed": "it ended with code 1", "invalid": "steal: 30 % of the CPUs; the limit is 25 %"}
_SPOILT = {"passed": 1, "failed": 1, "invalid": 3}
_CODES = {"passed": ExitCode.PASSED, "failed": ExitCode.FAILED, "invalid": ExitCode.INVALID}


def tell(
    name: str, size: str = "smoke", *, last: str = "passed", claims: ForClaims | None = None, cut_off: bool = False
) -> Path:
    """The store of a run of a shipped scenario at a size, or with the repeats that its claims take.

    `last` is the outcome of its last cell, or of its last three if that is invalid, and so its own; one that was cut
    off has the first cell alone, and no end. Runs for claims have guests under KVM, which answer more of them.
    """
    file, host = shipped(name), replace(HOST, accelerator_guess="kvm" if claims else HOST.accelerator_guess)
    overrides = Overrides(size=size, sets=("order=as written",), repeats=claims)
    plan = make_plan(file, with_enough_repeats(overrides, file.scenario), host)
    number = len([*runs_folder().glob("*")])
    run = f"20261121-1430{number:02}-{name}-7f3a"
    story = Story(runs_folder() / run / "run.sqlite", name, run).begin_plan(plan, host.accelerator_guess)
    story.writer.document("scenario.yaml", file.text)
    for cell in plan.cells[:1] if cut_off else plan.cells:
        _tell_cell(story, plan, cell, last if cell in plan.cells[-_SPOILT[last] :] else "passed")
    if cut_off:
        return story.close()
    return story.end(last, _CODES[last], _WHY[last])


def _tell_cell(story: Story, plan: Plan, cell: CellPlan, outcome: str) -> None:
    story.start_plan_cell(cell)
    story.execute(2.0, [dict.fromkeys(SAMPLED.names[2:], 7.0 + cell.index)])
    for workload in cell.workloads:
        for metric, declared in kinds()[workload.kind].metrics.items() if outcome != "failed" else ():
            story.measure(workload.name, 5.0 + cell.index + workload.tile / 10, metric, declared.unit, workload.tile)
    if outcome == "failed":
        story.fail(cell.workloads[0].name, _WHY[outcome])
    story.end_cell(outcome, [_WHY[outcome]] if _WHY[outcome] else [], wall=20.0)


def _resume(run: str) -> int:
    """Tell the whole run, which is the newest, in the place of what there is of it."""
    with RunReader(runs_folder() / run / "run.sqlite") as reader:
        until = run_document(reader).run.until
    (name,) = (one.scenario for one in list_runs() if one.id == run)
    rmtree(runs_folder() / run)
    looks = until.looks if until is not None else None
    assert tell(name, claims=FOR_CLAIMS[looks is not None and len(looks) == 1]).parent.name == run
    return command_line(["show", run, "--json"])


def main(arguments: list[str]) -> int:
    """Stand for the program; the exit code."""
    told = os.environ.get("TOLD", "").split()
    if arguments[0] == "resume" and "resumes" in told:
        return _resume(arguments[1])
    if arguments[0] != "run":
        return command_line(arguments)
    size, claims = arguments[arguments.index("--size") + 1], next((one for one in FOR_CLAIMS if one in arguments), None)
    if f"hang={arguments[1]}" in told:
        tell(arguments[1], size, claims=claims, cut_off=True)
        time.sleep(600)
    last = next((one for one in ("failed", "invalid") if f"{one}={arguments[1]}" in told), "passed")
    store = tell(arguments[1], size, last=last, claims=claims)
    command_line(["show", store.parent.name, "--json"])
    return _CODES[last]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
