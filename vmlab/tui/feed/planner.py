"""Scenarios and their plans for the Scenarios screen; everything here may take a moment: call from a thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vmlab.hypervisor.checks import checks
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.errors import VmlabError
from vmlab.model.quantities import about_seconds
from vmlab.model.run import EMULATED
from vmlab.plan.hosting import misfit
from vmlab.plan.scenario_file.loading import ScenarioFile, load, shipped_names
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.tui.state.views import Readiness

TRIED, TRIED_SIZE = ("cache-modes", "tile"), "smoke"
"""What a newcomer is to try first."""


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


def readiness() -> Readiness:
    """Whether this host can start each of `TRIED` at once, and what they need. May take a second or two."""
    from vmlab.report.demo.duration import longest_seconds

    needs = {"demo": about_seconds(longest_seconds())}
    missing = [check.name for check in checks() if check.required and not check.ok]
    words, is_ready = "", not missing
    if missing:
        words = f"missing: {', '.join(missing)}; `vmlab doctor` says how to get it"
    for name in TRIED:
        try:
            made = planned(name, Overrides(size=TRIED_SIZE))
        except VmlabError as error:
            words, is_ready = words or f"{name}: {error}", False
        else:
            needs[name] = f"{about_seconds(made.plan.seconds)}, {made.plan.guests} guests"
            if made.refusal:
                words, is_ready = words or f"{name}: {made.refusal}", False
            words = words or _ready(made.host)
    return Readiness(words, needs, len(shipped_names()), is_ready)


def _ready(host: HostFacts) -> str:
    image = "the image is built" if host.images else "the first run builds the image"
    emulated = host.accelerator_guess == EMULATED or host.kvm_refuses
    return f"ready: {host.cpus} CPUs, {image}, {'no KVM: guests are emulated' if emulated else 'KVM'}"


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
    refusal = misfit(plan, host)
    return Planned(name, file, overrides, plan, host, str(refusal or ""))


GROUPS: dict[str, tuple[str, ...]] = {
    "Start here": ("tile", "cache-modes", "consolidation"),
    "CPU": ("cpu-overhead", "cpu-priority", "cpu-pinning"),
    "Memory": (
        *("memory-overhead", "memcpy-overhead", "memory-overbooking", "memory-sharing", "huge-pages", "tile-memory"),
    ),
    "Disk": (
        "disk-matrix",
        "disk-allocation",
        "disk-io",
        "disk-formats",
        "disk-buses",
        "disk-overbooking",
        "disk-overbooking-blocks",
        "disk-places",
        "disk-shared",
        "tile-backing",
        "tile-disk",
    ),
    "Network": ("network-cards", "network-classic", "network-vpc", "network-overlay"),
    "Java and systems": ("jvm-members", "jvm-overbooking", "query-replay", "system-overhead"),
}
OTHERS = "Others"
"""The user's own, and what has no group yet."""


def grouped(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """`names` in groups, without those that are empty."""
    known = list(names)
    groups = [(title, [name for name in members if name in known]) for title, members in GROUPS.items()]
    listed = {name for _, members in groups for name in members}
    groups.append((OTHERS, [name for name in known if name not in listed]))
    return [(title, members) for title, members in groups if members]
