"""Proof that no disk with a limit did more than that while the workloads of a cell ran."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from vmlab.hypervisor.contract import DiskRequests, DomainSpec, Hypervisor
from vmlab.hypervisor.levers.disk_limit import is_limited, limits_kept
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.concurrency import run_all
from vmlab.model.results import LeverProof


class LimitCheck:
    """What the disks of one cell's guests did between `begin` and `end`; without limits nothing is read."""

    def __init__(self, hypervisor: Hypervisor, guests: GuestSet) -> None:
        self._hypervisor = hypervisor
        self._guests = guests
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
        names = [spec.name for spec in self._specs]
        read = await run_all(self._hypervisor.guest_disks.disk_requests(name) for name in names)
        return dict(zip(names, read, strict=True))

    def proofs(self) -> Iterator[LeverProof]:
        """See `disk_limit.limits_kept`; nothing before `end`."""
        for spec in self._specs if self._after else ():
            yield from limits_kept(spec, self._before[spec.name], self._after[spec.name], self._ended - self._began)
