"""The guests of one cell that start from images which users have added: reached over SSH with the users' keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import asyncssh

from vmlab.guests.added_guest import (
    GuestNeeds,
    missing_in,
    missing_on_windows,
    name_guest,
    needs_of,
    set_clock,
    set_up_roles,
)
from vmlab.guests.channel import GuestShell
from vmlab.guests.guest_setup import look_at_boot, wait_until_booted
from vmlab.guests.image.added import AddedImage, System
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.lab.provision.timing import Timing
from vmlab.model.concurrency import run_all
from vmlab.model.errors import GuestError
from vmlab.plan.terms import CellPlan, GuestPlan
from vmlab.workloads.registry import kinds


class LogIn(Protocol):
    """Opens the shell of a guest with a user's key; see `added_guest.log_in`."""

    async def __call__(
        self, name: str, address: str, *, system: System, user: str, key: asyncssh.SSHKey, deadline: float
    ) -> GuestShell:
        """The shell of guest `name` at `address`."""


class AddedGuests:
    """What is special about these guests, from their boot to their role's set-up; all others are none of its own."""

    def __init__(self, cell: CellPlan, images: Mapping[str, AddedImage], log_in: LogIn, timing: Timing) -> None:
        self._cell = cell
        self._images = images
        self._log_in = log_in
        self._timing = timing
        self.guests: Sequence[GuestPlan] = [one for one in cell.guests if not one.resources.is_labs]

    def has_windows(self, guest: GuestPlan) -> bool:
        """Whether Windows runs in `guest`."""
        return not guest.resources.is_labs and self._images[guest.resources.image].system == "windows"

    def boot_image(self, guest: GuestPlan) -> BootImage | None:
        """What `guest` boots from; None for one of vmlab's own image."""
        if guest.resources.is_labs:
            return None
        image = self._images[guest.resources.image]
        return BootImage(image.disk, image.kernel, image.initrd, image.command_line)

    async def connect(self, guest: GuestPlan, address: str) -> GuestShell:
        """The guest's shell, as soon as it has booted so far. Raises GuestError and DeadlineExceeded."""
        image = self._images[guest.resources.image]
        key = await asyncio.to_thread(lambda: asyncssh.import_private_key(image.key.read_bytes()))
        deadline = self._timing.boot_of(len(self._cell.guests))
        return await self._log_in(
            guest.guest, address, system=image.system, user=image.user, key=key, deadline=deadline
        )

    async def make_ready(self, shells: Mapping[str, GuestShell], hosts: str) -> None:
        """Wait for the end of their boots, look for all that they need, name them, set their clocks.

        One with Windows has booted when it lets its user in, and keeps its name and its clock, which nothing reads.
        `shells` are by guest key. Raises GuestError with one list of all that they lack, and DeadlineExceeded.
        """
        linux = [guest for guest in self.guests if not self.has_windows(guest)]
        await run_all(wait_until_booted(shells[guest.key]) for guest in linux)
        await self._demand_all(shells)
        await run_all(self._name(shells[guest.key], guest, hosts) for guest in linux)

    async def _demand_all(self, shells: Mapping[str, GuestShell]) -> None:
        looks = [self._missing(shells[guest.key], guest) for guest in self.guests]
        lacking = [
            f"{guest.guest} (image {guest.resources.image}) lacks {', '.join(missing)}"
            for guest, missing in zip(self.guests, await run_all(looks), strict=True)
            if missing
        ]
        if lacking:
            raise GuestError("; ".join(lacking))

    async def _missing(self, shell: GuestShell, guest: GuestPlan) -> list[str]:
        if self.has_windows(guest):
            return await missing_on_windows(shell, self._tools(guest))
        return await missing_in(shell, self._needs(guest))

    def _needs(self, guest: GuestPlan) -> GuestNeeds:
        return needs_of(guest.roles, self._tools(guest), data_disk=guest.resources.data_bytes is not None)

    def _tools(self, guest: GuestPlan) -> list[str]:
        tools: list[str] = []
        for workload in self._cell.workloads:
            sides = zip((workload.source, workload.target), kinds()[workload.kind].tools, strict=True)
            tools += [tool for place, needed in sides if place == guest.key for tool in needed]
        return tools

    async def _name(self, shell: GuestShell, guest: GuestPlan, hosts: str) -> None:
        await name_guest(shell, guest.key, hosts)
        await set_clock(shell, self._timing.identify)

    async def set_up(self, shell: GuestShell, guest: GuestPlan, deadline: float) -> None:
        """Set up the servers of its roles, which are started next. Raises GuestError and DeadlineExceeded."""
        await set_up_roles(shell, guest.roles, deadline)

    async def look_at_boot(self, shell: GuestShell) -> dict[str, Any]:
        """What it has booted into, as JSON values for the cell's document."""
        return {**(await look_at_boot(shell, "lab")).to_json(), "mode": "image"}
