"""Frozen guests for a cell: found in the cache, or booted, prepared and saved once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from vmlab.guests.agent import AgentCall, AgentShell, begin_template, empty_template, settle_template, wait_for_agent
from vmlab.guests.channel import PAGE_CACHE
from vmlab.guests.guest_setup import LOOKS_BY, start_services, wait_for_boot
from vmlab.guests.held_client import install_lab_programs
from vmlab.guests.helper_shell import HelperShell, rehearse_helper, start_helper
from vmlab.guests.snapshots import Snapshot, SnapshotRecipe, discard, find, image_digest, make
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.frozen_guest import layout
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.model.cell_event import SnapshotMade, SnapshotProgressed
from vmlab.model.concurrency import run_all, run_with_alarm
from vmlab.model.errors import GuestLost, SnapshotError
from vmlab.model.event import Event, Notice
from vmlab.model.names import DISK, WORKLOADS_FOLDER
from vmlab.model.roles import ROLES
from vmlab.plan.terms import CellPlan, GuestPlan, WorkloadPlan
from vmlab.workloads.registry import kinds
from vmlab.workloads.shell import Shell
from vmlab.workloads.verification import read_from_a_guest
from vmlab.workloads.workload_steps import Side, StagingContext

_C = TypeVar("_C")

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


async def run_step(kind: str, step: Callable[[_C], Awaitable[None]], context: _C) -> None:
    """A step of a workload. Raises WorkloadError for what its places print and cannot be read, whatever reading it
    raises."""
    with read_from_a_guest(kind):
        await step(context)


async def prepare_alone(shell: Shell, cell: CellPlan, guest: GuestPlan, seed: int, services: float) -> None:
    """Start the roles' services within `services` seconds, stage every workload, put the start line in place."""
    await start_services(shell, guest.roles, services)
    context = partial(StagingContext, seed=seed, shell=shell)
    await run_all(
        run_step(one.kind, kinds()[one.kind](one.params).stage, context(one.name, side, asset=one.asset))
        for one, side in _sides(cell, guest)
    )
    await install_lab_programs(shell)
    await shell.run(cache_command("find", cell.workloads, guest.key, *LOOKS_BY), check=False)


def cache_command(what: str, workloads: Iterable[WorkloadPlan], place: str, *more: str) -> list[str]:
    """The command that finds or loads what `workloads` run in a place, and `more` programs beside that.

    ``payload/page_cache.py`` says what it does.
    """
    sides = [(one.source, one.target, kinds()[one.kind].tools) for one in workloads]
    ends = [end for source, target, tools in sides for end in zip((source, target), tools, strict=True)]
    programs = [*more, *(tool for at, tools in ends if at == place for tool in tools)]
    return ["python3", "-I", "-S", PAGE_CACHE, what, WORKLOADS_FOLDER, *dict.fromkeys(programs)]


async def rehearse_alone(shell: Shell, cell: CellPlan, guest: GuestPlan, seed: int) -> None:
    """Have every workload read into memory what it needs of `guest` before the start."""
    context = partial(StagingContext, seed=seed, shell=shell)
    await run_all(
        run_step(one.kind, kinds()[one.kind](one.params).rehearse, context(one.name, side))
        for one, side in _sides(cell, guest)
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


@dataclass(eq=False)
class SnapshotProvider:
    """Makes and holds snapshots for the cells of one run."""

    _hypervisor: Hypervisor
    _image: BootImage
    _seed: int
    _emit: Callable[[Event], object]
    _integrity: Integrity
    _timing: Timing = USUAL
    helper: bool = True
    # Guests that share a processor while they boot and start their servers cost each other more than they gain.
    _building: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(os.cpu_count() or 1), init=False)

    @asynccontextmanager
    async def frozen(self, cell: CellPlan, specs: list[DomainSpec]) -> AsyncIterator[dict[str, Snapshot]]:
        """The snapshot of each guest of `cell`, by guest key, kept from removal while the block runs.

        Missing ones are made first, as many side by side as the host has processors. Those that are known to be damaged
        when the block ends are discarded. Raises what booting or preparing raises.
        """
        digests = {disk: image_digest(disk) for disk in {self._base(spec) for spec in specs}}
        facts = await self._hypervisor.facts()
        recipes = {
            guest.key: SnapshotRecipe(
                image=digests[self._base(spec)],
                machine=layout(spec, self._image, facts),
                roles=guest.roles,
                preparation={**preparation_of(cell, guest, self._seed), "helper": self.helper},
            )
            for guest, spec in zip(cell.guests, specs, strict=True)
        }
        of_id = {recipes[guest.key].id: (guest, spec) for guest, spec in zip(cell.guests, specs, strict=True)}
        by_id = {recipe.id: recipe for recipe in recipes.values()}
        made: dict[str, Snapshot] = {}

        async def ensure(id: str) -> None:
            made[id] = await self._ensure(by_id[id], cell, *of_id[id])

        await run_all(ensure(id) for id in by_id)
        try:
            with ExitStack() as holding:
                for snapshot in made.values():
                    holding.enter_context(snapshot.held())
                yield {key: made[recipe.id] for key, recipe in recipes.items()}
        finally:
            self._discard_damaged(made.values())

    def _base(self, spec: DomainSpec) -> Path:
        """The disk of the image below a guest."""
        return (spec.image or self._image).disk

    async def _ensure(self, recipe: SnapshotRecipe, cell: CellPlan, guest: GuestPlan, spec: DomainSpec) -> Snapshot:
        found = find(recipe, self._say)
        if found is not None:
            await self._integrity.find_damaged([found], [DISK])
            if found.id not in self._integrity.damaged:
                return found
            self._discard_damaged([found])
        self._say(f"freezing {guest.guest}: it is booted and prepared once, and then kept", level="info")
        self._come_to(cell, guest, "waits for a processor")
        began = time.monotonic()
        build = partial(self._build, cell, guest, spec, f"make-{recipe.key[:8]}")
        try:
            snapshot = await make(recipe, self._base(spec), build, self._say)
        except GuestLost as lost:
            if not lost.crashed:
                raise
            # An emulator's rare fault should not end a night of cells, and nothing was measured with this guest.
            self._say(f"{lost}; it is booted and prepared once more")
            snapshot = await make(recipe, self._base(spec), build, self._say)
        seconds = time.monotonic() - began
        self._emit(SnapshotMade(cell=cell.index, guest=guest.guest, snapshot=snapshot.id, seconds=seconds))
        return snapshot

    async def _build(self, cell: CellPlan, guest: GuestPlan, spec: DomainSpec, name: str, folder: Path) -> None:
        """Boot one guest without a network, prepare it through its agent, save it into `folder`."""
        template = replace(spec, name=name, network=False, resources=spec.resources.with_no_limits())
        call: AgentCall = partial(self._hypervisor.agent, name)
        async with self._building:
            await self._hypervisor.create(self._image, [template])
            try:
                alarm = self._hypervisor.watch.until_lost([name])
                await run_with_alarm(alarm, self._prepared(call, cell, guest, name, folder), grace=self._timing.cause)
            except GuestLost as lost:
                cause = f"{lost.cause} while it was made ready to be frozen"
                raise GuestLost(guest.guest, cause, crashed=lost.crashed) from lost
            finally:
                await self._hypervisor.destroy([name])

    async def _prepared(self, call: AgentCall, cell: CellPlan, guest: GuestPlan, name: str, folder: Path) -> None:
        beside, cpus = len({one.guest for one in cell.guests}), os.cpu_count() or 1
        self._come_to(cell, guest, "boots")
        await wait_for_agent(call, guest.guest, self._timing.template_of(beside, cpus))
        await begin_template(call)
        shell = AgentShell(guest.guest, call)
        await wait_for_boot(shell, guest.resources.boot)
        self._come_to(cell, guest, "is prepared")
        await prepare_alone(shell, cell, guest, self._seed, self._timing.services_of(beside, cpus))
        await empty_template(call)
        self._come_to(cell, guest, "rehearses its workloads")
        await rehearse_alone(shell, cell, guest, self._seed)
        if self.helper:
            await self._start_helper(shell, name)
        await settle_template(call)
        self._come_to(cell, guest, "is saved")
        await self._hypervisor.save(name, folder)

    async def _start_helper(self, shell: AgentShell, name: str) -> None:
        """Start the helper, and have it do once what clones ask for first, so that all of that is in its memory."""
        socket = self._hypervisor.helper_socket(name)
        if socket is None:
            return
        await start_helper(shell)
        helped = await HelperShell.connect(shell.name, shell.address, socket, self._timing.helper_start)
        if helped is None:
            self._say(f"{shell.name}: its helper does not answer; its programs are started over SSH")
            return
        try:
            await rehearse_helper(helped)
        finally:
            await helped.close()

    async def discard(self, snapshots: Mapping[str, Snapshot], error: SnapshotError) -> None:
        """Remove snapshots that did not load, so that they are made again when needed.

        Where `error` names one of `snapshots`, the others are checked now and removed if damaged, so that a second
        attempt does not fail because of them.
        """
        used = {one.id: one for one in snapshots.values()}
        self._integrity.damaged.update({id: str(error) for id in used if error.snapshot in (id, None)})
        await self._integrity.find_damaged(one for one in used.values() if one.id not in self._integrity.damaged)
        self._discard_damaged(used.values())

    def _discard_damaged(self, snapshots: Iterable[Snapshot]) -> None:
        for folder in {one.folder for one in snapshots}:
            why = self._integrity.damaged.pop(folder.name, None)
            if why is None:
                continue
            reason = f"snapshot {folder.name} is discarded, and made again when it is wanted: {why}"
            if not discard(folder, reason, self._say):
                self._say(f"snapshot {folder.name} is in use by another run and stays until that has ended")

    def _come_to(self, cell: CellPlan, guest: GuestPlan, stage: str) -> None:
        self._emit(SnapshotProgressed(cell=cell.index, guest=guest.guest, stage=stage))

    def _say(self, text: str, *, level: str = "warning") -> None:
        self._emit(Notice(level=level, text=text))
