"""Checks that a run can start here at all, before anything is made that would appear in the list of runs."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path

from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.libvirt.libvirt_root import check_length, root_folder
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.runtime_folder import RuntimeFolder
from vmlab.model.errors import RefusedError, StoreError
from vmlab.model.places import cache_folder, remedy_for, runs_folder, runtime_folder
from vmlab.store.runs import run_folders
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
