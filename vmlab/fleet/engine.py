"""Places units on hosts with Dask's `distributed`, all of which stays in this process.

Scheduler, client and a worker for each host talk over ``inproc://``; no port is open and nothing is sent anywhere. A
worker's task only waits for the measuring host, to which another line leads. See decision 32.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import shlex
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Self

from vmlab.model.errors import RefusedError
from vmlab.system.packages import extra_command

RESOURCE = "hypervisor"
"""Each worker has one of it and each unit takes it, so that no host has two."""
Measure = Callable[[int, str], Awaitable[None]]
"""Has a unit, by its number, measured on a host."""

_SETTINGS = {
    # One unit at a time on a host, none waiting there: what waits is placed where a host is free.
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.work-stealing": False,
    # How often a unit is begun is counted by the fleet, which knows why it broke off.
    "distributed.scheduler.allowed-failures": 1000,
    "distributed.scheduler.locks.lease-timeout": "1d",
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "60s",
}
_engines: dict[int, Measure] = {}
"""Tasks reach their engine by its number: Dask copies what it is given, even within a process."""
_numbers = itertools.count(1)


def require_engine() -> None:
    """Raises RefusedError where `distributed` is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise RefusedError(
            "a fleet needs the Python package distributed", remedy=shlex.join(extra_command("fleet"))
        ) from error


async def _measured(engine: int, unit: int) -> None:
    from distributed import get_worker

    await _engines[engine](unit, str(get_worker().name))


class Engine:
    """Places units while the block runs."""

    def __init__(self, measure: Measure) -> None:
        self._number = next(_numbers)
        self._measure = measure
        self._workers: dict[str, Any] = {}
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        import dask
        import distributed

        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        _engines[self._number] = self._measure
        dask.config.set(_SETTINGS)
        with warnings.catch_warnings():
            # Where there is no way to the Internet, Dask says so; it only wants a name for this process.
            warnings.simplefilter("ignore")
            scheduler = _silent(distributed.Scheduler)(protocol="inproc://", dashboard=False)
            self._scheduler = await self._open.enter_async_context(scheduler)
        self._client = await self._open.enter_async_context(
            distributed.Client(  # type: ignore[no-untyped-call]
                self._scheduler.address, asynchronous=True, set_as_default=False
            )
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for host in list(self._workers):
            await self.close_host(host)
        await self._open.aclose()
        _engines.pop(self._number, None)

    async def open_host(self, host: str) -> None:
        """From now on units are placed on this host."""
        import distributed

        worker = _silent(distributed.Worker)(
            self._scheduler.address,
            name=host,
            nthreads=1,
            resources={RESOURCE: 1, _only(host): 1},
            dashboard=False,
            memory_limit=0,
        )
        self._workers[host] = await worker

    async def close_host(self, host: str) -> None:
        """Cancel what runs on this host; it is placed anew, at once or when a host that may run it opens."""
        worker = self._workers.pop(host, None)
        if worker is not None:
            await worker.close(timeout=5)

    def submit(self, unit: int, host: str | None) -> asyncio.Task[Any]:
        """Place a unit on `host`, as soon as that is open, or on any host.

        The task ends with the unit, or with an error of the engine.
        """
        # Not by `workers`: Dask takes names for the workers that have them now, and forgets them with these.
        resources = {RESOURCE: 1} if host is None else {RESOURCE: 1, _only(host): 1}
        future = self._client.submit(
            _measured,
            self._number,
            unit,
            key=f"unit-{unit:06}-{next(_numbers)}",
            priority=-unit,
            resources=resources,
            pure=False,
        )

        async def ended() -> None:
            await future

        return asyncio.create_task(ended())


def _only(host: str) -> str:
    """The resource that one host alone has."""
    return f"host {host}"


def _silent(kind: Any) -> Any:
    """The class without its HTTP server, which else listens on all interfaces, dashboard or not."""

    class Silent(kind):  # type: ignore[misc]
        def start_http_server(self, *arguments: Any, **options: Any) -> None:
            """Nothing is served."""

    return Silent
