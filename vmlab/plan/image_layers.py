"""Packages of Debian's that guests have besides: whose they are, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.scenario_file.problems import Place, Problem
from vmlab.workloads.workload_steps import WorkloadParams

_KEY = "packages"


def packages_of(guest: str, scenario: Scenario, params: Mapping[str, WorkloadParams]) -> tuple[str, ...]:
    """The guest's own and those of its workloads, each once and in alphabetical order: one set of them is one layer."""
    asked = {*scenario.guests[guest].packages}
    for name, entry in scenario.workloads.items():
        if guest in entry.places:
            asked |= {*_of_workload(params[name])}
    return tuple(sorted(asked))


def of_packages(scenario: Scenario, params: Mapping[str, WorkloadParams]) -> Iterator[Problem]:
    """Packages for guests of other images; `params` are those of the workloads that are right."""
    for name, guest in scenario.guests.items():
        if guest.packages and not guest.is_labs:
            message = f"packages are put on vmlab's own image, and guest {name} starts from {guest.image}"
            yield Problem(("guests", name, _KEY), message, True)
    for workload, given in params.items():
        places = scenario.workloads[workload].places if _of_workload(given) else ()
        for place in places:
            if place in scenario.guests and not (guest := scenario.guests[place]).is_labs:
                message = f"packages are put on vmlab's own image, and guest {place} starts from {guest.image}"
                yield Problem(("workloads", workload, _KEY), message, True)


@runtime_checkable
class AsksTogether(Protocol):
    """Reasons of which each takes a while to find, and all together no longer than one."""

    def ask(self, names: Iterable[str]) -> None:
        """Find the reasons of all these, for when they are asked for."""


def of_unknown_packages(
    scenario: Scenario, params: Mapping[str, WorkloadParams], lacking: Mapping[str, str]
) -> Iterator[Problem]:
    """Packages that this host cannot get, each reason once; `lacking` as in `HostFacts`."""
    asked: list[tuple[Place, tuple[str, ...]]] = []
    asked += [(("guests", name, _KEY), guest.packages) for name, guest in scenario.guests.items()]
    asked += [(("workloads", name, _KEY), _of_workload(given)) for name, given in params.items()]
    if isinstance(lacking, AsksTogether):
        lacking.ask(package_word(package) for _, packages in asked for package in packages)
    said: set[str] = set()
    for place, packages in asked:
        for index, package in enumerate(packages):
            reason = lacking.get(package_word(package))
            if reason is not None and reason not in said:
                said.add(reason)
                yield Problem((*place, index), reason)


def package_word(package: str) -> str:
    """By which a lack of a package is known, see `HostFacts.lacking`."""
    return f"package {package}"


def _of_workload(given: WorkloadParams) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(given, _KEY, ())
    return found
