"""How a viewer starts a run of a fleet, or has one go on whose controller was killed."""

from __future__ import annotations

from vmlab.fleet.engine import require_engine
from vmlab.fleet.hosts_file import FleetRequest, is_fleet
from vmlab.fleet.placed_units import groups_of
from vmlab.lab.process.launch import spawn_detached
from vmlab.lab.process.prepared import RunRequest, kept_overrides, write_request
from vmlab.lab.process.resuming import NO_MORE, More, resume_run
from vmlab.lab.process.run_ending import ended
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.lab.process.waiting_runs import Tell
from vmlab.model.errors import RefusedError, UsageError
from vmlab.plan.hosting import check_assets
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.store.runs import new_run_id
from vmlab.system.descriptors import closed_after

CONTROLLER = "vmlab.fleet.controller"


def demand_fleet_plan(plan: Plan, host: HostFacts, *, together: bool = False) -> None:
    """Raise UsageError for what a fleet does not run, and what `check_assets` raises for the assets given `host`."""
    if plan.scenario.until is not None and not together:
        raise UsageError("hosts that do not run together need a fixed number of repeats, as in --repeats 5")
    if plan.scenario.until is not None and plan.scenario.until.looks is not None:
        raise UsageError("a run that is looked at, for its claims or its table, is of one host; run it there")
    if plan.control:
        raise UsageError("--control finds the noise of one host; run it on each")
    if not plan.cells:
        raise UsageError("nothing to run: every axis value is marked absent")
    if together and any(len(unit.cells) != len(plan.hosts) for unit in groups_of(plan.cells)):
        raise UsageError("--together needs every cell on every host, and a value of an axis is absent on one")
    check_assets(plan, host)


def start_fleet_run(
    file: ScenarioFile, overrides: Overrides, plan: Plan, host: HostFacts, request: FleetRequest
) -> RunFolder:
    """Start a run that is independent of this process. Raises RefusedError and UsageError."""
    require_engine()
    demand_fleet_plan(plan, host, together=request.together)
    folder = RunFolder.of(new_run_id(plan.scenario.name))
    with closed_after(folder.make()) as lock:
        kept = kept_overrides(file, overrides, plan)
        write_request(folder, RunRequest(folder.id, str(file.path), kept, plan.seed), file.text, host)
        request.write(folder)
        folder.note_processes(launcher_pid=spawn_detached(CONTROLLER, folder, kept=(lock,)))
    return folder


def resume(folder: RunFolder, more: More = NO_MORE, *, concurrent: bool = False, tell: Tell | None = None) -> None:
    """Have a run go on that was cut off, of a fleet or of this host. For all else, which is for one host, see
    `resume_run`. Raises what `resume_fleet_run` or `resume_run` raises.
    """
    if not is_fleet(folder.path):
        resume_run(folder, more, concurrent=concurrent, tell=tell)
        return
    if more.asked:
        raise UsageError("--invalid and --repeats are for a run on one host")
    if concurrent or tell is not None:
        raise UsageError("--wait and --concurrent are for a run on one host")
    resume_fleet_run(folder)


def resume_fleet_run(folder: RunFolder) -> None:
    """Have a run go on whose controller was killed. Raises UsageError where there is nothing to go on with."""
    require_engine()
    if not is_fleet(folder.path) or not folder.is_own():
        raise UsageError(f"run {folder.id} is none of a fleet that began here")
    with closed_after(folder.take_lock_of_dead()) as lock:
        if ended(folder) is not None:
            raise UsageError(f"run {folder.id} has ended; `vmlab show {folder.id}` shows it")
        runtime = RuntimeFolder(folder.runtime)
        if not runtime.is_own():
            try:
                runtime.make(folder.id, folder.path)
            except OSError as error:
                raise RefusedError(f"cannot make {folder.runtime}: {error.strerror}") from error
        folder.note_processes(launcher_pid=spawn_detached(CONTROLLER, folder, kept=(lock,)))
