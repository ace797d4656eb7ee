"""libvirt's bulk statistics of the lab's guests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import libvirt

from vmlab.hypervisor.libvirt.calls import call
from vmlab.model.errors import HypervisorError

_ASK = 10.0
_WITHOUT_QEMU = (
    libvirt.VIR_DOMAIN_STATS_STATE
    | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
)
_FROM_QEMU = libvirt.VIR_DOMAIN_STATS_BLOCK | libvirt.VIR_DOMAIN_STATS_BALLOON

Figures = dict[str, dict[str, int]]


class DomainStatistics:
    """Asks `all_stats`, which takes what is wanted and libvirt's flags and gives the figures of each of the lab's
    domains; `short` turns a domain's name into its guest's.
    """

    def __init__(
        self, all_stats: Callable[[int, int], list[tuple[Any, dict[str, Any]]]], short: Callable[[str], str]
    ) -> None:
        self._all_stats = all_stats
        self._short = short
        self._asking: asyncio.Future[Figures] | None = None

    async def cpu_seconds(self, names: list[str]) -> dict[str, float]:
        """CPU time by guest, in seconds. Raises HypervisorError where one does not run."""
        stats = await call("CPU times", _ASK, self._bulk, libvirt.VIR_DOMAIN_STATS_CPU_TOTAL)
        try:
            return {name: stats[name]["cpu.time"] / 1e9 for name in names}
        except KeyError as error:
            raise HypervisorError(f"no CPU time of {', '.join(set(names) - stats.keys()) or error}") from error

    async def domain_stats(self) -> Figures:
        """libvirt's numbers alone, by the guest's name.

        Figures of disks and balloon come from QEMU itself, which takes seconds where many guests are busy: they are
        read in the background and are in the answer when they have come, each reading once.
        """
        quick = await call("domain statistics", _ASK, self._bulk, _WITHOUT_QEMU)
        slow = self._slow_stats()
        return {name: {**slow.get(name, {}), **numbers} for name, numbers in quick.items()}

    def _slow_stats(self) -> Figures:
        """The result of the last background query, once; starts the next one."""
        found: Figures = {}
        if self._asking is not None:
            if not self._asking.done():
                return found
            # A query that failed is repeated; the other figures are returned without it.
            if not self._asking.cancelled() and self._asking.exception() is None:
                found = self._asking.result()
        self._asking = asyncio.ensure_future(call("disk statistics", _ASK, self._bulk, _FROM_QEMU))
        return found

    async def running(self) -> list[str]:
        """The names of the guests that libvirt knows."""
        return list(await call("list of domains", _ASK, self._bulk, libvirt.VIR_DOMAIN_STATS_STATE))

    def stop(self) -> None:
        """Stop the background queries."""
        if self._asking is not None:
            self._asking.cancel()

    def _bulk(self, which: int) -> Figures:
        flags = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        return {self._short(domain.name()): _numbers(stats) for domain, stats in self._all_stats(which, flags)}


def _numbers(stats: dict[str, Any]) -> dict[str, int]:
    return {key: value for key, value in stats.items() if isinstance(value, int)}
