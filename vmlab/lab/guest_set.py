"""The guests of one cell: created, booted, identified, connected, their roles' services running."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import asyncssh

from vmlab.guests.channel import GuestShell
from vmlab.guests.held_client import install_start_line
from vmlab.guests.identity import AgentCall, Identity, identify, wait_for_agent
from vmlab.guests.keys import RunKeys
from vmlab.guests.roles import ROLE_UNITS
from vmlab.guests.ssh import SshShell
from vmlab.hypervisor.contract import BootImage, DomainSpec, Hypervisor
from vmlab.lab.addresses import PREFIX, addresses, macs
from vmlab.model.run import CacheProof
from vmlab.model.together import together
from vmlab.plan.terms import CellPlan, GuestPlan

_BOOT_SECONDS = 90.0
_BOOT_SECONDS_A_GUEST = 45.0
_IDENTIFY_SECONDS = 120.0

StateChange = Callable[[GuestPlan, str], None]


class Connect(Protocol):
    """How a guest's shell is opened; see `SshShell.connect`."""

    async def __call__(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> GuestShell:
        """The shell of guest `name` at `address`."""
        ...


class GuestSet:
    """Guests from creation to destruction; `shells` holds one connection for each guest key."""

    def __init__(
        self,
        run: str,
        cell: CellPlan,
        hypervisor: Hypervisor,
        image: BootImage,
        on_state: StateChange,
        connect: Connect = SshShell.connect,
    ) -> None:
        self._run = run
        self._open_shell = connect
        self._cell = cell
        self._hypervisor = hypervisor
        self._image = image
        self._on_state = on_state
        self._keys = RunKeys.generate(guest.key for guest in cell.guests)
        self._addresses = addresses(cell.guests)
        self._macs = macs(cell.guests)
        self.shells: dict[str, GuestShell] = {}
        self.specs = [self._spec(guest) for guest in cell.guests]

    @property
    def names(self) -> list[str]:
        """Domain names, in the order of the plan."""
        return [spec.name for spec in self.specs]

    def _spec(self, guest: GuestPlan) -> DomainSpec:
        return DomainSpec(
            name=guest.key,
            guest=guest.guest,
            tile=guest.tile,
            vcpus=guest.vcpus,
            memory_bytes=guest.memory_bytes,
            disk_bytes=guest.disk_bytes,
            mac=self._macs[guest.key],
            cache=self._cell.cache,
            queues=guest.queues,
            cpu_shares=guest.cpu_shares,
        )

    async def boot(self) -> None:
        """From nothing running to an SSH connection with each guest, the roles' services running."""
        await self._hypervisor.create(self._image, self.specs)
        self._all_are("created")
        await together(self._connect(guest) for guest in self._cell.guests)
        await together(install_start_line(shell) for shell in self.shells.values())
        await together(self._start_role(guest) for guest in self._cell.guests)

    async def restore(self, frozen: Mapping[str, Path]) -> None:
        """As `boot`, from the frozen guests in the folders of `frozen`, by guest key; prepared as they were.

        Raises SnapshotError when one of them does not load; none of the guests is left then.
        """
        await self._hypervisor.restore(self._image, self.specs, frozen)
        self._all_are("restored")
        await together(self._connect(guest) for guest in self._cell.guests)

    def _all_are(self, state: str) -> None:
        for guest in self._cell.guests:
            self._on_state(guest, state)

    async def _connect(self, guest: GuestPlan) -> None:
        call: AgentCall = partial(self._hypervisor.agent, guest.key)
        await wait_for_agent(call, guest.key, _BOOT_SECONDS + _BOOT_SECONDS_A_GUEST * len(self._cell.guests))
        self._on_state(guest, "booted")
        await identify(call, self._identity(guest), self._run, _IDENTIFY_SECONDS)
        self._on_state(guest, "identified")
        shell = await self._open_shell(
            guest.guest,
            self._addresses[guest.key],
            key=self._keys.client,
            host_key=self._keys.hosts[guest.key],
            deadline=_IDENTIFY_SECONDS,
        )
        self.shells[guest.key] = shell
        self._on_state(guest, "connected")

    def _identity(self, guest: GuestPlan) -> Identity:
        return Identity(
            hostname=guest.key,
            address=self._addresses[guest.key],
            prefix=PREFIX,
            host_key=self._keys.host_private(guest.key),
            authorized_key=self._keys.authorized_line(),
            hosts="".join(f"{address} {key}\n" for key, address in self._addresses.items()),
        )

    async def _start_role(self, guest: GuestPlan) -> None:
        units = [unit for role in guest.roles for unit in ROLE_UNITS[role]]
        if units:
            await self.shells[guest.key].run(["systemctl", "start", *units], deadline=300)
        self._on_state(guest, "prepared")

    async def prove_cache(self) -> list[CacheProof]:
        """The cache mode of every disk file, as QEMU's own descriptors and QMP tell it."""
        return await self._hypervisor.prove_cache(self.specs)

    async def drop_caches(self, guest: GuestPlan) -> None:
        """Empty a guest's page cache, and its caches of names and inodes."""
        await self.shells[guest.key].run(["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"], deadline=300)

    async def destroy(self) -> None:
        """Drop the connections and destroy the domains with their disks."""
        for shell in self.shells.values():
            await shell.close()
        self.shells.clear()
        if self.specs:
            await self._hypervisor.destroy(self.names)
        self._all_are("gone")


async def forget_pages(files: Iterable[Path]) -> None:
    """Empty the host's page cache of the lab's own disk files, so that both sides of a comparison start from cold ones.

    The host's other pages are not the lab's to drop.
    """
    await asyncio.to_thread(_forget_pages, sorted(set(files)))


def _forget_pages(files: list[Path]) -> None:
    for file in files:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
