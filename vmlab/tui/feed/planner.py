"""Scenarios and their plans for the Scenarios screen; everything here may take a moment: call from a thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.errors import RefusedError, VmlabError
from vmlab.plan.planning import check_fit
from vmlab.plan.scenario_file.loading import ScenarioFile, load, shipped_names
from vmlab.plan.terms import HostFacts, Overrides, Plan


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with the host that it was made for; `refusal` says why it would not start.

    `name` is that of a shipped scenario, or the path of a file.
    """

    name: str
    file: ScenarioFile
    overrides: Overrides
    plan: Plan
    host: HostFacts
    refusal: str = ""


def scenarios() -> list[tuple[str, str]]:
    """Name and summary of every shipped scenario; a broken one has its error as its summary."""
    found = []
    for name in shipped_names():
        try:
            found.append((name, load(name).scenario.summary))
        except VmlabError as error:
            found.append((name, str(error)))
    return found


def scenario_names() -> list[tuple[str, str]]:
    """Names of the shipped scenarios, whose summaries are not read yet."""
    return [(name, "") for name in shipped_names()]


def own_file(path: str) -> tuple[str, str]:
    """Absolute path and summary of a user's own scenario file. Raises ScenarioError or UsageError with one line."""
    file = load(str(Path(path).expanduser()))
    return str(file.path.absolute()), file.scenario.summary


def planned(name: str, overrides: Overrides) -> Planned:
    """The plan of a scenario. Raises ScenarioError or UsageError for what makes no sense."""
    file = load(name)
    plan, host = prepare_run(file, overrides)
    try:
        check_fit(plan, host)
    except RefusedError as error:
        return Planned(name, file, overrides, plan, host, str(error))
    return Planned(name, file, overrides, plan, host)
