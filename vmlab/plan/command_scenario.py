"""A scenario from one command of a shell, as `vmlab run --command` takes it: one guest, in which it is timed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from vmlab.model.quantities import parse_bytes
from vmlab.plan.changes import apply_overrides
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.plan.scenario_file.written_text import written_text
from vmlab.plan.terms import Overrides

GENERATED = Path("<vmlab run --command>")
"""In place of the file that a scenario comes from."""
_GUEST, _WORKLOAD = "vm", "command"


class GuestSize(NamedTuple):
    """Virtual CPUs, and memory in bytes."""

    vcpus: int
    memory: int


USUAL_GUEST = GuestSize(1, 512 * 2**20)


def guest_size(text: str) -> GuestSize:
    """``2x1GiB``: CPUs and memory. Raises ValueError for anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,2})x(.+)", text.strip(), re.ASCII)
    if found is None:
        raise ValueError("needs CPUs and memory, such as 1x512MiB")
    return GuestSize(int(found[1]), parse_bytes(found[2]))


def command_scenario(
    text: str, guest: GuestSize, packages: tuple[str, ...], overrides: Overrides, repeats: int
) -> ScenarioFile:
    """The scenario, with the axes of the overrides; so many `repeats` where it compares something, and none are given.

    Its guest has the `packages` of Debian's besides. Raises ScenarioError for what the workload does not take, and
    UsageError for variables, which it does not have.
    """
    axes: dict[str, Any] = {"cache": overrides.cache, "tiles": overrides.tiles}
    given = {name: list(values) for name, values in axes.items() if values is not None}
    compares = any(len(values) > 1 for values in given.values())
    usual = repeats if compares else 1
    memory = f"{guest.memory // 2**20} MiB" if guest.memory % 2**20 == 0 else f"{guest.memory} B"
    besides = {"packages": list(packages)} if packages else {}
    values = {
        "name": _WORKLOAD,
        "guests": {_GUEST: {"vcpus": guest.vcpus, "memory": memory}},
        "workloads": {_WORKLOAD: {"kind": "command", "on": _GUEST, **besides, "run": text}},
        **({"axes": given} if given else {}),
        "repeats": overrides.repeats if isinstance(overrides.repeats, int) else usual,
    }
    return read(GENERATED, written_text(values), overrides.variables or {})


def as_changed(file: ScenarioFile, overrides: Overrides) -> ScenarioFile:
    """The scenario with what the options change written in it. Raises ScenarioError and UsageError."""
    return read(GENERATED, written_text(apply_overrides(file.document, overrides).value), {})
