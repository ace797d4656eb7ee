"""Whether a run can start here at all, and how a viewer starts it: it then runs independently of that.

What is checked before anything is made would else appear in the list of runs.
"""

from __future__ import annotations

import os
import sys
from importlib import util
from pathlib import Path

from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.libvirt.libvirt_root import check_length, require_daemon, root_folder
from vmlab.lab.process.measuring_runs import Turn, claim, leave
from vmlab.lab.process.prepared import RunRequest, kept_overrides, write_request
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.lab.process.signals import HELD
from vmlab.model.errors import RefusedError, StoreError
from vmlab.model.places import cache_folder, remedy_for, runs_folder, runtime_folder
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.store.runs import new_run_id, run_folders
from vmlab.system.descriptors import closed_after
from vmlab.system.file_system import demand_usable
from vmlab.system.rights import as_root, missing_capabilities

_HIDDEN = Path("/run")
"""See `vmlab/hypervisor/libvirt/libvirt_root.py`: a runner sees a /run of its own."""


def check_ready() -> None:
    """Make the folders that runs and images lie in. Raises RefusedError where no run could start, whatever its
    scenario says; then no folder is left that was not there.
    """
    if os.geteuid() != 0:
        raise RefusedError("a run makes namespaces, a bridge and cgroups, and needs root", remedy=as_root())
    if missing := missing_capabilities():
        raise RefusedError(f"a run needs {' and '.join(missing)}, which root lacks here", remedy="vmlab doctor")
    if util.find_spec("libvirt") is None:
        raise RefusedError("a run needs the Python package libvirt-python", remedy="vmlab doctor --fix")
    check_length(root_folder(RuntimeFolder.of("any").path))
    folder = runs_folder()
    if folder.resolve().is_relative_to(_HIDDEN):
        raise RefusedError(f"{folder} is below {_HIDDEN}, which a run hides from itself", remedy=remedy_for(folder))
    demand_usable(runtime_folder(), keep=False)
    demand_usable(folder, cache_folder())
    _check_settings_put_back()


def _check_settings_put_back() -> None:
    """Refuse to measure while the settings of a dead run are still in force."""
    for path in run_folders():
        folder = RunFolder(path.name, path)
        try:
            entries = Journal(folder.journal).open_entries()
        except StoreError:
            continue  # `vmlab clean` reports it.
        if any(entry.kind == "setting" for entry in entries) and folder.is_own() and not folder.alive():
            raise RefusedError(f"run {folder.id} died and left settings of the host changed", remedy="vmlab clean")


LAUNCHER = "vmlab.lab.process.launcher"
_TURN = "`--wait` waits for its turn"


def start_run(
    file: ScenarioFile,
    overrides: Overrides,
    plan: Plan,
    host: HostFacts,
    *,
    concurrent: bool = False,
    turn: Turn | None = None,
    held: float | None = None,
) -> RunFolder:
    """Start a run that is independent of this process; returns as soon as its launcher runs.

    The plan must have been checked for fit. With `held` its cells begin as they are released, see `RunRequest`. Raises
    HostBusy where a run measures on this host already or waits before its `turn`, unless `concurrent`, and RefusedError
    when the state folder or the runtime folder cannot be written, when a pool or a volume group for data disks cannot
    be had, and for a concurrent run that changes settings of the host.
    """
    check_startable(plan, concurrent=concurrent)
    if plan.hosts and held is None:
        raise RefusedError("the scenario varies hosts, and runs on a fleet", remedy="vmlab run SCENARIO --hosts HOSTS")
    folder = RunFolder.of(new_run_id(plan.scenario.name))
    request = RunRequest(folder.id, str(file.path), kept_overrides(file, overrides, plan), plan.seed, held)
    with closed_after(claim(folder, planned=plan.seconds, concurrent=concurrent, turn=turn)) as measuring:
        try:
            with closed_after(folder.make()) as lock:
                write_request(folder, request, file.text, host)
                folder.note_processes(launcher_pid=spawn_launcher(folder, lock, measuring))
        except BaseException:
            leave(folder.id)
            raise
    return folder


def check_startable(plan: Plan, *, concurrent: bool = False) -> None:
    """Raise RefusedError where what the plan needs beside guests is not here, or it changes settings of the host under
    another run.
    """
    for pool in plan.pools:
        # Imported late, as the next one: few scenarios have data disks there.
        from vmlab.hypervisor.ceph.rbd import require_pool

        require_pool(pool)
    for group, cells in plan.volumes.items():
        from vmlab.hypervisor.lvm.logical_volumes import require_group

        require_group(group, cells)
    if plan.on_hosts_libvirt:
        require_daemon()
    if concurrent and plan.host_settings:
        names = ", ".join(f"host.{name}" for name in plan.host_settings)
        words = f"the scenario sets {names}, which would change what another run measures: it cannot be concurrent"
        raise RefusedError(words, remedy=_TURN)
    if concurrent and plan.huge_pages:
        words = "the scenario reserves huge pages, of which the host has one number for all runs"
        raise RefusedError(words, remedy=_TURN)


def spawn_launcher(folder: RunFolder, lock: int, measuring: int) -> int:
    """Start the launcher; the id of its process."""
    return spawn_detached(LAUNCHER, folder, str(lock), str(measuring), kept=(lock, measuring))


def spawn_detached(program: str, folder: RunFolder, *words: str, kept: tuple[int, ...]) -> int:
    """Start a module with the run's id, its folder and `words`, in a session of its own: neither Ctrl-C nor a closed
    terminal reaches it. The id of its process.

    Signals to it wait until it is ready for them. It has the descriptors `kept` under the same numbers, and writes to
    the run's log.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", program, folder.id, str(folder.path), *words],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder.log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            # The descriptor is duplicated onto itself in the child, so that no other process inherits it.
            *((os.POSIX_SPAWN_DUP2, one, one) for one in kept),
        ],
        setsid=True,
        setsigmask=HELD,
        setsigdef=HELD,
    )
