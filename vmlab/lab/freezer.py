"""Frozen guests for a cell: found in the cache, or booted, prepared and saved once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from vmlab.guests.agent import AgentCall, wait_for_agent
from vmlab.guests.agent_shell import AgentShell
from vmlab.guests.snapshots import Recipe, Snapshot, discard, find, hold, image_digest, make
from vmlab.guests.template import begin_template, empty_template, settle_template
from vmlab.hypervisor.contract import BootImage, DomainSpec, Hypervisor
from vmlab.hypervisor.frozen import layout
from vmlab.lab.preparation import preparation_of, prepare_alone, rehearse_alone
from vmlab.model.event import Event, Notice, SnapshotMade
from vmlab.model.together import together
from vmlab.plan.terms import CellPlan, GuestPlan

_BOOT_SECONDS = 240.0


class Freezer:
    """Makes and holds snapshots for the cells of one run."""

    def __init__(self, hypervisor: Hypervisor, image: BootImage, seed: int, emit: Callable[[Event], object]) -> None:
        self._hypervisor = hypervisor
        self._image = image
        self._seed = seed
        self._emit = emit

    @asynccontextmanager
    async def frozen(self, cell: CellPlan, specs: list[DomainSpec]) -> AsyncIterator[dict[str, Snapshot]]:
        """The snapshot of each guest of `cell`, by guest key, kept from removal while the block runs.

        Missing ones are made first, those of different guests side by side. Raises what booting or preparing raises.
        """
        facts = await self._hypervisor.facts()
        recipes = {
            guest.key: self._recipe(cell, guest, layout(spec, self._image, facts))
            for guest, spec in zip(cell.guests, specs, strict=True)
        }
        of_id = {recipes[guest.key].id: (guest, spec) for guest, spec in zip(cell.guests, specs, strict=True)}
        by_id = {recipe.id: recipe for recipe in recipes.values()}
        made: dict[str, Snapshot] = {}

        async def ensure(id: str) -> None:
            made[id] = await self._ensure(by_id[id], cell, *of_id[id])

        await together(ensure(id) for id in by_id)
        with ExitStack() as holding:
            for snapshot in made.values():
                holding.enter_context(hold(snapshot))
            yield {key: made[recipe.id] for key, recipe in recipes.items()}

    def _recipe(self, cell: CellPlan, guest: GuestPlan, machine: Mapping[str, object]) -> Recipe:
        return Recipe(
            image=image_digest(self._image.disk),
            machine=machine,
            roles=guest.roles,
            preparation=preparation_of(cell, guest, self._seed),
        )

    async def _ensure(self, recipe: Recipe, cell: CellPlan, guest: GuestPlan, spec: DomainSpec) -> Snapshot:
        found = find(recipe, self._say)
        if found is not None:
            return found
        self._say(f"freezing {guest.guest}: it is booted and prepared once, and then kept", level="info")
        began = time.monotonic()
        build = partial(self._build, cell, guest, spec, f"make-{recipe.key[:8]}")
        snapshot = await make(recipe, self._image.disk, build, self._say)
        seconds = time.monotonic() - began
        self._emit(SnapshotMade(cell=cell.index, guest=guest.guest, snapshot=snapshot.id, seconds=seconds))
        return snapshot

    async def _build(self, cell: CellPlan, guest: GuestPlan, spec: DomainSpec, name: str, folder: Path) -> None:
        """Boot one guest without a network, prepare it through its agent, save it into `folder`."""
        template = replace(spec, name=name, network=False, cpu_shares=None)
        call: AgentCall = partial(self._hypervisor.agent, name)
        await self._hypervisor.create(self._image, [template])
        try:
            await wait_for_agent(call, guest.guest, _BOOT_SECONDS)
            await begin_template(call)
            shell = AgentShell(guest.guest, call)
            await prepare_alone(shell, cell, guest, self._seed)
            await empty_template(call)
            await rehearse_alone(shell, cell, guest, self._seed)
            await settle_template(call)
            await self._hypervisor.save(name, folder)
        finally:
            await self._hypervisor.destroy([name])

    def discard(self, snapshots: Mapping[str, Snapshot], reason: str) -> None:
        """Remove snapshots that do not load; they are made anew when they are wanted again."""
        for folder in {one.folder for one in snapshots.values()}:
            discard(folder, f"snapshot {folder.name} is discarded and made again: {reason}", self._say)

    def _say(self, text: str, *, level: str = "warning") -> None:
        self._emit(Notice(level=level, text=text))
