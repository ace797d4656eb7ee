"""Guests that run on the host itself: what they cannot have, and where this host has no such CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from vmlab.model.scenarios.scenario import Guest, Scenario
from vmlab.plan.placed_axes import PlacedAxis, PlacedValue
from vmlab.plan.scenario_file.problems import Problem
from vmlab.plan.terms import CellPlan, HostFacts
from vmlab.system.cpu_cores import Cores, lack_of_cpus, last_cpus

COPIED_BYTES = 128 * 2**20
"""What each takes on the host's disk for its own /etc and /var: 90 MiB of the image, and what its servers add."""


def of_bare_guests(scenario: Scenario) -> Iterator[Problem]:
    """What guests on the host cannot have."""
    for name, guest in scenario.guests.items():
        for key in guest.not_on_host():
            message = f"guest {name} is on the host, where there is no {key} of a virtual machine; leave it out"
            yield Problem(("guests", name, key), message, True)


def cores_of(host: HostFacts, ordered_cpus: int | None) -> Cores | None:
    """The cores that a cell may use: those of the ordered host where there is one; None where they are not known."""
    return None if host.cores is None else last_cpus(host.cores, ordered_cpus)


def without_cpus(axes: Sequence[PlacedAxis], scenario: Scenario, host: HostFacts) -> list[PlacedAxis]:
    """The axes, with the points marked as absent for which this host has too few CPUs, and the reason."""
    cores = cores_of(host, scenario.host.cpus)
    if cores is None:
        return list(axes)
    return [replace(axis, values=tuple(_marked(value, scenario, cores) for value in axis.values)) for axis in axes]


def _marked(value: PlacedValue, scenario: Scenario, cores: Cores) -> PlacedValue:
    for name, guest in scenario.guests.items():
        given = {place[2]: setting.value for place, setting in value.places.items() if place[:2] == ("guests", name)}
        if given.keys() & {"on", "vcpus", "smt"} and (reason := _lack(guest, given, cores)) is not None:
            return replace(value, settings=(), absent=reason)
    return value


def _lack(guest: Guest, given: Mapping[str | int, object], cores: Cores) -> str | None:
    """Why a guest with what is `given` has no CPUs; None also for values that are reported where they are checked."""
    on, count, smt = (given.get(key, getattr(guest, key)) for key in ("on", "vcpus", "smt"))
    if on != "host" or not isinstance(count, int) or not (smt is None or isinstance(smt, bool)):
        return None
    return lack_of_cpus(cores, count, smt=smt)


def lacked_cpus(cell: CellPlan, host: HostFacts, ordered_cpus: int | None) -> str | None:
    """Why a guest of the cell cannot be on this host, or the ordered one; None where all can."""
    cores = cores_of(host, ordered_cpus)
    for guest in cell.bare if cores is not None else ():
        assert cores is not None
        if (lack := lack_of_cpus(cores, guest.resources.vcpus, smt=guest.resources.smt)) is not None:
            return f"guest {guest.guest} has on: host, and {lack}"
    return None
