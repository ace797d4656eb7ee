"""Parts of vmlab that few scenarios need, each a package of its own, which an installation may leave out."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.scenario_file.problems import Place, Problem

CEPH = "vmlab.hypervisor.ceph.rbd"
OVERLAY_NETWORK = "vmlab.hypervisor.overlay_network.guest_networks"
EMULATED_DISK = "vmlab.hypervisor.emulated_disk.emulated_disk"
"""The module by which each is entered. `vmlab.workloads.registry` finds the kinds of suites, where they are."""


def missing_parts(scenario: Scenario) -> Iterator[Problem]:
    """What the scenario asks for and this installation lacks."""
    for module, place in _asked(scenario):
        if not _is_installed(module):
            package = module.rpartition(".")[0]
            yield Problem(place, f"this installation of vmlab lacks the package {package}, which this needs")


def _asked(scenario: Scenario) -> Iterator[tuple[str, Place]]:
    if scenario.host.disk is not None:
        yield EMULATED_DISK, ("host", "disk")
    for name, guest in scenario.guests.items():
        if guest.pool is not None:
            yield CEPH, ("guests", name, "backing")
        yield from ((OVERLAY_NETWORK, ("guests", name, key)) for key in guest.beyond_bridge)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
