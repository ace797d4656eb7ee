"""Proof that no disk with a limit did more than that while the workloads of a cell ran."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from vmlab.hypervisor.contract import DiskRequests, DomainSpec, Hypervisor
from vmlab.hypervisor.levers.disk_limit import is_limited, limits_kept
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.concurrency import run_all
from vmlab.model.errors import DeadlineExceeded, HypervisorError, in_one_line
from vmlab.model.results import LeverProof


class LimitCheck:
    """What the disks of one cell's guests did between `begin` and `end`; without limits nothing is read."""

    def __init__(self, hypervisor: Hypervisor, guests: GuestSet, events: CellEvents) -> None:
        self._hypervisor = hypervisor
        self._guests = guests
        self._events = events
        self._specs: list[DomainSpec] = []
        self._before: Mapping[str, Mapping[str, DiskRequests]] = {}
        self._after: Mapping[str, Mapping[str, DiskRequests]] = {}
        self._began = self._ended = 0.0

    async def begin(self) -> None:
        """Before the workloads start."""
        self._specs = [spec for spec in self._guests.specs if is_limited(spec.resources)]
        self._began = time.monotonic()
        self._before = await self._read()

    async def end(self) -> None:
        """After they have ended. Guests of tiles that were retired meanwhile are left out."""
        there = {spec.name for spec in self._guests.specs}
        self._specs = [spec for spec in self._specs if spec.name in there]
        self._after = await self._read()
        self._ended = time.monotonic()

    async def _read(self) -> Mapping[str, Mapping[str, DiskRequests]]:
        read = await run_all(self._read_guest(spec) for spec in self._specs)
        return {spec.name: found for spec, found in zip(self._specs, read, strict=True)}

    async def _read_guest(self, spec: DomainSpec) -> Mapping[str, DiskRequests]:
        """Nothing where it cannot be read: then nobody knows whether the limit held, and nothing else is lost."""
        try:
            return await self._hypervisor.guest_disks.disk_requests(spec.name)
        except (HypervisorError, DeadlineExceeded) as error:
            self._events.doubt(f"whether limits of {spec.guest}'s disks held could not be read: {in_one_line(error)}")
            return {}

    def proofs(self) -> Iterator[LeverProof]:
        """See `disk_limit.limits_kept`; nothing before `end`."""
        for spec in self._specs if self._after else ():
            yield from limits_kept(spec, self._before[spec.name], self._after[spec.name], self._ended - self._began)
