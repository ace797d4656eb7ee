"""What is done to a guest before it is frozen, and what identifies that preparation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from vmlab.guests.channel import START_LINE
from vmlab.guests.guest_systemd import start_services
from vmlab.guests.held_client import start_line_program
from vmlab.model.concurrency import run_all
from vmlab.model.roles import ROLES
from vmlab.plan.terms import CellPlan, GuestPlan, WorkloadPlan
from vmlab.workloads.contract import Shell, Side, StagingContext
from vmlab.workloads.registry import kinds

_CHANGES_NO_GUEST = ("reports", "__pycache__")
"""Folders of workloads: parsers of what tools print, and what Python compiles."""


def preparation_of(cell: CellPlan, guest: GuestPlan, seed: int) -> dict[str, Any]:
    """What the preparation of `guest` depends on, as JSON values: equal values give equal guests.

    Tile and cell are not among them, so that all tiles and cells share one frozen guest.
    """
    return {
        "seed": seed,
        "roles": sorted(guest.roles),
        "stages": [
            {
                "workload": workload.name,
                "kind": workload.kind,
                "side": side,
                "staged_by": kinds()[workload.kind](workload.params).staged_by(),
                **({} if workload.asset is None else {"asset": workload.asset.sha256}),
            }
            for workload, side in _sides(cell, guest)
        ],
        "code": code_digest(),
    }


def _sides(cell: CellPlan, guest: GuestPlan) -> list[tuple[WorkloadPlan, Side]]:
    ends: list[tuple[WorkloadPlan, Side]] = [(one, "source") for one in cell.workloads if one.source == guest.key]
    ends += [(one, "target") for one in cell.workloads if one.target == guest.key]
    return sorted(ends, key=lambda end: (end[0].name, end[1]))


async def prepare_alone(shell: Shell, cell: CellPlan, guest: GuestPlan, seed: int, services: float) -> None:
    """Start the roles' services within `services` seconds, stage every workload, put the start line in place."""
    await start_services(shell, guest.roles, services)
    await run_all(
        kinds()[workload.kind](workload.params).stage(StagingContext(workload.name, side, seed, shell, workload.asset))
        for workload, side in _sides(cell, guest)
    )
    await shell.write(START_LINE, start_line_program())


async def rehearse_alone(shell: Shell, cell: CellPlan, guest: GuestPlan, seed: int) -> None:
    """Have every workload read into memory what it needs of `guest` before the start."""
    await run_all(
        kinds()[workload.kind](workload.params).rehearse(StagingContext(workload.name, side, seed, shell))
        for workload, side in _sides(cell, guest)
    )


@cache
def code_digest() -> str:
    """SHA-256 over the code that prepares guests: another version of it makes other snapshots."""
    units = {name: role.units for name, role in ROLES.items()}
    digest = hashlib.sha256(json.dumps(units, sort_keys=True).encode())
    for path, code in preparing_code():
        digest.update(path.encode() + code)
    return digest.hexdigest()


def preparing_code() -> Iterator[tuple[str, bytes]]:
    """Each module of workloads and of what runs in guests, by its path; but for those that read what tools print."""
    for package in ("vmlab.workloads", "vmlab.guests.payload"):
        yield from _modules(resources.files(package), package.replace(".", "/"))


def _modules(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name not in _CHANGES_NO_GUEST:
            yield from _modules(entry, f"{path}/{entry.name}")
        elif entry.name.endswith(".py"):
            yield f"{path}/{entry.name}", entry.read_bytes()
