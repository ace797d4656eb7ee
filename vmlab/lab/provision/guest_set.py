"""The guests of one cell: created, booted, identified, connected, their roles' services running."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import asyncssh

from vmlab.guests.added_guest import log_in
from vmlab.guests.agent import AgentCall, Identity, identify, wait_for_agent
from vmlab.guests.channel import GuestShell
from vmlab.guests.guest_setup import look_at_boot, set_up_data_disk, start_services, try_discard, wait_for_boot
from vmlab.guests.held_client import install_lab_programs
from vmlab.guests.helper_shell import HelperShell
from vmlab.guests.ssh import RunKeys, SshShell
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec, Translated
from vmlab.hypervisor.levers.guest_lever import early_among, files_inside
from vmlab.hypervisor.protocols import Hypervisor, SavedGuest
from vmlab.lab.provision.added_guests import AddedGuests
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.model.concurrency import run_all
from vmlab.model.names import elastic_address, guest_address, guest_mac
from vmlab.model.results import CacheProof, LeverProof
from vmlab.model.run import CacheMode
from vmlab.plan.terms import CellPlan, GuestPlan

StateChange = Callable[[GuestPlan, str], None]
SeenInside = Callable[[GuestPlan, dict[str, Any]], None]
"""Takes what was found inside a guest, as JSON values."""


class Connect(Protocol):
    """Opens a guest's shell; see `SshShell.connect`."""

    async def __call__(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> GuestShell:
        """The shell of guest `name` at `address`."""


@dataclass(eq=False)
class GuestSet:
    """Guests from creation to destruction; `shells` holds one connection for each guest key."""

    _run: str
    _cell: CellPlan
    hypervisor: Hypervisor
    _image: BootImage
    _on_state: StateChange
    _open_shell: Connect = SshShell.connect
    _timing: Timing = USUAL
    on_seen: SeenInside = lambda _guest, _seen: None
    on_notice: Callable[[str], None] = lambda _text: None
    helper: bool = True
    added: AddedGuests | None = None
    layers: Mapping[tuple[str, ...], BootImage] = field(default_factory=dict)
    """What guests with packages boot from, by these."""
    levers: Sequence[str] = ()
    """The scenario's keys that are to be proved."""
    guests: list[GuestPlan] = field(default_factory=list, init=False)
    """In the order of the plan, those that were added last."""
    changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when guests were added or retired; whoever watches `names` clears it."""
    shells: dict[str, GuestShell] = field(default_factory=dict, init=False)
    specs: list[DomainSpec] = field(default_factory=list, init=False)
    _addresses: dict[str, str] = field(default_factory=dict, init=False)
    _elastic: dict[str, str] = field(default_factory=dict, init=False)
    """By which others reach guests whose addresses are translated."""
    _proved: dict[str, list[LeverProof]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._added = self.added or AddedGuests(self._cell, {}, log_in, self._timing)
        self._keys = RunKeys.generate(())
        self.announce(self._cell.guests)

    @property
    def names(self) -> list[str]:
        """Domain names, in the order of the plan."""
        return [spec.name for spec in self.specs]

    def announce(self, guests: Sequence[GuestPlan]) -> list[DomainSpec]:
        """Guests of a tile are to come, and are given keys and addresses, which depend on their own tile alone.

        Their domains, which `add` starts and `retire` ends.
        """
        self._keys.add(guest.key for guest in guests)
        network, places = self.hypervisor.network.addresses, positions(guests)
        self._addresses |= {key: guest_address(*place, network) for key, place in places.items()}
        translated = [guest.key for guest in guests if guest.resources.network == "nat"]
        self._elastic |= {key: elastic_address(*places[key]) for key in translated}
        specs = [self._spec(guest, guest_mac(*places[guest.key])) for guest in guests]
        self.guests += guests
        self.specs += specs
        return specs

    def _spec(self, guest: GuestPlan, mac: str) -> DomainSpec:
        own, elastic = self._addresses[guest.key], self._elastic.get(guest.key)
        return DomainSpec(
            name=guest.key,
            guest=guest.guest,
            tile=guest.tile,
            resources=guest.resources,
            mac=mac,
            image=self._added.boot_image(guest) or self._layer(guest),
            address=None if guest.resources.is_labs else own,
            translated=None if elastic is None else Translated(own, elastic),
        )

    def _layer(self, guest: GuestPlan) -> BootImage | None:
        """What it boots from in place of vmlab's own image as it is."""
        packages = guest.resources.packages
        return self.layers[packages] if packages else None

    def reached_at(self, key: str) -> str:
        """The address by which others reach a guest: its elastic one, or its own."""
        return self._elastic.get(key, self._addresses[key])

    async def boot(self) -> None:
        """Start all guests; afterwards each has an SSH connection and its roles' services run."""
        await self.hypervisor.create(self._image, self.specs)
        self._all_are("created")
        await run_all(self._connect(guest) for guest in self.guests)
        labs = [guest for guest in self.guests if guest.resources.is_labs]
        await run_all(wait_for_boot(self.shells[guest.key], guest.resources.boot) for guest in labs)
        await self._added.make_ready(self.shells, self._hosts())
        await self._add_data_disks(self.guests, self.specs)
        kept_there = [guest.key for guest in self.guests if not self._added.has_windows(guest)]
        await run_all(install_lab_programs(self.shells[key]) for key in kept_there)
        await run_all(self._start_role(guest) for guest in self.guests)

    async def restore(self, frozen: Mapping[str, SavedGuest]) -> None:
        """As `boot`, but from the snapshots in `frozen`, by guest key; the guests are as prepared as those were.

        Raises SnapshotError when one of them does not load; none of the guests is left then.
        """
        await self._restore(self.guests, self.specs, frozen)

    async def _restore(
        self, guests: Sequence[GuestPlan], specs: list[DomainSpec], frozen: Mapping[str, SavedGuest]
    ) -> None:
        await self.hypervisor.restore(self._image, specs, frozen)
        self._all_are("restored", guests)
        await run_all(self._connect(guest, helper=self.helper) for guest in guests)
        await self._add_data_disks(guests, specs)

    async def add(self, guests: Sequence[GuestPlan], frozen: Mapping[str, SavedGuest]) -> None:
        """Restore guests that were announced beside those that run. Raises as `restore`; they may be left then."""
        keys = {guest.key for guest in guests}
        await self._restore(guests, [spec for spec in self.specs if spec.name in keys], frozen)
        self.changed.set()

    async def retire(self, guests: Sequence[GuestPlan]) -> None:
        """End these guests, and nobody watches them any more; guests that never started are no error."""
        keys = [guest.key for guest in guests]
        self.guests = [guest for guest in self.guests if guest.key not in keys]
        self.specs = [spec for spec in self.specs if spec.name not in keys]
        self.changed.set()
        await self.disconnect(keys)
        for key in keys:
            self.shells.pop(key, None)
        await self.hypervisor.destroy(keys)
        self._all_are("gone", guests)

    def _all_are(self, state: str, guests: Sequence[GuestPlan] | None = None) -> None:
        for guest in self.guests if guests is None else guests:
            self._on_state(guest, state)

    async def _connect(self, guest: GuestPlan, *, helper: bool = False) -> None:
        if not guest.resources.is_labs:
            self.shells[guest.key] = await self._added.connect(guest, self._addresses[guest.key])
            self._on_state(guest, "connected")
            return
        call: AgentCall = partial(self.hypervisor.agent, guest.key)
        helped = await self._helped(guest) if helper else None
        if helped is None:
            await wait_for_agent(call, guest.key, self._timing.boot_of(len(self.guests)))
        else:
            self.shells[guest.key] = helped
            call = helped.as_agent()
        self._on_state(guest, "booted")
        await identify(call, self._identity(guest), self._run, self._timing.identify)
        self._on_state(guest, "identified")
        if helped is None:
            self.shells[guest.key] = await self._open_shell(
                guest.guest,
                self._addresses[guest.key],
                key=self._keys.client,
                host_key=self._keys.hosts[guest.key],
                deadline=self._timing.identify,
            )
        self._on_state(guest, "connected")

    async def _helped(self, guest: GuestPlan) -> HelperShell | None:
        """The shell of the guest's helper; None where there is none, or it does not answer."""
        socket = self.hypervisor.helper_socket(guest.key)
        if socket is None:
            return None
        address = self._addresses[guest.key]
        helped = await HelperShell.connect(guest.guest, address, socket, self._timing.helper)
        if helped is None:
            self.on_notice(f"{guest.key}: its helper does not answer; its programs are started over SSH")
        return helped

    async def _add_data_disks(self, guests: Sequence[GuestPlan], specs: list[DomainSpec]) -> None:
        """Give each guest its data disk, once its kernel runs: a data disk is not part of a snapshot."""
        having = [guest for guest in guests if guest.resources.data_bytes is not None]
        if having:
            await self.hypervisor.plug_data_disks(specs)
            tried = [guest for guest in having if guest.resources.data_discard is not None]
            await run_all(try_discard(self.shells[guest.key], guest.resources) for guest in tried)
            if early := early_among(self.levers):
                # Once there is a file system, nobody can tell what was allocated, or discarded, before.
                plugged = [spec for spec in specs if spec.resources.data_bytes is not None]
                for spec in plugged:
                    self._proved[spec.name] = await self.hypervisor.prove_levers([spec], early, {})
            await run_all(self._mount_data(guest) for guest in having)

    async def _mount_data(self, guest: GuestPlan) -> None:
        seen = await set_up_data_disk(self.shells[guest.key], guest.resources)
        self.on_seen(guest, {"data_disk": seen})

    def _identity(self, guest: GuestPlan) -> Identity:
        return Identity(
            hostname=guest.key,
            address=self._addresses[guest.key],
            prefix=self.hypervisor.network.addresses.prefixlen,
            host_key=self._keys.host_private(guest.key),
            authorized_key=self._keys.authorized_line(),
            hosts=self._hosts(),
        )

    def _hosts(self) -> str:
        """Lines of /etc/hosts for all guests."""
        return "".join(f"{self.reached_at(key)} {key}\n" for key in self._addresses)

    async def _start_role(self, guest: GuestPlan) -> None:
        deadline = self._timing.services_of(len(self.guests), os.cpu_count() or 1)
        shell = self.shells[guest.key]
        if not guest.resources.is_labs:
            await self._added.set_up(shell, guest, deadline)
        await start_services(shell, guest.roles, deadline)
        self._on_state(guest, "prepared")

    async def boot_faults(self) -> list[str]:
        """Check what each guest has booted into; a reason for each that differs from what was asked for."""
        looks = [self._boot_fault(guest) for guest in self.guests]
        return [fault for fault in await run_all(looks) if fault is not None]

    async def _boot_fault(self, guest: GuestPlan) -> str | None:
        if self._added.has_windows(guest):
            return None
        if not guest.resources.is_labs:
            self.on_seen(guest, {"boot": await self._added.look_at_boot(self.shells[guest.key])})
            return None
        seen = await look_at_boot(self.shells[guest.key], guest.resources.boot)
        self.on_seen(guest, {"boot": seen.to_json()})
        fault = seen.fault()
        return None if fault is None else f"{guest.guest}: {fault}"

    async def prove_cache(self, specs: list[DomainSpec] | None = None) -> list[CacheProof]:
        """The cache mode of every disk file of all guests, or of some, as QEMU's descriptors and QMP show it."""
        return await self.hypervisor.guest_disks.prove_cache(self.specs if specs is None else specs)

    async def prove_levers(self, specs: list[DomainSpec] | None = None) -> list[LeverProof]:
        """What `levers` are in force, of all guests, or of some; none where there are none."""
        looked_at = self.specs if specs is None else specs
        before = [proof for spec in looked_at for proof in self._proved.get(spec.name, ())]
        return before + await self._prove_late(looked_at)

    async def levers_changed(self, proofs: Iterable[LeverProof]) -> list[LeverProof]:
        """Proofs that agreed in `proofs`, or were not there, and do not agree now; of guests that are here still."""
        if not self.levers:
            return []
        known = {(one.guest, one.tile, one.lever, one.found) for one in proofs if not one.agrees}
        found = (one for one in await self._prove_late(self.specs) if not one.agrees)
        return [
            replace(one, by=f"{one.by}, after the workloads")
            for one in found
            if (one.guest, one.tile, one.lever, one.found) not in known
        ]

    async def _prove_late(self, specs: Sequence[DomainSpec]) -> list[LeverProof]:
        """Of what can be proved when disks have worked."""
        early = early_among(self.levers)
        late = [key for key in self.levers if key not in early]
        inside = await self._files_inside(files_inside(late), specs)
        return await self.hypervisor.prove_levers(specs, late, inside)

    async def _files_inside(self, files: Sequence[str], specs: Sequence[DomainSpec]) -> dict[str, dict[str, str]]:
        """What these files hold in guests with Linux, by domain."""
        keys = {guest.key for guest in self.guests if not self._added.has_windows(guest)}
        names = [spec.name for spec in specs if spec.name in keys] if files else []
        # One that is missing is empty: that it is there may be what a proof looks for.
        read = (self.shells[name].run(["cat", file], check=False) for name in names for file in files)
        texts = await run_all(read)
        each = iter(texts)
        return {name: {file: next(each).stdout for file in files} for name in names}

    async def switch_cache(self, mode: CacheMode) -> dict[str, float]:
        """Switch all disks to another cache mode; the seconds for which each guest may have stood still."""
        pauses = await self.hypervisor.guest_disks.switch_cache(self.specs, mode)
        self.specs = [replace(spec, resources=spec.resources.with_cache(mode)) for spec in self.specs]
        return pauses

    def has_windows(self, guest: GuestPlan) -> bool:
        """Whether it is a guest with Windows."""
        return self._added.has_windows(guest)

    async def disconnect(self, keys: Iterable[str] | None = None) -> None:
        """Drop the connections with these guests, or with all, at once: calls that wait for an answer get an error."""
        for key in list(self.shells if keys is None else keys):
            if key in self.shells:
                await self.shells[key].close()

    async def destroy(self) -> None:
        """Drop the connections and destroy the domains with their disks."""
        await self.disconnect()
        self.shells.clear()
        if self.specs:
            await self.hypervisor.destroy(self.names)
        self._all_are("gone")


def positions(guests: Iterable[GuestPlan]) -> dict[str, tuple[int, int]]:
    """Tile and position in it, from 0, by guest key."""
    seen: dict[int, int] = defaultdict(int)
    found = {}
    for guest in guests:
        found[guest.key] = (guest.tile, seen[guest.tile])
        seen[guest.tile] += 1
    return found
